"""What a file system says that lets a file be opened for direct reads and then refuses them."""


class DirectRefusedError(Exception):
    """Direct reads of this file are refused; it has to be read through the cache."""
