"""Sizes of the window in device-independent pixels, on a grid of four."""

from typing import Final

GRID: Final = 4
GAP: Final = 12
"""Between cards, and inside them."""
PAGE_MARGIN: Final = 16
CARD_RADIUS: Final = 10
CONTROL_RADIUS: Final = 8
TEXT_COLUMN_WIDTH: Final = 760
"""No column of text is wider."""
RAIL_WIDTH: Final = 84
MAX_RAIL_WIDTH: Final = 140
STRIP_HEIGHT: Final = 40
CHAT_LIST_WIDTH: Final = 216
SIDE_WIDTH: Final = 270

BODY_PX: Final = 13
DIM_PX: Final = 12
HEADING_PX: Final = 15
FIGURE_PX: Final = 22
"""The one number of a card."""
BAR_HEIGHT: Final = 8
BAR_HEIGHT_LARGE: Final = 12
