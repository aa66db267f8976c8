"""The runtime as a child process: its life, and messages as Qt signals."""
