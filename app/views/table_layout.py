"""How wide the columns of a table are. Pure."""

from collections.abc import Sequence

MAX_COLUMN_WIDTH = 360
"""Text that is wider breaks."""
MIN_WRAPPED_WIDTH = 120
"""Columns are not made narrower than this for want of room; the table is moved sideways then."""


def column_widths(natural: Sequence[int], room: int) -> list[int]:
    """Return the width of each column, given how wide each would be without breaks.

    All that fits gets what it wants; what does not gives way down to a width that can be read.
    """
    wanted = [min(width, MAX_COLUMN_WIDTH) for width in natural]
    least = [min(width, MIN_WRAPPED_WIDTH) for width in wanted]
    over = sum(wanted) - room
    spare = sum(wanted) - sum(least)
    if over <= 0:
        return wanted
    if over >= spare:
        return least
    return [
        width - int(over * (width - low) / spare + 0.999)
        for width, low in zip(wanted, least, strict=True)
    ]
