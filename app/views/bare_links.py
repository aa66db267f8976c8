"""Addresses of the web in a text without marks around them."""

import re

from linkify_it import LinkifyIt

_WIDE = re.compile("[，。；：！？、（）《》「」『』【】“”…]")
"""Marks of sentences that are written without a space; in addresses they are encoded."""


class BareLinks(LinkifyIt):  # type: ignore[misc]  # It comes without types.
    """Finds what says its kind; guesses nothing, for names such as main.py would be sites too."""

    def __init__(self) -> None:
        super().__init__()
        self.set({"fuzzy_link": False, "fuzzy_email": False, "fuzzy_ip": False})
        for kind in ("ftp:", "//"):
            self.add(kind, None)

    def test_schema_at(self, text: str, name: str, position: int) -> int:
        """Return how long an address is behind the name of its kind; 0 for none."""
        length: int = super().test_schema_at(text, name, position)
        mark = _WIDE.search(text, position, position + length)
        return length if mark is None else mark.start() - position
