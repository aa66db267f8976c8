"""The tree that all packages for Linux hold: it runs from wherever it lies."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from installers import demo, engine, icons, licences, marker, pack, qt_texts, wheels
from installers.description import Description, RecipeError
from installers.linux import debian_files, libraries, starter

PACKAGES = Path("python") / "lib" / debian_files.PYTHON / "dist-packages"
_LAUNCHER = Path(__file__).with_name("launcher.c")
# Run by the tree's own Python: says which modules of ours cannot be imported, and why.
_IMPORT = """
import importlib, pkgutil, sys
import app, runtime
for package in (app, runtime):
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if found.name.endswith("__main__"):
            continue
        try:
            importlib.import_module(found.name)
        except ImportError as error:
            if "triton" not in str(error):
                print(f"{found.name}: {error}")
"""
_DESKTOP = """\
[Desktop Entry]
Type=Application
Name={title}
GenericName=Language models on this PC
Comment={summary}
Exec={program} %f
Icon=larder
Terminal=false
Categories=Utility;Science;ArtificialIntelligence;
MimeType=application/x-larder-model;
Keywords=chat;model;AI;offline;
StartupNotify=true
StartupWMClass=larder
"""
_MIME = """\
<?xml version="1.0" encoding="UTF-8"?>
<mime-info xmlns="http://www.freedesktop.org/standards/shared-mime-info">
  <mime-type type="application/x-larder-model">
    <comment>model prepared by {title}</comment>
    <sub-class-of type="application/json"/>
    <icon name="larder"/>
    <glob pattern="larder-manifest.json" weight="90" case-sensitive="true"/>
  </mime-type>
</mime-info>
"""
_README = """\
{title} {version}

Double-click "larder" to open the window. Nothing has to be installed, and the folder may lie
anywhere, also where it cannot be written to. To remove {title}, delete the folder.

Chats and settings are kept in .local/share/larder and .config/larder of your home folder, logs in
.local/state/larder; delete those too if you want nothing left. Models stay where they are.

In a terminal: ./larderctl --help

The licences of everything inside are in the folder "licences".
"""


@dataclass(frozen=True)
class Sources:
    """Where a recipe keeps what it fetches, and what it is given."""

    cache: Path
    demo: Path
    torch_source: str = ""
    own_wheel: Path | None = None
    """Our wheel where it was built before, with its extension."""


def build(
    description: Description, sources: Sources, tree: Path, effort: pack.Effort = pack.SMALL
) -> str:
    """Make the tree anew; return the version of the C library that it needs at least."""
    if tree.exists():
        shutil.rmtree(tree)
    tree.mkdir(parents=True)
    with ThreadPoolExecutor(max_workers=1) as aside:
        fetching = aside.submit(
            wheels.fetch, description, wheels.LINUX, sources.cache / "wheels", sources.torch_source
        )
        debs = debian_files.fetch(sources.cache / "debian")
        debian_files.lay_out(debs, tree)
        others = [_debian_component(deb) for deb in debs]
        others += starter.components(tree / "licences")
        others += qt_texts.collect(tree / "licences")
        given = sources.own_wheel
        own = wheels.with_extension(given) if given else wheels.build_own(sources.cache / "own")
    packages = tree / PACKAGES
    wheels.unpack([own, *fetching.result()], packages, "linux")
    demo.add(sources.demo, packages)
    marker.write(tree, packages, "linux")
    sys.stdout.write(f"{engine.write(description, packages, wheels.LINUX)}\n")
    strip(packages)
    libraries.drop_unwanted_qt(packages)
    libraries.lend_to_qt(tree, packages)
    licences.collect(description, packages, tree / "licences", others)
    compile_launcher(tree)
    _desktop_files(description, tree, sources.cache / "icons")
    compile_modules(tree, effort.num_compilers)
    import_modules(tree)
    libraries.check(tree)
    pack.plain_modes(tree)
    return libraries.oldest_glibc(tree)


def _debian_component(deb: Path) -> licences.Component:
    """A Debian package as the About page lists it."""
    name, version, _architecture = deb.stem.split("_")
    text = f"{name}/copyright"
    return licences.Component(name, version.replace("%3a", ":"), "see its text", (text,))


def strip(packages: Path) -> None:
    """Take the symbols that only debuggers read out of the large files, which still have them."""
    large = (*(packages / "torch" / "lib").glob("libtorch*.so"), *packages.glob("runtime/native/*"))
    for path in large:
        if not libraries.is_native(path):
            continue
        thin = path.with_suffix(".thin")
        done = subprocess.run(
            ["strip", "--strip-unneeded", "-o", str(thin), str(path)],
            capture_output=True,
            check=True,
        )
        if done.stderr:  # strip warns where what patchelf wrote would be damaged
            thin.unlink()
        else:
            thin.replace(path)


def compile_launcher(tree: Path) -> None:
    """Compile the program to start, and the terminal's name for it."""
    target = tree / "larder"
    flags = ["-O2", "-Wall", "-Werror", "-no-pie", "-s", "-Wl,--build-id=none"]
    command = ["gcc", *flags, "-o", str(target), _LAUNCHER.name]
    if subprocess.run(command, cwd=_LAUNCHER.parent, check=False).returncode != 0:
        raise RecipeError("The launcher does not compile; gcc's own words stand above.")
    (tree / "larderctl").symlink_to("larder")


