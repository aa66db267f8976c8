"""Numbers with their units as a person reads them. A no-break space keeps them together."""

from app.text.translate import tr, trn

GIB_BYTES = 1 << 30
MIB_BYTES = 1 << 20
KIB_BYTES = 1 << 10
_SPACE = "\N{NO-BREAK SPACE}"
_JOULES_PER_WH = 3600.0
_FIRST_IN_BILLIONS = 950_000_000


def count(number: float) -> str:
    """A whole number with separators: ``16,384``."""
    return f"{round(number):,}"


def _short(value: float) -> str:
    """Two or three digits that matter: ``0.8``, ``21.4``, ``128``."""
    if value and abs(value) < 0.095:
        return f"{value:.2f}"
    return f"{value:.1f}" if abs(value) < 99.95 else f"{value:,.0f}"


def gib(num_bytes: float) -> str:
    """Always in GiB: ``5.1 GiB``, ``0.05 GiB``."""
    return f"{_short(num_bytes / GIB_BYTES)}{_SPACE}GiB"


def size(num_bytes: float) -> str:
    """In the unit that fits: ``5.1 GiB``, ``88 MiB``, ``12 KiB``."""
    if num_bytes >= GIB_BYTES * 0.995:
        return gib(num_bytes)
    if num_bytes >= MIB_BYTES:
        return f"{num_bytes / MIB_BYTES:.0f}{_SPACE}MiB"
    if num_bytes >= KIB_BYTES:
        return f"{num_bytes / KIB_BYTES:.0f}{_SPACE}KiB"
    whole = round(num_bytes)
    return trn("{count} byte", "{count} bytes", whole).format(count=whole).replace(" ", _SPACE)


def size_of(done_bytes: float, total_bytes: float) -> str:
    """An amount of a total: ``1.2 GiB of 14.0 GiB``."""
    return tr("{done} of {total}").format(done=size(done_bytes), total=size(total_bytes))


def throughput(bytes_per_s: float) -> str:
    """Bytes in a second: ``1.2 GiB/s``, ``340 MiB/s``."""
    return f"{size(bytes_per_s)}/s"


def tokens(number: int) -> str:
    """A number of tokens: ``1 token``, ``1,204 tokens``."""
    return trn("{count} token", "{count} tokens", number).format(count=count(number))


def rate(tokens_per_s: float) -> str:
    """Tokens in a second: ``21.4 tokens/s``."""
    return tr("{number} tokens/s").format(number=_short(tokens_per_s)).replace(" ", _SPACE)


def band(low: float, high: float) -> str:
    """A forecast without its unit: ``19–24``, ``0.4–0.6``; one number where both read the same."""
    digits = 0 if high >= 9.5 else 1
    first, last = f"{low:.{digits}f}", f"{high:.{digits}f}"
    return first if first == last else f"{first}–{last}"


def rate_band(low: float, high: float) -> str:
    """A forecast with its unit: ``19–24 tokens/s``."""
    return tr("{number} tokens/s").format(number=band(low, high)).replace(" ", _SPACE)


def duration(seconds: float) -> str:
    """A length of time: ``0.8 s``, ``42 s``, ``3 min 05 s``, ``2 h 10 min``."""
    if seconds < 9.95:
        return f"{_short(seconds)}{_SPACE}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}{_SPACE}s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}{_SPACE}min{_SPACE}{rest:02d}{_SPACE}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}{_SPACE}h{_SPACE}{minutes:02d}{_SPACE}min"


def percent(ratio: float) -> str:
    """A share: ``12 %``; something that is not nothing never reads as 0."""
    if 0 < ratio < 0.005:
        return f"<1{_SPACE}%"
    return f"{ratio * 100:.0f}{_SPACE}%"


def energy(joules: float) -> str:
    """Energy in watt-hours: ``4.1 Wh``, ``0.02 Wh``."""
    return watt_hours(joules / _JOULES_PER_WH)


def watt_hours(wh: float) -> str:
    """Energy that is counted in them already: ``1.7 Wh``, ``0.31 Wh``."""
    digits = 1 if wh >= 0.95 else 2 if wh >= 0.095 else 3
    return f"{wh:.{digits}f}{_SPACE}Wh"


def power(watts: float) -> str:
    """Power: ``128 W``."""
    return f"{watts:.0f}{_SPACE}W"


def weights(number: int) -> str:
    """Parameters of a model: ``117 billion weights``, ``135 million weights``."""
    if number >= _FIRST_IN_BILLIONS:
        return tr("{number} billion weights").format(number=_billions(number))
    return tr("{number} million weights").format(number=f"{number / 1e6:.0f}")


def weights_alone(number: int) -> str:
    """The same where it has been said that weights are counted: ``5.1 billion``."""
    if number >= _FIRST_IN_BILLIONS:
        return tr("{number} billion").format(number=_billions(number))
    return tr("{number} million").format(number=f"{number / 1e6:.0f}")


def _billions(number: int) -> str:
    billions = number / 1e9
    return f"{billions:.0f}" if billions >= 9.95 else f"{billions:.1f}"
