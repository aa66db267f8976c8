"""The installer for Windows, made on Linux or Windows from wheels for Windows.

No registry that the recipe may use carries Python for Windows, so that its "embeddable package" is
handed in as a folder or zip file (`installers/sources.toml` says where it is published).
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from installers import demo, engine, icons, licences, marker, pack, qt_texts, wheels
from installers.description import Description, RecipeError
from installers.windows import portable

_HERE = Path(__file__).resolve().parent
_PYTHON_FILES = (
    "python.exe", "python3.dll", "python311.dll", "python311.zip", "_ctypes.pyd", "_sqlite3.pyd",
)  # fmt: skip
# Microsoft's run-time libraries of C++, which torch and Qt ask for; the package carries them.
_RUN_TIME = "msvc-runtime"
_RUN_TIME_FILES = re.compile(r"\.data/data/Scripts/((?:msvcp|vcruntime|concrt)140\w*\.dll)$")
# With this file beside it Python looks nowhere else: no registry, no variables, no user packages.
_PATHS = "python311.zip\n.\n..\\packages\n"


@dataclass(frozen=True)
class Sources:
    """Where the recipe keeps what it fetches, and what it is given."""

    cache: Path
    demo: Path
    python: Path
    """A folder or zip file of Python's embeddable package."""
    own_wheel: Path | None = None
    """Our wheel built on Windows, with the extension; without it the kernels are slow ones."""
    compressor: str = "lzma"


def build(description: Description, sources: Sources, tree: Path, target: Path) -> int:
    """Make the tree anew and the installer; return how many native files were looked at."""
    pack.need("makensis", "x86_64-w64-mingw32-gcc", "x86_64-w64-mingw32-windres")
    if tree.exists():
        shutil.rmtree(tree)
    (tree / "python").mkdir(parents=True)
    _lay_python(sources.python, tree / "python")
    found = wheels.fetch(description, wheels.WINDOWS, sources.cache / "wheels-windows")
    own = sources.own_wheel or wheels.build_own(
        sources.cache / "own-plain", is_pure=sys.platform != "win32"
    )
    packages = tree / "packages"
    wheels.unpack([own, *found], packages, "windows")
    _lay_run_time(sources.cache / "run-time", tree)
    demo.add(sources.demo, packages)
    marker.write(tree, packages, "windows")
    sys.stdout.write(f"{engine.write(description, packages, wheels.WINDOWS)}\n")
    others = [_python_component(tree), mingw_component(tree), *qt_texts.collect(tree / "licences")]
    licences.collect(description, packages, tree / "licences", others)
    pictures = icons.draw(description.icon, sources.cache / "icons")
    icon = sources.cache / "larder.ico"
    icon.write_bytes(icons.ico(pictures))
    _launchers(tree, icon, sources.cache)
    looked_at = portable.check(tree)
    write_content(tree)
    _installer(description, tree, icon, sources.compressor, target)
    return looked_at


def _lay_python(source: Path, target: Path) -> None:
    """Put Python's embeddable package into the tree."""
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    elif zipfile.is_zipfile(source):
        with zipfile.ZipFile(source) as archive:
            for name in archive.namelist():
                wheels.place_of(name)
            archive.extractall(target)
    else:
        raise RecipeError(
            f"--python names {source}, which is neither a folder nor a zip file; give it the "
            "embeddable package of Python 3.11 for 64-bit Windows."
        )
    missing = [name for name in _PYTHON_FILES if not (target / name).exists()]
    if missing:
        raise RecipeError(
            f"{source.name} has no {', '.join(missing)}; give --python the embeddable package of "
            "Python 3.11 for 64-bit Windows."
        )
    (target / "python311._pth").write_text(_PATHS, encoding="ascii", newline="\r\n")


def _lay_run_time(cache: Path, tree: Path) -> None:
    """Put Microsoft's libraries beside python.exe, where every module finds them."""
    (wheel,) = wheels.fetch_one(_RUN_TIME, wheels.WINDOWS, cache)
    wheels.unpack([wheel], tree / "packages", "windows")
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            found = _RUN_TIME_FILES.search(name)
            if found:
                # Python's own copies are older, and may be written in capitals.
                for old in (tree / "python").iterdir():
                    if old.name.lower() == found[1].lower():
                        old.unlink()
                (tree / "python" / found[1]).write_bytes(archive.read(name))
    for path in (tree / "packages").glob("msvc_runtime*.pyd"):
        path.unlink()


