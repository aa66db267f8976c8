"""Python and small libraries out of Debian's packages, laid out so that they run from any folder.

apt checks the packages by its signed lists. Debian's interpreter finds its library by looking from
its own file upwards for `lib/python3.11/os.py`, so that it needs no address of where it lies.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from installers.description import RecipeError
from installers.linux import libraries

PYTHON = "python3.11"
_PYTHON_PACKAGES = ("python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib")
# Package -> the libraries of it that come along, because not every desktop has them.
_LIBRARIES = {
    "libbrotli1": ("libbrotlicommon.so.1", "libbrotlidec.so.1"),
    "libbz2-1.0": ("libbz2.so.1.0",),
    "libffi8": ("libffi.so.8",),
    "liblzma5": ("liblzma.so.5",),
    "libsqlite3-0": ("libsqlite3.so.0",),
    "libssl3": ("libssl.so.3", "libcrypto.so.3"),
    "libxcb-cursor0": ("libxcb-cursor.so.0",),
    "libxcb-icccm4": ("libxcb-icccm.so.4",),
    "libxcb-image0": ("libxcb-image.so.0",),
    "libxcb-keysyms1": ("libxcb-keysyms.so.1",),
    "libxcb-render-util0": ("libxcb-render-util.so.0",),
    "libxcb-util1": ("libxcb-util.so.1",),
    "libxcb-xkb1": ("libxcb-xkb.so.1",),
    "libxkbcommon-x11-0": ("libxkbcommon-x11.so.0",),
    "libxkbcommon0": ("libxkbcommon.so.0",),
}
# readline is left out for its licence, the others because nothing here uses them.
_LEFT_OUT = re.compile(
    r"lib-dynload/(readline|nis|_dbm|_curses|_uuid|_crypt|ossaudiodev|audioop|_test|_xx|xx|_ctypes_t)"
    r"|^(test|idlelib|lib2to3|pydoc_data|tkinter|turtledemo|ensurepip|config-|distutils/command"
    r"|__pycache__|venv|curses|dbm)|/tests?/|/__pycache__/|(turtle|crypt|this|antigravity)\.py$"
    r"|EXTERNALLY-MANAGED$|sitecustomize\.py$"
)


def fetch(folder: Path) -> list[Path]:
    """Have apt put the packages into a folder, checked by its lists; return them."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [*_PYTHON_PACKAGES, *_LIBRARIES]
    done = subprocess.run(
        ["apt-get", "-qq", "download", *names],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        raise RecipeError(
            f"apt-get could not download {PYTHON} and its libraries ({last}); "
            "build on Debian 12, after apt-get update."
        )
    found: list[Path] = []
    for name in names:
        files = sorted(folder.glob(f"{name}_*.deb"), key=lambda path: path.stat().st_mtime)
        if not files:
            raise RecipeError(f"apt-get brought no file of {name}; remove {folder} and try again.")
        found.append(files[-1])
    return found


def lay_out(debs: list[Path], tree: Path) -> None:
    """Make `python/` in a tree: the interpreter, its library, and libraries it loads.

    Leaves the copyright files of the packages in `licences/`.
    """
    with tempfile.TemporaryDirectory(prefix="larder-debian-") as scratch:
        root = Path(scratch)
        for deb in debs:
            subprocess.run(["dpkg-deb", "-x", str(deb), scratch], check=True)
        python = tree / "python"
        (python / "bin").mkdir(parents=True)
        shutil.copy2(root / "usr/bin" / PYTHON, python / "bin" / PYTHON)
        _copy_library(root / "usr/lib" / PYTHON, python / "lib" / PYTHON)
        _copy_shared(root, python / "lib")
        for notice in sorted(root.glob("usr/share/doc/*/copyright")):
            kept = tree / "licences" / notice.parent.name / "copyright"
            kept.parent.mkdir(parents=True, exist_ok=True)
            if not notice.is_symlink():
                shutil.copyfile(notice, kept)
    _set_search_paths(python)
    _leave_out_user_packages(python / "lib" / PYTHON / "site.py")


def _copy_library(source: Path, target: Path) -> None:
    """The standard library, without what `_LEFT_OUT` names."""
    for path in sorted(source.rglob("*")):
        name = path.relative_to(source).as_posix()
        if not path.is_file() or _LEFT_OUT.search(name) or path.suffix == ".pyc":
            continue
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)  # follows links into /etc
        place.chmod(0o644)


def _copy_shared(root: Path, target: Path) -> None:
    """The shared libraries under the names they are asked for."""
    target.mkdir(parents=True, exist_ok=True)
    for package, names in _LIBRARIES.items():
        for name in names:
            places = [*root.glob(f"usr/lib/*/{name}"), *root.glob(f"lib/*/{name}")]
            if not places:
                raise RecipeError(f"{package} has no {name} any more; look at what it brings.")
            shutil.copyfile(places[0].resolve(), target / name)
            (target / name).chmod(0o644)


def _set_search_paths(python: Path) -> None:
    """Have our libraries found beside the files that load them, and nowhere by address."""
    libraries.set_search_path(python / "bin" / PYTHON, "$ORIGIN/../lib")
    for path in sorted((python / "lib").glob("lib*.so*")):
        libraries.set_search_path(path, "$ORIGIN")
    for path in sorted((python / "lib" / PYTHON / "lib-dynload").glob("*.so")):
        libraries.set_search_path(path, "$ORIGIN/../..")


def _leave_out_user_packages(site: Path) -> None:
    """Have nothing imported that a person installed for another Python."""
    text = site.read_text(encoding="utf-8")
    changed = text.replace("ENABLE_USER_SITE = None", "ENABLE_USER_SITE = False", 1)
    if changed == text:
        raise RecipeError("site.py has no ENABLE_USER_SITE = None any more; mend this recipe.")
    site.write_text(changed, encoding="utf-8")
