"""The application for Apple silicon and its disk image.

The bundle is laid out on a Mac, or on Linux to look at what is inside; signing, the disk image and
notarising need a Mac. Python is handed in as a folder that runs from wherever it lies, with
`bin/python3.11` in it: no registry that recipes use carries one.
"""

from __future__ import annotations

import os
import platform
import plistlib
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from installers import demo, icons, licences, marker, pack, qt_texts, wheels
from installers.description import Description, RecipeError
from installers.macos import bundle

IDENTITY = "LARDER_SIGNING_IDENTITY"
"""The name of the Developer ID certificate in the keychain; without it nothing is signed."""
PROFILE = "LARDER_NOTARY_PROFILE"
"""What `xcrun notarytool store-credentials` called the account; without it nothing is notarised."""
OLDEST = "14.0"
_HERE = Path(__file__).resolve().parent
# A signed program may load our own libraries, and Python computes with memory it makes executable.
_ENTITLEMENTS = {
    "com.apple.security.cs.allow-unsigned-executable-memory": True,
    "com.apple.security.cs.disable-library-validation": True,
}


@dataclass(frozen=True)
class Sources:
    """Where the recipe keeps what it fetches, and what it is given."""

    cache: Path
    demo: Path
    python: Path
    """A folder with Python 3.11 for Apple silicon."""
    own_wheel: Path | None = None
    """Our wheel built on a Mac; without it the kernels are slow ones."""
    compiler: str = "clang"
    """For the two launchers: clang on a Mac, elsewhere one that compiles for it."""


def build(description: Description, sources: Sources, place: Path) -> tuple[Path, int]:
    """Make the bundle anew in a folder; return it and how many native files were looked at."""
    app = place / f"{description.title}.app"
    if app.exists():
        shutil.rmtree(app)
    contents = app / "Contents"
    resources = contents / "Resources"
    resources.mkdir(parents=True)
    _lay_python(sources.python, resources / "python")
    found = wheels.fetch(description, wheels.MACOS, sources.cache / "wheels-macos")
    own = sources.own_wheel or wheels.build_own(
        sources.cache / "own-macos", is_pure=sys.platform != "darwin"
    )
    packages = resources / "packages"
    wheels.unpack([own, *found], packages, "macos")
    demo.add(sources.demo, packages)
    marker.write(app, packages, "macos")
    others = [_python(resources), *qt_texts.collect(resources / "licences")]
    licences.collect(description, packages, resources / "licences", others)
    pictures = icons.draw(description.icon, sources.cache / "icons")
    (resources / f"{description.name}.icns").write_bytes(icons.icns(pictures))
    (contents / "Info.plist").write_bytes(plistlib.dumps(information(description)))
    (contents / "PkgInfo").write_bytes(b"APPL????")
    _launchers(sources.compiler, contents / "MacOS")
    pack.plain_modes(app)
    return app, bundle.check(app)


def information(description: Description) -> dict[str, object]:
    """What macOS reads of the application."""
    return {
        "CFBundleIdentifier": description.identifier,
        "CFBundleName": description.title,
        "CFBundleDisplayName": description.title,
        "CFBundleExecutable": description.name,
        "CFBundleIconFile": f"{description.name}.icns",
        "CFBundlePackageType": "APPL",
        "CFBundleShortVersionString": description.version,
        "CFBundleVersion": description.version,
        "CFBundleInfoDictionaryVersion": "6.0",
        "LSMinimumSystemVersion": OLDEST,
        "LSArchitecturePriority": ["arm64"],
        "LSApplicationCategoryType": "public.app-category.productivity",
        "NSHighResolutionCapable": True,
        "CFBundleDocumentTypes": [
            {
                "CFBundleTypeName": "Folder of a model",
                "CFBundleTypeRole": "Viewer",
                "LSHandlerRank": "Alternate",
                "LSItemContentTypes": ["public.folder"],
            }
        ],
    }


