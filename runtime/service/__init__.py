"""The background process: channel, commands and their one reply each, stages, cancellation."""
