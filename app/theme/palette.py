"""Every colour of the window, light and dark; the only place where one is written."""

import dataclasses

TIERS = ("vram", "ram", "drive")
"""The three places for experts, hot to cold; every bar keeps this order from left to right."""


@dataclasses.dataclass(frozen=True, slots=True)
class Palette:
    """The colours of one theme as ``#RRGGBB``.

    Tier colours are for areas. Text beside a tier stays in the text colour and carries a dot.
    """

    is_dark: bool
    background: str
    surface: str
    line: str
    text: str
    dim: str
    accent: str
    """Areas: the one button that matters on a page."""
    accent_hover: str
    accent_text: str
    """The accent as text or icon."""
    on_accent: str
    """Text on an accent area."""
    own: str
    """The person's own message, and what is selected."""
    code: str
    hover: str
    vram: str
    ram: str
    drive: str
    vram_weak: str
    """A tier's colour where an expert of it is hardly used; also of the two below."""
    ram_weak: str
    drive_weak: str
    use_weak: str
    """From here to ``use_strong``: how much an expert is used, whatever its tier."""
    use_low: str
    use_high: str
    use_strong: str
    bits_4: str
    """Stored bits of an expert, few to many."""
    bits_8: str
    bits_16: str
    bits_32: str
    empty: str
    """The part of a bar that holds nothing."""
    error: str
    error_area: str
    focus: str
    link: str
    code_keyword: str
    code_string: str
    code_number: str
    code_comment: str
    code_name: str

    @property
    def has_edges(self) -> bool:
        """Whether areas look like what lies around them, so that only an edge tells them."""
        return self.empty == self.surface

    def tier(self, name: str) -> str:
        """Return the area colour of a tier by its protocol name."""
        return {"vram": self.vram, "ram": self.ram, "drive": self.drive}[name]


LIGHT = Palette(
    is_dark=False,
    background="#F7F4EF",
    surface="#FFFFFF",
    line="#E4DDD2",
    text="#2B2520",
    dim="#6B6158",
    accent="#B0600A",
    accent_hover="#9C5509",
    accent_text="#9A5208",
    on_accent="#FFFFFF",
    own="#F1E9DC",
    code="#F4F0EA",
    hover="#F1ECE4",
    vram="#D9480F",
    ram="#F0A830",
    drive="#2F5580",
    vram_weak="#EDB9A6",
    ram_weak="#F8E1B8",
    drive_weak="#B3C3D6",
    use_weak="#F3ECE6",
    use_low="#DDB9C2",
    use_high="#9A5B86",
    use_strong="#46204F",
    bits_4="#CFE3C4",
    bits_8="#8FBF8A",
    bits_16="#4C8C68",
    bits_32="#1F5A4A",
    empty="#E4DDD2",
    error="#A1260D",
    error_area="#FBEAE4",
    focus="#B0600A",
    link="#9A5208",
    code_keyword="#8A3A9C",
    code_string="#3C6E2F",
    code_number="#9A5208",
    code_comment="#6B6158",
    code_name="#2F5580",
)

DARK = Palette(
    is_dark=True,
    background="#1B1815",
    surface="#25211D",
    line="#3A342D",
    text="#EFE8DD",
    dim="#A3988A",
    accent="#F0A830",
    accent_hover="#F5B84A",
    accent_text="#F0A830",
    on_accent="#241A0A",
    own="#332B22",
    code="#1F1B17",
    hover="#2E2923",
    vram="#FF6B3D",
    ram="#F5B84A",
    drive="#4A78A8",
    vram_weak="#5E1C0C",
    ram_weak="#553B0E",
    drive_weak="#1E3045",
    use_weak="#2B2329",
    use_low="#6B3B63",
    use_high="#C9748C",
    use_strong="#FFE3C2",
    bits_4="#2F4A3A",
    bits_8="#4C7F5E",
    bits_16="#7FB98A",
    bits_32="#CDEBC0",
    empty="#3A342D",
    error="#FF9C80",
    error_area="#3A241D",
    focus="#F0A830",
    link="#F0A830",
    code_keyword="#D6A2E8",
    code_string="#A8CF8E",
    code_number="#F0B860",
    code_comment="#A3988A",
    code_name="#8FB6DE",
)

CONTRAST_LIGHT = dataclasses.replace(
    LIGHT,
    background="#FFFFFF",
    line="#000000",
    text="#000000",
    dim="#1F1A16",
    accent="#6B3500",
    accent_hover="#4A2400",
    accent_text="#6B3500",
    own="#FFFFFF",
    code="#FFFFFF",
    hover="#F1ECE4",
    empty="#FFFFFF",
    error="#8A1A06",
    error_area="#FFFFFF",
    focus="#000000",
    link="#6B3500",
    code_keyword="#5E1A70",
    code_string="#1F4A14",
    code_number="#6B3500",
    code_comment="#1F1A16",
    code_name="#173A63",
)
"""Nearly all text on plain white at more than 7 : 1, every edge in black."""

CONTRAST_DARK = dataclasses.replace(
    DARK,
    background="#000000",
    surface="#000000",
    line="#FFFFFF",
    text="#FFFFFF",
    dim="#E6E0D6",
    accent="#FFD166",
    accent_hover="#FFE199",
    accent_text="#FFD166",
    on_accent="#000000",
    own="#000000",
    code="#000000",
    hover="#2E2923",
    empty="#000000",
    error="#FFB8A3",
    error_area="#000000",
    focus="#FFFFFF",
    link="#FFD166",
    code_keyword="#E3C2F0",
    code_string="#C4E6AE",
    code_number="#FFD98F",
    code_comment="#E6E0D6",
    code_name="#BBD6F2",
)
"""The same on black, with edges in white."""


def contrast(first: str, second: str) -> float:
    """Return the contrast ratio of two colours, 1 to 21.

    Formula: WCAG 2.2, definition of *contrast ratio* and *relative luminance* (sRGB).
    """
    bright, dark = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    channels = (int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5))
    red, green, blue = (
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
