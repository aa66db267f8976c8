"""A signed list of versions with one file, as its makers would publish it."""

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from runtime.hub.updates import LIST, SIGNATURE

_SIGNER = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))


def public_key(seed: bytes = bytes(range(32))) -> str:
    """The public half of a key, as packages know it."""
    secret = Ed25519PrivateKey.from_private_bytes(seed)
    return base64.b64encode(secret.public_key().public_bytes_raw()).decode()


def publish(folder: Path, name: str, data: bytes, package: str, **changes: Any) -> None:
    """Put a file with its list into a folder."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(data)
    file = {"name": name, "size_bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    listed = {"version": "0.10.0", "notes": "More models.", "files": {package: file}} | changes
    told = json.dumps(listed).encode()
    (folder / LIST).write_bytes(told)
    (folder / SIGNATURE).write_bytes(base64.b64encode(_SIGNER.sign(told)) + b"\n")
