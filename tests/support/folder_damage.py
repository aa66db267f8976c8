"""What can happen to a model folder: each function changes one that was good."""

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path

from tests.support.checkpoint_folders import (
    TinyModel,
    edit_json,
    shard_name,
    tiny_tensors,
    write_safetensors,
)

INDEX = "model.safetensors.index.json"
SECOND = shard_name(2, 4)
THIRD = shard_name(3, 4)
WEB_PAGE = b"<!DOCTYPE html>\n<html><head><title>Sign in</title></head></html>" + b" " * 400
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n"
EXPERT = "model.layers.0.mlp.experts.3.down_proj.weight"


def holding(name: str, content: bytes) -> Callable[[Path], object]:
    """Return what puts other bytes into a file."""
    return lambda folder: (folder / name).write_bytes(content)


def cut(name: str, num_bytes: int) -> Callable[[Path], object]:
    """Return what gives a file another length."""

    def change(folder: Path) -> None:
        os.truncate(folder / name, num_bytes)

    return change


def linked(name: str, target: str) -> Callable[[Path], object]:
    """Return what puts a link in the place of a file."""

    def change(folder: Path) -> None:
        (folder / name).unlink()
        (folder / name).symlink_to(target)

    return change


def replaced(name: str, make: Callable[[Path], object]) -> Callable[[Path], object]:
    """Return what puts something that is no file in the place of a file."""

    def change(folder: Path) -> None:
        (folder / name).unlink()
        make(folder / name)

    return change


def make_socket(path: Path) -> None:
    """Leave a socket behind under a path of any length."""
    here = Path.cwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def swap_shards(folder: Path) -> None:
    """Give two shards each other's names."""
    (folder / SECOND).rename(folder / "aside")
    (folder / THIRD).rename(folder / SECOND)
    (folder / "aside").rename(folder / THIRD)


def edit_map(**changes: str | None) -> Callable[[Path], object]:
    """Return what changes lines of the index; None removes one."""

    def change(folder: Path) -> None:
        weight_map = json.loads((folder / INDEX).read_text())["weight_map"] | changes
        kept = {name: file for name, file in weight_map.items() if file is not None}
        edit_json(folder / INDEX, weight_map=kept)

    return change


def reshard(folder: Path) -> None:
    """Leave the index of a version with other files."""
    weight_map = json.loads((folder / INDEX).read_text())["weight_map"]
    renamed = {name: file.replace("of-00004", "of-00008") for name, file in weight_map.items()}
    edit_json(folder / INDEX, weight_map=renamed)


def decompose(folder: Path) -> None:
    """Give a shard a name with an accent, which the drive stores in another form than the index."""
    weight_map = json.loads((folder / INDEX).read_text())["weight_map"]
    renamed = {
        name: file.replace(SECOND, "zw\u00f6lf.safetensors") for name, file in weight_map.items()
    }
    edit_json(folder / INDEX, weight_map=renamed)
    (folder / SECOND).rename(folder / "zwo\u0308lf.safetensors")


def merge(folder: Path) -> None:
    """Put all weights into one file and leave the index."""
    for file in folder.glob("model-*.safetensors"):
        file.unlink()
    write_safetensors(folder / "model.safetensors", tiny_tensors(TinyModel()))


def retype(dtype: str, ratio: int) -> Callable[[Path], object]:
    """Return what stores one expert's matrix in another element type."""

    def change(folder: Path) -> None:
        tensors = tiny_tensors(TinyModel())
        _, shape, data = tensors[EXPERT]
        tensors[EXPERT] = (dtype, shape, data * ratio)
        write_safetensors(folder / "model.safetensors", tensors)
        (folder / INDEX).unlink()

    return change


def only_pickles(folder: Path) -> None:
    """Leave nothing but pickled weights."""
    for file in folder.glob("*.safetensors*"):
        file.unlink()
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x02}q\x00.")


def nested(depth: int) -> bytes:
    """Return a JSON object within objects."""
    return b'{"a":' * depth + b"1" + b"}" * depth


def deepen(depth: int) -> Callable[[Path], object]:
    """Return what puts a deeply nested field into the config."""

    def change(folder: Path) -> None:
        text = (folder / "config.json").read_bytes().rstrip()[:-1]
        (folder / "config.json").write_bytes(text + b',"deep":' + nested(depth) + b"}")

    return change
