"""The one-file program: our unpacker, the folder archive as it is, and a trailer that names it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from installers import pack
from installers.description import Description, RecipeError

MAGIC = b"LARDER\x01\n"
_NAME_BYTES = 48
_SOURCE = Path(__file__).with_name("onefile.c")


def build(description: Description, archive: Path, scratch: Path, target: Path) -> None:
    """Write the program; `archive` is a tar file packed by xz."""
    stub = scratch / "onefile"
    flags = ["-O2", "-Wall", "-Wno-format-truncation", "-static", "-no-pie", "-s"]
    command = ["gcc", *flags, "-Wl,--build-id=none", "-o", str(stub), _SOURCE.name, "-llzma"]
    if subprocess.run(command, cwd=_SOURCE.parent, check=False).returncode != 0:
        raise RecipeError(
            "The unpacker does not compile; gcc's own words stand above. It needs liblzma-dev."
        )
    with target.open("wb") as file:
        file.write(stub.read_bytes())
        with archive.open("rb") as packed:
            shutil.copyfileobj(packed, file, 1 << 20)
        file.write(trailer(description, archive))
    target.chmod(0o755)
    stub.unlink()


def trailer(description: Description, archive: Path) -> bytes:
    """Return the last bytes: magic, the payload's length, and the name of its folder."""
    name = f"{description.version}-{pack.checksum(archive)[:16]}".encode()
    if len(name) > _NAME_BYTES:
        raise RecipeError(f"The version {description.version} is too long for the trailer.")
    length = archive.stat().st_size.to_bytes(8, "little")
    return MAGIC + length + name.ljust(_NAME_BYTES, b"\0")
