"""The folder archive, the Debian package and the AppImage for Linux."""
