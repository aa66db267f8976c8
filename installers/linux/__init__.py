"""The folder archive, the Debian package and the one-file program for Linux."""