def _lay_python(source: Path, target: Path) -> None:
    """Copy Python, without what only developers need."""
    if not (source / "bin" / "python3.11").exists():
        raise RecipeError(
            f"--python names {source}, which has no bin/python3.11; give it a folder with Python "
            "3.11 for Apple silicon that runs from wherever it lies (sources.toml names one)."
        )
    left_out = shutil.ignore_patterns(
        "__pycache__", "test", "tests", "idlelib", "tkinter", "ensurepip", "lib2to3", "include",
        "turtledemo", "site-packages", "*.a", "config-*", "pkgconfig", "itcl*", "tcl*", "tk*",
        "_tkinter*", "libtcl*", "libtk*", "thread*",
    )  # fmt: skip
    shutil.copytree(source, target, symlinks=True, ignore=left_out)


def _python(resources: Path) -> licences.Component:
    """Python as the About page lists it."""
    texts = sorted((resources / "python").rglob("LICENSE*.txt"))
    if not texts:
        raise RecipeError("Python's LICENSE.txt is missing in its folder; take the whole package.")
    kept = resources / "licences" / "Python-LICENSE.txt"
    kept.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(texts[0], kept)
    return licences.Component("Python", "3.11", "PSF-2.0", (kept.name,))


def _launchers(compiler: str, folder: Path) -> None:
    """Compile the window's program and the terminal's."""
    folder.mkdir()
    for name, flags in (("larder", []), ("larderctl", ["-DTERMINAL"])):
        command = [*compiler.split(), "-O2", "-Wall", f"-mmacosx-version-min={OLDEST}", *flags]
        if sys.platform == "darwin":
            command += ["-arch", "arm64"]
        command += ["-o", str(folder / name), str(_HERE / "launcher.c")]
        if subprocess.run(command, check=False).returncode != 0:
            raise RecipeError(f"{name} does not compile; the compiler's own words stand above.")


def signing(app: Path, identity: str, entitlements: Path) -> list[list[str]]:
    """The commands that sign a bundle: native files from the inside outwards, then the whole."""
    sign = ["codesign", "--force", "--timestamp", "--options", "runtime", "--sign", identity]
    given = ["--entitlements", str(entitlements)]
    files = [path for path in app.rglob("*") if bundle.is_native(path)]
    deepest = sorted(files, key=lambda path: (-len(path.parts), str(path)))
    inner = [[*sign, *given, str(path)] for path in deepest]
    return [*inner, [*sign, *given, str(app)], ["codesign", "--verify", "--strict", str(app)]]


def image(description: Description, app: Path, target: Path) -> list[list[str]]:
    """The commands that make the disk image, with a link to the folder of applications."""
    place = app.parent
    link = place / "Applications"
    if not link.is_symlink():
        link.symlink_to("/Applications")
    make = ["hdiutil", "create", "-volname", description.title, "-srcfolder", str(place)]
    return [[*make, "-ov", "-format", "ULFO", str(target)]]


def notarising(target: Path, profile: str) -> list[list[str]]:
    """The commands that have Apple look at the image and put its answer into it."""
    submit = ["xcrun", "notarytool", "submit", str(target), "--keychain-profile", profile, "--wait"]
    return [
        submit,
        ["xcrun", "stapler", "staple", str(target)],
        ["spctl", "--assess", "--type", "open", "--context", "context:primary-signature",
         str(target)],
    ]  # fmt: skip


def close(description: Description, app: Path, target: Path) -> str:
    """Sign, pack and notarise on a Mac, as far as the environment names who; tell how far."""
    if platform.system() != "Darwin":
        return "the disk image, signing and notarising need a Mac; the bundle is laid out"
    identity, profile = os.environ.get(IDENTITY, ""), os.environ.get(PROFILE, "")
    commands = []
    if identity:
        entitlements = target.with_suffix(".entitlements")
        entitlements.write_bytes(plistlib.dumps(_ENTITLEMENTS))
        commands += signing(app, identity, entitlements)
    commands += image(description, app, target)
    if identity:
        commands.append(["codesign", "--timestamp", "--sign", identity, str(target)])
    if identity and profile:
        commands += notarising(target, profile)
    for command in commands:
        if subprocess.run(command, check=False).returncode != 0:
            raise RecipeError(f"{' '.join(command[:3])} failed; its own words stand above.")
    signed = "signed" if identity else f"not signed, for {IDENTITY} is not set"
    return f"{signed}; {'notarised' if identity and profile else 'not notarised'}"
