"""Large pages for memory that came to lie in ordinary ones, because none was free at first."""

import ctypes
import errno
import sys
from collections.abc import Callable, Iterable, Iterator

Span = tuple[int, int]
"""Address and bytes."""
Collapse = Callable[[int], int]
"""Puts what lies at an address into a large page; returns 0 or the number of an error."""

LARGE_PAGE_BYTES = 2 * 1024 * 1024
"""The usual size of a large page."""
_COLLAPSE = 25
"""``MADV_COLLAPSE`` of Linux 6.1 and later."""
_MAX_REFUSALS = 16
"""Each can take milliseconds of search for free memory that lies together."""
_WITHOUT_MEMORY = frozenset({errno.ENOMEM, errno.EAGAIN})


def gather(
    spans: Iterable[Span],
    is_wanted: Callable[[], bool] = lambda: True,
    collapse: Collapse | None = None,
) -> int:
    """Put memory into large pages where it is not; return how many the system made or had.

    Spans that could not fill one are left alone: a large page that small neighbours share is not
    given back before the last of them is. What is written or read meanwhile waits for a moment. It
    ends early when it is no longer wanted, when the system finds no room, and on systems that
    cannot do it.
    """
    collapse = collapse or _system_collapse()
    if collapse is None:
        return 0
    num_large = num_refused = 0
    for address in _large_pages(spans):
        if not is_wanted() or num_refused >= _MAX_REFUSALS:
            break
        refusal = collapse(address)
        num_large += refusal == 0
        num_refused += refusal in _WITHOUT_MEMORY
    return num_large


def _large_pages(spans: Iterable[Span]) -> Iterator[int]:
    """Yield where whole large pages begin; neighbouring spans are one."""
    first = end = 0
    for start, num_bytes in sorted(each for each in spans if each[1] >= LARGE_PAGE_BYTES):
        if start != end:
            yield from _within(first, end)
            first = start
        end = start + num_bytes
    yield from _within(first, end)


def _within(first: int, end: int) -> range:
    start = -(-first // LARGE_PAGE_BYTES) * LARGE_PAGE_BYTES
    return range(start, end - LARGE_PAGE_BYTES + 1, LARGE_PAGE_BYTES)


def _system_collapse() -> Collapse | None:
    """Return the system's own way, None where it has none."""
    if sys.platform != "linux":
        return None
    advise = ctypes.CDLL(None, use_errno=True).madvise
    advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)

    def collapse(address: int) -> int:
        return ctypes.get_errno() if advise(address, LARGE_PAGE_BYTES, _COLLAPSE) else 0

    return collapse
