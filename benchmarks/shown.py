"""When a program's window is on the screen: asked of the X server, without taking its time."""

from __future__ import annotations

import ctypes
import select
import time
from types import TracebackType
from typing import Self

_STRUCTURE_NOTIFY = 1 << 19  # SubstructureNotifyMask
_MAP_NOTIFY = 19
_ALL_PLANES = 0xFFFFFFFFFFFFFFFF
_Z_PIXMAP = 2
_LOOK_S = 0.01


class _Event(ctypes.Union):
    _fields_ = (("type", ctypes.c_int), ("room", ctypes.c_long * 24))


class _Mapped(ctypes.Structure):
    """The beginning of XMapEvent."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("serial", ctypes.c_ulong),
        ("send_event", ctypes.c_int),
        ("display", ctypes.c_void_p),
        ("event", ctypes.c_ulong),
        ("window", ctypes.c_ulong),
    )


class _Image(ctypes.Structure):
    """The beginning of XImage."""

    _fields_ = (
        ("width", ctypes.c_int),
        ("height", ctypes.c_int),
        ("xoffset", ctypes.c_int),
        ("format", ctypes.c_int),
        ("data", ctypes.POINTER(ctypes.c_ubyte)),
        ("byte_order", ctypes.c_int),
        ("bitmap_unit", ctypes.c_int),
        ("bitmap_bit_order", ctypes.c_int),
        ("bitmap_pad", ctypes.c_int),
        ("depth", ctypes.c_int),
        ("bytes_per_line", ctypes.c_int),
    )


class Watch:
    """Waits for a window with a name to be mapped, and then for its picture."""

    def __init__(self, display: str, name: str) -> None:
        self._x = ctypes.CDLL("libX11.so.6")
        self._x.XOpenDisplay.restype = ctypes.c_void_p
        self._x.XDefaultRootWindow.restype = ctypes.c_ulong
        self._x.XGetImage.restype = ctypes.POINTER(_Image)
        self._name = name
        self._display = ctypes.c_void_p(self._x.XOpenDisplay(display.encode()))
        if not self._display.value:
            raise SystemExit(f"the screen {display} cannot be asked")
        root = ctypes.c_ulong(self._x.XDefaultRootWindow(self._display))
        # A window may go between two questions; that is no reason to end.
        self._forgiving = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(
            lambda _display, _error: 0
        )
        self._x.XSetErrorHandler(self._forgiving)
        self._x.XSelectInput(self._display, root, ctypes.c_long(_STRUCTURE_NOTIFY))
        self._x.XSync(self._display, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._x.XCloseDisplay(self._display)

    def wait(self, seconds: float) -> None:
        """Return once the window shows more than one colour."""
        until_s = time.perf_counter() + seconds
        window = self._mapped(until_s)
        while not self._is_painted(window):
            if time.perf_counter() > until_s:
                raise SystemExit(f"the window {self._name} stayed empty for {seconds:.0f} s")
            time.sleep(_LOOK_S)

    def _mapped(self, until_s: float) -> int:
        event = _Event()
        socket = self._x.XConnectionNumber(self._display)
        while (left_s := until_s - time.perf_counter()) > 0:
            if not self._x.XPending(self._display):
                select.select([socket], [], [], min(left_s, 1.0))
                continue
            self._x.XNextEvent(self._display, ctypes.byref(event))
            if event.type == _MAP_NOTIFY:
                window = int(ctypes.cast(ctypes.byref(event), ctypes.POINTER(_Mapped))[0].window)
                if self._name_of(window) == self._name:
                    return window
        raise SystemExit(f"no window {self._name} was seen")

    def _name_of(self, window: int) -> str:
        text = ctypes.c_char_p()
        if not self._x.XFetchName(self._display, ctypes.c_ulong(window), ctypes.byref(text)):
            return ""
        return (text.value or b"").decode("utf-8", "replace")

    def _is_painted(self, window: int) -> bool:
        """Whether one line of pixels, a third from the top, has several colours."""
        root, place = ctypes.c_ulong(), ctypes.c_int()
        width, height, border, depth = (ctypes.c_uint() for _ in range(4))
        found = self._x.XGetGeometry(
            self._display, ctypes.c_ulong(window), ctypes.byref(root), ctypes.byref(place),
            ctypes.byref(place), ctypes.byref(width), ctypes.byref(height), ctypes.byref(border),
            ctypes.byref(depth),
        )  # fmt: skip
        if not found:
            return False
        image = self._x.XGetImage(
            self._display, ctypes.c_ulong(window), 0, ctypes.c_int(height.value // 3), width, 1,
            ctypes.c_ulong(_ALL_PLANES), _Z_PIXMAP,
        )  # fmt: skip
        if not image:
            return False
        line = bytes(image[0].data[: image[0].bytes_per_line])
        self._x.XDestroyImage(image)
        return len({line[at : at + 4] for at in range(0, 4 * width.value, 4)}) > 1
