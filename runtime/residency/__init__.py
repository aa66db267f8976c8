"""Where each expert is, and getting it there."""
