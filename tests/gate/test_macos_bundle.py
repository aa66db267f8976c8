"""The recipe for macOS: what it reads of native files, and what it would tell a Mac to do."""

from __future__ import annotations

import plistlib
import struct
from pathlib import Path

import pytest

from installers import description, wheels
from installers.description import RecipeError
from installers.macos import bundle, recipe

X86 = 0x01000007


def library(*names: str, kind: int = bundle.ARM64) -> bytes:
    """A file of macOS with nothing but headers that ask for these libraries."""
    commands = b""
    for name in names:
        text = name.encode() + b"\0"
        size = 24 + (len(text) + 7) // 8 * 8
        commands += struct.pack("<IIIIII", 0xC, size, 24, 0, 0, 0) + text.ljust(size - 24, b"\0")
    header = struct.pack("<IIIIIIII", 0xFEEDFACF, kind, 0, 6, len(names), len(commands), 0, 0)
    return header + commands


def both(thin: bytes, kind: int = bundle.ARM64) -> bytes:
    """The same for two processors in one file."""
    head = struct.pack(">II", 0xCAFEBABE, 2)
    head += struct.pack(">IIIII", X86, 3, 4096, 0, 12) + struct.pack(">IIIII", kind, 0, 48, 0, 0)
    return head + thin


def test_headers_name_the_libraries_of_the_part_for_apple_silicon(tmp_path: Path) -> None:
    names = ("@rpath/libshiboken6.dylib", "/usr/lib/libc++.1.dylib")
    for content in (library(*names), both(library(*names))):
        (tmp_path / "one.so").write_bytes(content)
        assert bundle.Headers(tmp_path / "one.so").libraries == names


@pytest.mark.parametrize("content", [library(kind=X86), both(library(), X86)])
def test_file_for_another_processor_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "one.so").write_bytes(content)
    with pytest.raises(RecipeError, match=r"one\.so is not for Apple silicon"):
        bundle.check(tmp_path)


@pytest.mark.parametrize("content", [b"", b"\x7fELF rest", library("a")[:50]])
def test_file_that_is_none_of_macos_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "one.dylib").write_bytes(content)
    with pytest.raises(RecipeError, match=r"one\.dylib is no whole program or library"):
        bundle.check(tmp_path)


def test_library_that_is_nowhere_is_named_with_who_asks(tmp_path: Path) -> None:
    (tmp_path / "one.so").write_bytes(library("@rpath/libomp.dylib", "/System/Library/x"))
    with pytest.raises(RecipeError, match=r"@rpath/libomp\.dylib \(for one\.so\)"):
        bundle.check(tmp_path)
    (tmp_path / "libomp.dylib").write_bytes(library())
    assert bundle.check(tmp_path) == 2


def test_bundle_tells_macos_what_it_is() -> None:
    made = description.read()
    told = plistlib.loads(plistlib.dumps(recipe.information(made)))
    assert told["CFBundleIdentifier"] == made.identifier
    assert told["CFBundleExecutable"] == "larder"
    assert told["CFBundleShortVersionString"] == made.version
    oldest = int(recipe.OLDEST.partition(".")[0])
    assert f"macosx_{oldest}_0_arm64" == wheels.MACOS.tags[0]


def test_signing_goes_from_the_inside_outwards_and_ends_with_a_look(tmp_path: Path) -> None:
    app = tmp_path / "Larder.app"
    inner = app / "Contents" / "Resources" / "packages" / "torch" / "libtorch.dylib"
    outer = app / "Contents" / "MacOS" / "larder"
    for path in (inner, outer):
        path.parent.mkdir(parents=True)
        path.write_bytes(library())
    (app / "Contents" / "Info.plist").write_text("text")
    commands = recipe.signing(app, "Developer ID", tmp_path / "larder.entitlements")
    assert [command[-1] for command in commands] == [str(inner), str(outer), str(app), str(app)]
    assert all("runtime" in command for command in commands[:-1])
    assert commands[-1][:3] == ["codesign", "--verify", "--strict"]


def test_image_is_looked_at_by_apple_and_then_by_this_mac(tmp_path: Path) -> None:
    commands = recipe.notarising(tmp_path / "larder.dmg", "profile")
    assert [command[:2] for command in commands] == [
        ["xcrun", "notarytool"], ["xcrun", "stapler"], ["spctl", "--assess"],
    ]  # fmt: skip


def test_folder_without_python_is_refused(tmp_path: Path) -> None:
    sources = recipe.Sources(tmp_path, tmp_path, tmp_path)
    with pytest.raises(RecipeError, match=r"which has no bin/python3\.11"):
        recipe.build(description.read(), sources, tmp_path / "place")
