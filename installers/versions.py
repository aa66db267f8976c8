"""The signed list of the newest version, from which packaged programs learn of it.

`python -m installers.versions --new-key FILE` makes a key and prints its public half, which belongs
into `sources.toml`; the file has to be kept secret, and outside of the repository.
`python -m installers.versions DIST --notes FILE --key FILE` writes the list and its signature
beside the packages, and the checksums of all; DIST is then what has to lie at the address in
`sources.toml`.
"""

from __future__ import annotations

import argparse
import base64
import json
import re
import sys
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from installers import pack
from installers.description import Description, RecipeError, read
from installers.linux import deb
from runtime.hub.updates import LIST, SIGNATURE


def main(arguments: list[str]) -> int:
    """Make a key, or a list; what goes wrong is one sentence on the error stream."""
    parser = argparse.ArgumentParser(prog="installers.versions", description=__doc__)
    parser.add_argument("dist", type=Path, nargs="?", help="where the packages lie")
    parser.add_argument("--notes", type=Path, help="what is new, as plain text")
    parser.add_argument("--key", type=Path, help="the secret key")
    parser.add_argument("--new-key", type=Path, help="write a new secret key here")
    options = parser.parse_args(arguments)
    try:
        if options.new_key is not None:
            sys.stdout.write(f"{new_key(options.new_key)}\n")
            return 0
        if options.dist is None or options.notes is None or options.key is None:
            parser.error("the folder of packages, --notes and --key are needed, or --new-key")
        names = write(read(), options.dist, options.notes, options.key)
    except (RecipeError, OSError) as error:
        sys.stderr.write(f"larder: {error}\n")
        return 1
    sys.stdout.write("".join(f"{name}\n" for name in names))
    return 0


def new_key(path: Path) -> str:
    """Write a new secret key, readable by its owner alone; return its public half as Base64."""
    secret = Ed25519PrivateKey.generate()
    path.touch(mode=0o600, exist_ok=False)
    path.write_bytes(
        secret.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return public_half(secret)


def public_half(secret: Ed25519PrivateKey) -> str:
    """The public half of a key, as it is written into `sources.toml`."""
    return base64.b64encode(secret.public_key().public_bytes_raw()).decode("ascii")


def write(description: Description, dist: Path, notes: Path, key: Path) -> list[str]:
    """Write the list and its signature; return the files that it names.

    Raises:
        RecipeError: there is no package of this version, it is no number, or the key is none.
    """
    if not re.fullmatch(r"\d+(\.\d+){0,3}", description.version):
        raise RecipeError(
            f"{description.version} cannot be compared with other versions; give pyproject.toml "
            "numbers with points between them."
        )
    try:
        secret = serialization.load_pem_private_key(key.read_bytes(), None)
    except (ValueError, TypeError) as error:
        raise RecipeError(
            f"{key.name} is no secret key ({error}); make one by --new-key."
        ) from error
    if not isinstance(secret, Ed25519PrivateKey):
        raise RecipeError(f"{key.name} is a key of another kind; make one by --new-key.")
    files = {}
    for kind, name in packages(description).items():
        path = dist / name
        if path.is_file():
            size, checksum = path.stat().st_size, pack.checksum(path)
            files[kind] = {"name": name, "size_bytes": size, "sha256": checksum}
    if not files:
        raise RecipeError(
            f"{dist} has no package of version {description.version}; build it first."
        )
    listed = {
        "version": description.version,
        "notes": notes.read_text(encoding="utf-8").strip(),
        "files": files,
    }
    data = (json.dumps(listed, indent=1, ensure_ascii=False) + "\n").encode()
    (dist / LIST).write_bytes(data)
    (dist / SIGNATURE).write_bytes(base64.b64encode(secret.sign(data)) + b"\n")
    # Packages of several systems come together here, and each recipe knew its own alone.
    pack.write_checksums(dist)
    return [str(file["name"]) for file in files.values()]


def packages(description: Description) -> dict[str, str]:
    """The file of each kind of package, by what `app.state.package` calls the kind."""
    linux = description.stem("linux")
    return {
        "linux-appimage": f"{linux}.AppImage",
        "linux-folder": f"{linux}.tar.xz",
        "linux-deb": deb.file_name(description),
        "windows-setup": f"{description.stem('windows')}.exe",
        "macos-setup": f"{description.name}-{description.version}-macos-arm64.dmg",
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
