"""Python packages for a platform: fetched by name with pip, laid into a folder without it."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from installers.cuts import DISTRIBUTIONS, is_cut
from installers.description import ROOT, Description, RecipeError


@dataclass(frozen=True)
class Platform:
    """What pip is told of the PC that the packages are for."""

    system: str
    """`linux`, `windows` or `macos`."""
    tags: tuple[str, ...]
    python: str = "3.11"


LINUX = Platform(
    "linux",
    (
        *(f"manylinux_2_{minor}_x86_64" for minor in range(34, 4, -1)),
        *("manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64", "linux_x86_64"),
    ),
)
WINDOWS = Platform("windows", ("win_amd64",))
MACOS = Platform(
    "macos",
    tuple(
        f"macosx_{major}_0_{kind}" for major in range(14, 9, -1) for kind in ("arm64", "universal2")
    ),
)


def normal_name(name: str) -> str:
    """Return the name of a package as all its spellings are compared."""
    return re.sub(r"[-_.]+", "-", name).lower()


def fetch(
    description: Description, platform: Platform, folder: Path, torch_source: str = ""
) -> list[Path]:
    """Have pip put the wheels for a platform into a folder; return those that are wanted.

    `torch_source` is the index that torch comes from, where pip's own serves another build.
    """
    folder.mkdir(parents=True, exist_ok=True)
    num_before = len(list(folder.glob("*.whl")))
    where = ["-i", torch_source] if torch_source else []
    _download(platform, folder, description.requirements)
    _download(platform, folder, (*description.engine, "--no-deps", *where))
    _download(platform, folder, ("typing-extensions", "--no-deps"))
    found = [path for path in sorted(folder.glob("*.whl")) if is_wanted(path.name)]
    names = Counter(_name_in(path.name) for path in found)
    twice = sorted(name for name, number in names.items() if number > 1)
    if twice:
        raise RecipeError(
            f"{folder} holds {', '.join(twice)} in two versions (it held {num_before} files "
            "before); remove the folder and build again."
        )
    return found


def fetch_one(name: str, platform: Platform, folder: Path) -> list[Path]:
    """Have pip put the wheel of one package for a platform into a folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.whl"):
        old.unlink()
    _download(platform, folder, (name, "--no-deps"))
    return sorted(folder.glob("*.whl"))


def is_wanted(file_name: str) -> bool:
    """Whether a wheel goes into the packaged program."""
    return _name_in(file_name) not in DISTRIBUTIONS


def _name_in(file_name: str) -> str:
    """The package that a wheel's file name begins with."""
    return normal_name(file_name.partition("-")[0])


def _download(platform: Platform, folder: Path, wanted: Sequence[str]) -> None:
    """Run pip for some requirements of one platform."""
    version = platform.python.replace(".", "")
    command = [sys.executable, "-m", "pip", "download", "-q", "--only-binary", ":all:"]
    command += ["-d", str(folder), "-c", str(ROOT / "constraints.txt")]
    command += ["--implementation", "cp", "--python-version", platform.python]
    for abi in (f"cp{version}", "abi3", "none"):
        command += ["--abi", abi]
    for tag in platform.tags:
        command += ["--platform", tag]
    markers = [word for word in wanted if applies(word, platform)]
    if subprocess.call([*command, *markers], cwd=ROOT) != 0:
        raise RecipeError(
            f"pip could not fetch {', '.join(markers)} for {platform.tags[0]}; "
            "its own words stand above. Look at the connection and at pip's settings."
        )


def applies(requirement: str, platform: Platform) -> bool:
    """Whether the marker of a requirement holds there; only Python's version is asked about."""
    marker = requirement.partition(";")[2]
    limit = re.search(r"python_version\s*(<|>=)\s*'(\d+)\.(\d+)'", marker)
    if limit is None:
        return True
    wanted = (int(limit[2]), int(limit[3]))
    major, _, minor = platform.python.partition(".")
    is_older = (int(major), int(minor)) < wanted
    return is_older if limit[1] == "<" else not is_older


def build_own(folder: Path, *, is_pure: bool = False) -> Path:
    """Build the wheel of this tree with the tools of this environment; return it.

    `is_pure` leaves out the native extension, for a platform that cannot be compiled for here.

    Raises:
        RecipeError: it does not build, or came without the native extension.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("larder-*.whl"):
        old.unlink()
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    if is_pure:
        command += ["--config-settings", "wheel.cmake=false"]
    else:
        command += ["--config-settings", f"build-dir={ROOT / 'build' / 'native' / 'packaged'}"]
    if subprocess.call([*command, "--wheel-dir", str(folder), str(ROOT)], cwd=ROOT) != 0:
        raise RecipeError("The wheel of this tree does not build; pip's own words stand above.")
    (found,) = folder.glob("larder-*.whl")
    return found if is_pure else with_extension(found)


def with_extension(wheel: Path) -> Path:
    """Return a wheel of ours that holds the native extension.

    Raises:
        RecipeError: it does not.
    """
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    if not any(name.startswith("runtime/native/_native.") for name in names):
        raise RecipeError(
            "The wheel has no native extension; see that a C++ compiler and Python's headers are "
            "installed (make setup says what is missing), then build again."
        )
    return wheel


def unpack(wheels: Sequence[Path], packages: Path, system: str) -> dict[str, int]:
    """Lay wheels into a folder, cut as `cuts` says; return what was left out, in bytes a wheel.

    Raises:
        RecipeError: a wheel holds a path that would leave the folder, or two hold the same file.
    """
    left_out: dict[str, int] = {}
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            for entry in archive.infolist():
                if entry.is_dir():
                    continue
                path = place_of(entry.filename)
                if path is None or is_cut(path, system):
                    left_out[wheel.name] = left_out.get(wheel.name, 0) + entry.file_size
                    continue
                _lay(archive, entry, packages, path)
    return left_out


def place_of(name: str) -> str | None:
    """Where an entry of a wheel belongs below the folder of packages; None for no place."""
    parts = name.split("/")
    if ".." in parts or name.startswith(("/", "\\")) or ":" in parts[0]:
        raise RecipeError(f"A wheel names {name}, which leads out of its folder.")
    if not parts[0].endswith(".data"):
        return name
    return "/".join(parts[2:]) if parts[1] in ("purelib", "platlib") else None


def _lay(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, packages: Path, path: str) -> None:
    """Write one file, executable where the wheel says so."""
    target = packages / path
    if target.exists():
        if target.read_bytes() == archive.read(entry):
            return
        raise RecipeError(f"Two wheels hold {path}, with different contents.")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(archive.read(entry))
    is_program = (entry.external_attr >> 16) & 0o111
    target.chmod(0o755 if is_program else 0o644)
