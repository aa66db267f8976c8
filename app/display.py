"""Whether a window can be shown. Qt itself would abort the process where it cannot."""

import ctypes
import os
import sys
from collections.abc import Mapping
from pathlib import Path

_OWN_PLATFORMS = ("xcb", "wayland")


def display_problem(environment: Mapping[str, str], platform: str = sys.platform) -> str:
    """Return why no window can be shown, in technical words; empty if one can."""
    if platform != "linux":
        return ""
    chosen = environment.get("QT_QPA_PLATFORM", "").partition(":")[0].partition(";")[0]
    if chosen and not chosen.startswith(_OWN_PLATFORMS):
        return ""
    problems = []
    if environment.get("WAYLAND_DISPLAY") and not chosen.startswith("xcb"):
        problems.append(_wayland_problem())
    if environment.get("DISPLAY") and not chosen.startswith("wayland"):
        problems.append(_x11_problem())
    if not problems:
        return "no screen"
    return "" if "" in problems else problems[-1]


def _wayland_problem() -> str:
    """Return why the Wayland compositor cannot be used; empty if it can."""
    try:
        library = ctypes.CDLL("libwayland-client.so.0")
    except OSError as error:
        return str(error)
    library.wl_display_connect.restype = ctypes.c_void_p
    library.wl_display_connect.argtypes = (ctypes.c_char_p,)
    library.wl_display_disconnect.argtypes = (ctypes.c_void_p,)
    display = library.wl_display_connect(None)
    if not display:
        return "the Wayland compositor does not answer"
    library.wl_display_disconnect(display)
    return ""


def _x11_problem() -> str:
    """Return why the X server cannot be used; empty if it can."""
    try:
        library = ctypes.CDLL("libxcb.so.1")
        plugin = _qt_folder() / "plugins" / "platforms" / "libqxcb.so"
        if plugin.exists():
            ctypes.CDLL(str(plugin), mode=os.RTLD_LAZY)
    except OSError as error:
        return str(error)
    library.xcb_connect.restype = ctypes.c_void_p
    library.xcb_connect.argtypes = (ctypes.c_char_p, ctypes.c_void_p)
    library.xcb_connection_has_error.argtypes = (ctypes.c_void_p,)
    library.xcb_disconnect.argtypes = (ctypes.c_void_p,)
    connection = library.xcb_connect(None, None)
    has_error = library.xcb_connection_has_error(connection) != 0
    library.xcb_disconnect(connection)
    return "the X server does not answer" if has_error else ""


def _qt_folder() -> Path:
    """Return where PySide6 keeps Qt."""
    import PySide6

    return Path(PySide6.__path__[0]) / "Qt"