def desktop_entry(description: Description, program: str) -> str:
    """The entry of the start menu."""
    return _DESKTOP.format(title=description.title, summary=description.summary, program=program)


def mime_types(description: Description) -> str:
    """What a prepared copy is known by: the one file that each of them has."""
    return _MIME.format(title=description.title)


def _desktop_files(description: Description, tree: Path, scratch: Path) -> None:
    """Icons, the menu's entry and a page to read."""
    share = tree / "share"
    for size, path in icons.draw(description.icon, scratch).items():
        place = share / "icons" / "hicolor" / f"{size}x{size}" / "apps" / "larder.png"
        place.parent.mkdir(parents=True)
        shutil.copyfile(path, place)
    drawing = share / "icons" / "hicolor" / "scalable" / "apps" / "larder.svg"
    drawing.parent.mkdir(parents=True)
    shutil.copyfile(description.icon, drawing)
    entry = desktop_entry(description, "larder")
    mime = share / "mime" / "packages" / "larder.xml"
    mime.parent.mkdir(parents=True)
    mime.write_text(mime_types(description), encoding="utf-8")
    (share / "applications").mkdir()
    (share / "applications" / "larder.desktop").write_text(entry, encoding="utf-8")
    text = _README.format(title=description.title, version=description.version)
    (tree / "README.txt").write_text(text, encoding="utf-8")


def compile_modules(tree: Path, num_processes: int = 1) -> None:
    """Compile every module, without a word of where the tree lay and of when that was.

    Several processes are sooner done; what one of them did before may show in its next file.
    """
    python = tree / "python" / "bin" / debian_files.PYTHON
    library = tree / "python" / "lib" / debian_files.PYTHON
    # -B and -f: what this very process imports would be left as another kind of file.
    command = [str(python), "-B", "-m", "compileall", "-q", "-f", "-j", str(num_processes)]
    command += ["--invalidation-mode", "unchecked-hash", "-s", str(library), str(library)]
    environment = {name: value for name, value in os.environ.items() if "PYTHON" not in name}
    environment["PYTHONHASHSEED"] = "0"
    # torch brings templates that are no Python yet; what matters is compiled or found missing.
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False)
    for module in ("app/main.py", "runtime/service/__main__.py", "torch/__init__.py"):
        place = tree / PACKAGES / module
        made = place.parent / "__pycache__" / f"{place.stem}.cpython-311.pyc"
        if not made.exists():
            raise RecipeError(f"{module} was not compiled; run compileall by hand to see why.")


def import_modules(tree: Path) -> None:
    """Import every module of the program with the Python inside.

    Raises:
        RecipeError: one cannot be imported, so that too much was cut.
    """
    python = tree / "python" / "bin" / debian_files.PYTHON
    done = subprocess.run(
        [str(python), "-E", "-P", "-B", "-c", _IMPORT],
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.stdout or done.returncode != 0:
        told = (done.stdout + done.stderr).strip()
        raise RecipeError(f"Too much was cut: {told[-500:]}")
