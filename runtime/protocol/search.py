"""What a search for models says of a place that was looked through."""

import enum


class RootState(enum.StrEnum):
    """Whether a place could be looked through."""

    THERE = "there"
    EMPTY = "empty"
    """Nothing lies in it: often the place of a drive that is not connected."""
    MISSING = "missing"
    UNREADABLE = "unreadable"
