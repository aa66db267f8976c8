"""System libraries and programs that no package registry of Python carries, on Linux.

Which ones are missing is read off the files that Qt loads; what brings them is a Debian or Ubuntu
package, installed here when this runs as root, otherwise named in one line to run.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from console import CommandError, output_of, say

# What Qt loads by name -> the Debian and Ubuntu package that brings it.
PACKAGES = {
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libGLX.so.0": "libglx0",
    "libICE.so.6": "libice6",
    "libOpenGL.so.0": "libopengl0",
    "libSM.so.6": "libsm6",
    "libX11-xcb.so.1": "libx11-xcb1",
    "libX11.so.6": "libx11-6",
    "libbrotlicommon.so.1": "libbrotli1",
    "libbrotlidec.so.1": "libbrotli1",
    "libdbus-1.so.3": "libdbus-1-3",
    "libdrm.so.2": "libdrm2",
    "libfontconfig.so.1": "libfontconfig1",
    "libfreetype.so.6": "libfreetype6",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libgssapi_krb5.so.2": "libgssapi-krb5-2",
    "libgthread-2.0.so.0": "libglib2.0-0",
    "libwayland-client.so.0": "libwayland-client0",
    "libwayland-cursor.so.0": "libwayland-cursor0",
    "libwayland-egl.so.1": "libwayland-egl1",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-glx.so.0": "libxcb-glx0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-render.so.0": "libxcb-render0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-shm.so.0": "libxcb-shm0",
    "libxcb-sync.so.1": "libxcb-sync1",
    "libxcb-util.so.1": "libxcb-util1",
    "libxcb-xfixes.so.0": "libxcb-xfixes0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
    "libxcb.so.1": "libxcb1",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libxkbcommon.so.0": "libxkbcommon0",
    "libz.so.1": "zlib1g",
    "libzstd.so.1": "libzstd1",
}
# A program the tests start -> its package.
TEST_PROGRAMS = {"Xvfb": "xvfb", "xvfb-run": "xvfb", "xauth": "xauth", "fusermount3": "fuse3"}
_LOADED = (
    "Qt/lib/libQt6Gui.so.6",
    "Qt/lib/libQt6Widgets.so.6",
    "Qt/lib/libQt6Network.so.6",
    "Qt/lib/libQt6DBus.so.6",
    "Qt/plugins/platforms/libqxcb.so",
    "Qt/plugins/platforms/libqoffscreen.so",
)


def ensure_window(python: Path) -> None:
    """Make sure that Qt can open a window here.

    Raises:
        CommandError: libraries are missing and cannot be installed; the text has the line to run.
    """
    if sys.platform == "linux":
        missing = missing_libraries(python)
        known = {PACKAGES[name] for name in missing if name in PACKAGES}
        provide(known, f"Qt needs {', '.join(missing)}")
        # What is not in the table may have come along with what is.
        unknown = set(missing) - set(PACKAGES) and missing_libraries(python)
        if unknown:
            raise CommandError(
                f"Qt needs {', '.join(unknown)}; install them with this system's package manager."
            )


def ensure_test_programs() -> None:
    """Make sure that the tests can start a virtual screen and a drive with faults."""
    if sys.platform == "linux":
        missing = [name for name in TEST_PROGRAMS if shutil.which(name) is None]
        provide({TEST_PROGRAMS[name] for name in missing}, f"The tests need {', '.join(missing)}")


def ensure_venv(python: str, complaint: str) -> bool:
    """After a failed `python -m venv`: bring what Debian splits off, or say the line to run.

    False where the complaint is about something else.
    """
    if sys.platform != "linux" or "ensurepip" not in complaint or shutil.which("apt-get") is None:
        return False
    _status, version = output_of(
        [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    )
    provide({f"python{version.strip()}-venv"}, f"{python} cannot make virtual environments yet")
    return True


def ensure_headers(python: Path) -> str | None:
    """Python's C headers, which Debian splits off: brought as root, else the line that does it."""
    ask = "import sysconfig; print(sysconfig.get_path('include'), sysconfig.get_python_version())"
    folder, version = output_of([python, "-c", ask])[1].split()
    if Path(folder, "Python.h").exists() or shutil.which("apt-get") is None:
        return None
    try:
        provide({f"python{version}-dev"}, "The native extension needs Python's headers")
    except CommandError as error:
        return str(error)
    return None


def compiler() -> str | None:
    """A C++ compiler on this machine."""
    return next(filter(shutil.which, ("c++", "g++", "clang++", "cl")), None)


def missing_libraries(python: Path) -> list[str]:
    """Names of shared libraries that the loader cannot find for Qt's own files."""
    folders = sorted(python.parent.parent.glob("lib/python3.*/site-packages/PySide6"))
    if not folders:
        return []
    files = [folders[0] / part for part in _LOADED if (folders[0] / part).exists()]
    status, text = output_of(["ldd", *files])
    return [] if status == 127 else missing_in(text)


def missing_in(text: str) -> list[str]:
    """The libraries that ldd's answer calls missing, each once."""
    return sorted(set(re.findall(r"^\s*(\S+) => not found", text, flags=re.MULTILINE)))


def provide(packages: Iterable[str], reason: str) -> None:
    """Install Debian packages when allowed, or say the one line that does it.

    Raises:
        CommandError: they cannot be installed here; the text has the line to run.
    """
    names = sorted(set(packages))
    if not names:
        return
    if shutil.which("apt-get") is None:
        raise CommandError(f"{reason}; install them with this system's package manager.")
    if os.geteuid() != 0:
        raise CommandError(
            f"{reason}. Run this line, then the same command again:\n"
            f"    sudo apt-get install -y {' '.join(names)}"
        )
    say(f"{reason}: installing {' '.join(names)}")
    _apt_get("update")
    _apt_get("install", "-y", "--no-install-recommends", *names)


def _apt_get(*arguments: str) -> None:
    """Run apt-get without its chatter; what it says is shown only when it fails."""
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    status, text = output_of(["apt-get", "-qq", *arguments], env=quiet)
    if status != 0:
        print(text[-3000:], flush=True)
        raise CommandError(f"apt-get {arguments[0]} failed (its own words stand above)")
