"""The application and the disk image for macOS on Apple silicon."""
