"""Checkpoints of any size that take no room: true headers, and holes where the numbers would be."""

import json
import math
from pathlib import Path

from tests.support.checkpoint_folders import (
    TinyModel,
    shard_name,
    tiny_config,
    tiny_shapes,
    write_json,
    write_tokenizer,
)

_HEADER_ROOM = 8


def write_sparse_checkpoint(folder: Path, model: TinyModel) -> int:
    """Write all files of a bf16 model with holes for weights; return the bytes they claim."""
    folder.mkdir(parents=True)
    write_json(folder / "config.json", tiny_config(model))
    write_tokenizer(folder)
    shapes = list(tiny_shapes(model).items())
    weight_map: dict[str, str] = {}
    total_bytes = 0
    for shard in range(model.num_shards):
        begin, end = (len(shapes) * step // model.num_shards for step in (shard, shard + 1))
        file = shard_name(shard + 1, model.num_shards)
        header: dict[str, object] = {}
        position = 0
        for name, shape in shapes[begin:end]:
            offsets = [position, position + 2 * math.prod(shape)]
            header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": offsets}
            position = offsets[1]
            weight_map[name] = file
        text = json.dumps(header).encode()
        with (folder / file).open("wb") as written:
            written.write(len(text).to_bytes(_HEADER_ROOM, "little") + text)
            written.truncate(_HEADER_ROOM + len(text) + position)
        total_bytes += position
    write_json(folder / "model.safetensors.index.json", {"weight_map": weight_map})
    return total_bytes