def _python_component(tree: Path) -> licences.Component:
    """Python as the About page lists it."""
    text = tree / "python" / "LICENSE.txt"
    if not text.exists():
        raise RecipeError("Python's LICENSE.txt is missing in its folder; take the whole package.")
    kept = tree / "licences" / "Python-LICENSE.txt"
    kept.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(text, kept)
    return licences.Component("Python", "3.11", "PSF-2.0", (kept.name,))


def mingw_component(tree: Path) -> licences.Component:
    """What is linked into the launchers, as the About page lists it."""
    compiler = shutil.which("x86_64-w64-mingw32-gcc")
    top = Path(compiler).resolve().parent.parent if compiler else Path()
    places = ("share/doc/mingw-w64-x86-64-dev/copyright", "share/licenses/crt/COPYING*run*")
    texts = [path for place in places for path in sorted(top.glob(place))]
    if not texts:
        raise RecipeError(
            f"MinGW-w64's licence is not at {top / places[0]}; its run-time library is inside the "
            "launchers, so put its text (COPYING.MinGW-w64-runtime.txt) there."
        )
    kept = tree / "licences" / "MinGW-w64-LICENSE.txt"
    kept.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(texts[0], kept)
    return licences.Component("mingw-w64", "", "see its text", (kept.name,))


def _launchers(tree: Path, icon: Path, scratch: Path) -> None:
    """Compile larder.exe and larderctl.exe, with the icon inside."""
    script = scratch / "larder.rc"
    script.write_text(f'1 ICON "{icon.as_posix()}"\n', encoding="utf-8")
    resource = scratch / "larder-icon.o"
    command = ["x86_64-w64-mingw32-windres", str(script), str(resource)]
    if subprocess.run(command, check=False).returncode != 0:
        raise RecipeError("The icon cannot be compiled; windres' own words stand above.")
    for name, flags in (
        ("larder.exe", ["-mwindows", '-DMODULE=L"app"']),
        ("larderctl.exe", ["-DTERMINAL", '-DMODULE=L"runtime.cli"']),
    ):
        command = ["x86_64-w64-mingw32-gcc", "-O2", "-Wall", "-municode", "-static", "-s", *flags]
        command += ["-Wl,--no-insert-timestamp", "-o", str(tree / name)]
        command += [str(_HERE / "launcher.c"), str(resource)]
        if subprocess.run(command, check=False).returncode != 0:
            raise RecipeError(f"{name} does not compile; gcc's own words stand above.")


def write_content(tree: Path) -> None:
    """Write the checksum of every file of the tree, in the form that sha256sum reads.

    Raises:
        RecipeError: two names differ in their capitals alone.
    """
    target = tree / "content.sha256"
    target.unlink(missing_ok=True)
    lines = []
    names = Counter(path.relative_to(tree).as_posix().lower() for path in tree.rglob("*"))
    same = sorted(name for name, number in names.items() if number > 1)
    if same:
        raise RecipeError(
            f"{', '.join(same)} is there twice, in other capitals, which Windows cannot hold; "
            "leave one out."
        )
    for path in sorted(tree.rglob("*")):
        if path.is_file():
            name = path.relative_to(tree).as_posix()
            lines.append(f"{pack.checksum(path)}  {name}\n")
    target.write_text("".join(lines), encoding="utf-8")


def differences(tree: Path, installed: Path) -> list[str]:
    """What of the tree's content is not in a folder as it was written down, or is too much."""
    listed = (tree / "content.sha256").read_text(encoding="utf-8").splitlines()
    wanted = {line[66:]: line[:64] for line in listed}
    found = {
        path.relative_to(installed).as_posix(): path for path in installed.rglob("*")
        if path.is_file()
    }  # fmt: skip
    wrong = [
        name for name, value in wanted.items()
        if name not in found or pack.checksum(found[name]) != value
    ]  # fmt: skip
    allowed = {"uninstall.exe", "content.sha256"}
    return sorted([*wrong, *(name for name in found if name not in wanted and name not in allowed)])


def _installer(
    description: Description, tree: Path, icon: Path, compressor: str, target: Path
) -> None:
    """Have NSIS make the one file."""
    kib = sum(path.stat().st_size for path in tree.rglob("*") if path.is_file()) // 1024
    told = {
        "NAME": description.name, "TITLE": description.title, "VERSION": description.version,
        "SUMMARY": description.summary, "TREE": str(tree), "ICON": str(icon), "OUT": str(target),
        "KIB": str(kib), "COMPRESSOR": compressor,
    }  # fmt: skip
    command = ["makensis", "-V2", *(f"-D{name}={value}" for name, value in told.items())]
    if subprocess.run([*command, str(_HERE / "larder.nsi")], check=False).returncode != 0:
        raise RecipeError("NSIS could not make the installer; its own words stand above.")
    if sys.platform != "win32":
        target.chmod(0o644)
