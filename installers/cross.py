"""The extension compiled for Windows and for Apple silicon, to see that it can be.

`python -m installers.cross [FOLDER]` needs cmake, ninja and nanobind in its Python's environment,
and `nm`. The compiler is zig, from its package. Python's headers are those that this Python has,
with a `pyconfig.h` of ours for the other system; in place of Python's library for Windows stands a
list of the names that CPython exports. What comes out was linked but never loaded, so that no
package holds it. Also called by `make deep`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from installers.description import ROOT, RecipeError
from installers.macos import bundle
from installers.windows import portable

ZIG = "ziglang==0.17.1"
"""Not in the constraints: no environment of the gate holds it, since it takes 400 MB."""
_BOTH = """\
#define HAVE_DYNAMIC_LOADING 1
#define HAVE_SSIZE_T 1
#define HAVE_STDDEF_H 1
#define HAVE_SYS_STAT_H 1
#define HAVE_SYS_TYPES_H 1
#define WITH_THREAD 1
#define SIZEOF_DOUBLE 8
#define SIZEOF_FLOAT 4
#define SIZEOF_INT 4
#define SIZEOF_LONG_LONG 8
#define SIZEOF_PID_T 4
#define SIZEOF_SHORT 2
#define SIZEOF_SIZE_T 8
#define SIZEOF_TIME_T 8
#define SIZEOF_VOID_P 8
#define ALIGNOF_MAX_ALIGN_T 16
#define ALIGNOF_SIZE_T 8
"""


@dataclass(frozen=True)
class Target:
    """A system that the extension is compiled for."""

    name: str
    triple: str
    """As zig calls it."""
    suffix: str
    """What Python there looks for."""
    configuration: str
    """What its `pyconfig.h` has beside what both have."""
    options: tuple[str, ...]
    """For cmake."""
    rewritten: tuple[tuple[str, str], ...] = ()
    """Words of the linker that zig does not know or takes for something else, and what it is told
    in their place."""


_TAG = f"{sys.version_info[0]}{sys.version_info[1]}"
TARGETS = (
    Target(
        "windows",
        "x86_64-windows-gnu",
        f".cp{_TAG}-win_amd64.pyd",
        "#define MS_WINDOWS 1\n#define MS_WIN32 1\n#define MS_WIN64 1\n#define NT_THREADS 1\n"
        "#define Py_ENABLE_SHARED 1\n#define SIZEOF_LONG 4\n#define SIZEOF_WCHAR_T 2\n",
        ("-DCMAKE_SYSTEM_NAME=Windows", "-DCMAKE_SYSTEM_PROCESSOR=AMD64"),
        # What the Python that runs the check is linked with itself.
        (("-ldl", "-lm"),),
    ),
    Target(
        "macos",
        "aarch64-macos.14.0",
        f".cpython-{_TAG}-darwin.so",
        "#define HAVE_PTHREAD_H 1\n#define HAVE_SYS_TIME_H 1\n#define HAVE_UNISTD_H 1\n"
        "#define _POSIX_THREADS 1\n#define SIZEOF_LONG 8\n#define SIZEOF_WCHAR_T 4\n",
        ("-DCMAKE_SYSTEM_NAME=Darwin", "-DCMAKE_SYSTEM_PROCESSOR=arm64",
         "-DCMAKE_OSX_ARCHITECTURES=arm64", "-DCMAKE_OSX_SYSROOT="),
        # The names that Python brings stand in a file; a bundle would be left without exports.
        (("-Wl,@*", "-Wl,-undefined,dynamic_lookup"), ("-bundle", "-dynamiclib")),
    ),
)  # fmt: skip


def main(arguments: list[str]) -> int:
    """Compile for both systems; print what came of it."""
    place = Path(arguments[0]).absolute() if arguments else ROOT / "build" / "cross"
    try:
        zig = fetch_compiler(place)
        found = {target.name: build(target, zig, place / target.name) for target in TARGETS}
    except RecipeError as error:
        sys.stderr.write(f"larder: {error}\n")
        return 1
    sys.stdout.write(json.dumps({"compiler": ZIG, **found}, indent=2) + "\n")
    return 0


def fetch_compiler(place: Path) -> Path:
    """Have pip put zig into the folder, once; return the program."""
    zig = place / "zig" / "ziglang" / "zig"
    if not zig.exists():
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-compile"]
        command = [*pip, "--target", str(place / "zig"), ZIG]
        if subprocess.call(command, cwd=ROOT, stdout=sys.stderr) != 0:
            raise RecipeError(f"pip could not install {ZIG}; its own words stand above.")
    return zig


def build(target: Target, zig: Path, place: Path) -> dict[str, object]:
    """Compile and link for one system; return what the file says of itself."""
    headers = lay_headers(target, place / "include")
    words = f"c++ -target {target.triple}"
    compiler = _wrapped(zig, words, place / "compiler", target.rewritten)
    options = [
        f"-DCMAKE_CXX_COMPILER={compiler}",
        f"-DCMAKE_AR={_wrapped(zig, 'ar', place / 'ar')}",
        f"-DCMAKE_RANLIB={_wrapped(zig, 'ranlib', place / 'ranlib')}",
        f"-DPython_EXECUTABLE={sys.executable}",
        f"-DPython_INCLUDE_DIR={headers}",
        f"-DNB_SUFFIX={target.suffix}",
        f"-DNB_SUFFIX_S={target.suffix}",
        *target.options,
    ]
    if target.name == "windows":
        options.append(f"-DPython_LIBRARY={import_library(zig, place)}")
    tools = Path(sys.executable).parent
    made = place / "build"
    configure = [str(tools / "cmake"), "-S", str(ROOT), "-B", str(made), "-G", "Ninja"]
    configure.append(f"-DCMAKE_MAKE_PROGRAM={tools / 'ninja'}")
    environment = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": str(place.parent / "zig-cache")}
    for command in ([*configure, *options], [str(tools / "cmake"), "--build", str(made)]):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            said = " ".join((done.stdout + done.stderr).split()[-80:])
            raise RecipeError(f"The extension does not compile for {target.name}: {said}")
    (file,) = made.rglob(f"_native{target.suffix}")
    asked = asked_for(target, file)
    return {"file": file.name, "bytes": file.stat().st_size, "asks_for": asked}


def lay_headers(target: Target, place: Path) -> Path:
    """Copy this Python's headers and give them the other system's configuration."""
    if place.exists():
        shutil.rmtree(place)
    shutil.copytree(sysconfig.get_paths()["include"], place)
    (place / "pyconfig.h").write_text(_BOTH + target.configuration, encoding="ascii")
    return place


def import_library(zig: Path, place: Path) -> Path:
    """Make what the linker wants of python3XX.dll, of the names that this Python exports."""
    listed = place / f"python{_TAG}.def"
    lines = [f"  {name}{'' if is_code else ' DATA'}\n" for name, is_code in exported()]
    listed.write_text(f"LIBRARY python{_TAG}.dll\nEXPORTS\n{''.join(lines)}", encoding="ascii")
    library = place / f"python{_TAG}.lib"
    command = [str(zig), "dlltool", "-m", "i386:x86-64", "-d", str(listed), "-l", str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RecipeError(f"zig makes no library of {listed.name}: {done.stderr.strip()[-300:]}")
    return library


def exported() -> list[tuple[str, bool]]:
    """The names of Python's own interface, each with whether it is a function."""
    kept = sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("LDLIBRARY")
    for path in (Path(*map(str, kept)), Path(sys.executable).resolve()):
        command = ["nm", "-D", "--defined-only", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        parts = [line.split() for line in done.stdout.splitlines()]
        names = [
            (one[2].partition("@")[0], one[1] in "TW")
            for one in parts if len(one) == 3 and one[2].startswith(("Py", "_Py"))
        ]  # fmt: skip
        if names:
            return sorted(set(names))
    raise RecipeError("nm finds no names in this Python; install binutils.")


def _wrapped(
    zig: Path, words: str, place: Path, rewritten: tuple[tuple[str, str], ...] = ()
) -> Path:
    """A program of one word, as cmake wants it, that runs one of zig's."""
    cases = " ".join(f"{before}) word={after};;" for before, after in rewritten)
    change = f'for word do shift; case "$word" in {cases} esac; set -- "$@" "$word"; done\n'
    place.parent.mkdir(parents=True, exist_ok=True)
    text = f'#!/bin/sh\n{change if cases else ""}exec "{zig}" {words} "$@"\n'
    place.write_text(text, encoding="utf-8")
    place.chmod(0o755)
    return place


def asked_for(target: Target, file: Path) -> list[str]:
    """The libraries that the file asks for.

    Raises:
        RecipeError: it is no module of Python's, is for another processor, or asks for what the
            system does not bring.
    """
    if b"PyInit__native" not in file.read_bytes():
        raise RecipeError(f"{file.name} exports nothing that Python could begin with.")
    if target.name == "macos":
        bundle.check(file.parent)
        return list(bundle.Headers(file).libraries or ())
    headers = portable.Headers(file)
    own = f"python{_TAG}.dll"
    strangers = [name for name in headers.imports if name != own and not portable.is_system(name)]
    if headers.machine != portable.AMD64 or strangers or own not in headers.imports:
        raise RecipeError(
            f"{file.name} is for processor {headers.machine:#x} and asks for "
            f"{', '.join(headers.imports)}; it should ask for {own} and Windows' own alone."
        )
    return list(headers.imports)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
