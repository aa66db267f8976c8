"""The identity of a checkpoint: equal for equal configs, shards, sizes and headers."""

import hashlib
import json
from collections.abc import Mapping

from runtime.inspect.shards import Shards


def fingerprint(config: Mapping[str, object], shards: Shards) -> str:
    """Return 32 hex digits over the config's values and each shard's name, size and header."""
    digest = hashlib.sha256(json.dumps(config, sort_keys=True).encode())
    for name in sorted({*shards.headers, *shards.broken}):
        header = shards.headers.get(name)
        size_text = str(header.file_bytes) if header else "broken"
        digest.update(f"\0{name}\0{size_text}\0".encode())
        digest.update(header.header if header else b"")
    return digest.hexdigest()[:32]
