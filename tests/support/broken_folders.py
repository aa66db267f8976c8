"""Every way a model folder was found broken: what is done to a good one, and what a person reads.

The good folder is ``write_checkpoint``'s: an index and four shards. ``words`` stand in the sentence
of the first problem; without words the model runs.
"""

import dataclasses
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from runtime.protocol.errors import ErrorCode
from tests.support.checkpoint_folders import edit_json, shard_name
from tests.support.folder_damage import (
    EXPERT,
    INDEX,
    POINTER,
    SECOND,
    THIRD,
    WEB_PAGE,
    cut,
    decompose,
    deepen,
    edit_map,
    holding,
    linked,
    make_socket,
    merge,
    only_pickles,
    replaced,
    reshard,
    retype,
    swap_shards,
)


@dataclasses.dataclass(frozen=True, slots=True)
class Broken:
    """One way to break a folder."""

    name: str
    change: Callable[[Path], object]
    code: ErrorCode | None
    words: tuple[str, ...] = ()


_C = ErrorCode
_COPIED_NAME = SECOND.replace(".", " (1).")

SHARD_CASES = (
    Broken("missing", lambda f: (f / THIRD).unlink(), _C.SHARD_MISSING, (THIRD, "34", "Download")),
    Broken("cut", cut(SECOND, 80_000), _C.SHARD_TRUNCATED, (SECOND, "78.1 KiB")),
    Broken("zero bytes", holding(SECOND, b""), _C.SHARD_TRUNCATED, (SECOND, "0 bytes of 129 KiB")),
    Broken("cut header", cut(SECOND, 300), _C.SHARD_TRUNCATED, ("300 bytes",)),
    Broken("pointer", holding(SECOND, POINTER), _C.SHARD_INVALID, (SECOND, "Git LFS pointer")),
    Broken("web page", holding(SECOND, WEB_PAGE), _C.SHARD_INVALID, (SECOND, "web page")),
    Broken(
        "message",
        holding(SECOND, b'{"error":"Repository not found"}'),
        _C.SHARD_INVALID,
        (SECOND, "Repository not found"),
    ),
    Broken("zeros", holding(SECOND, bytes(5000)), _C.SHARD_INVALID, ("nothing but zeros",)),
    Broken(
        "pickle",
        holding(SECOND, b"PK\x03\x04\0\0\x08\x08" + bytes(500)),
        _C.SHARD_INVALID,
        ("pickle", "never opened"),
    ),
    Broken("gguf", holding(SECOND, b"GGUF\3\0\0\0" + bytes(99)), _C.SHARD_INVALID, ("GGUF",)),
    Broken("copied beside", lambda f: shutil.copy(f / SECOND, f / _COPIED_NAME), None),
    Broken(
        "copied away",
        lambda f: (f / SECOND).rename(f / _COPIED_NAME),
        _C.SHARD_MISNAMED,
        (f"Rename {_COPIED_NAME} to {SECOND}.",),
    ),
    Broken("accent apart from its letter", decompose, None),
    Broken(
        "part",
        lambda f: (cut(SECOND, 999)(f), (f / SECOND).rename(f / f"{SECOND}.part")),
        _C.SHARD_TRUNCATED,
        (f"{SECOND}.part", "999 bytes of 129 KiB"),
    ),
    Broken(
        "whole part",
        lambda f: (f / SECOND).rename(f / f"{SECOND}.part"),
        _C.SHARD_MISSING,
        (SECOND,),
    ),
    Broken(
        "twice the same",
        lambda f: shutil.copy(f / THIRD, f / SECOND),
        _C.INDEX_STALE,
        (INDEX, SECOND, "it is not there", "34"),
    ),
    Broken("swapped", swap_shards, _C.INDEX_STALE, (INDEX, SECOND, f"is in {THIRD}", "68")),
    Broken("resharded", reshard, _C.SHARD_MISNAMED, ("model-00001-of-00008.safetensors",)),
    Broken("merged", merge, None),
    Broken(
        "line lost", edit_map(**{EXPERT: None}), _C.INDEX_STALE, (EXPERT, "no file", "Download")
    ),
    Broken("line too many", edit_map(extra=SECOND), None),
    Broken(
        "file too many",
        edit_map(extra="extra.safetensors"),
        _C.SHARD_MISSING,
        ("extra.safetensors",),
    ),
    Broken(
        "out of the folder",
        edit_map(extra="../../etc/passwd"),
        _C.CONFIG_INVALID,
        (INDEX, "extra", "../../etc/passwd", "in the same folder"),
    ),
    Broken(
        "other shape",
        lambda f: edit_json(f / "config.json", vocab_size=300),
        _C.TENSOR_MISMATCHED,
        (shard_name(1, 4), "model.embed_tokens.weight", "272 x 64", "300 x 64"),
    ),
    Broken(
        "other float", retype("F16", 1), _C.TENSOR_MISMATCHED, ("model.safetensors", EXPERT, "bf16")
    ),
    Broken("integers", retype("I32", 2), _C.QUANTIZATION_UNSUPPORTED, ("I32",)),
    Broken("unknown type", retype("X9", 2), _C.QUANTIZATION_UNSUPPORTED, ("X9",)),
    Broken("pickles only", only_pickles, _C.NOT_A_MODEL, ("pickle", "never opened")),
)

SMALL_FILES = ("config.json", "tokenizer.json", "tokenizer_config.json", INDEX)

FILE_CASES = tuple(
    Broken(f"{kind} for {name}", change(name), code, (name, words))
    for name in (*SMALL_FILES, "generation_config.json", SECOND)
    for kind, change, code, words in (
        ("circle", lambda name: linked(name, name), _C.FILE_INVALID, "back to itself"),
        ("device", lambda name: linked(name, "/dev/zero"), _C.FILE_INVALID, "a device"),
        ("pipe", lambda name: replaced(name, os.mkfifo), _C.FILE_INVALID, "a pipe"),
        ("folder", lambda name: replaced(name, Path.mkdir), _C.FILE_INVALID, "a folder"),
        ("socket", lambda name: replaced(name, make_socket), _C.FILE_INVALID, "a socket"),
    )
) + tuple(
    Broken(
        f"{kind} in {name}",
        holding(name, content),
        _C.TOKENIZER_INVALID if name == "tokenizer.json" else _C.FILE_INVALID,
        (name, words),
    )
    for name in SMALL_FILES
    for kind, content, words in (
        ("web page", WEB_PAGE, "web page"),
        ("pointer", POINTER, "Git LFS pointer"),
        ("nothing", b"", "it is empty"),
        ("half", b'{"a": [1, 2', "JSON"),
    )
)

TEXT_CASES = (
    Broken("deep", deepen(900), None),
    # Pythons differ in how deep they read: the newest nearly ten thousand levels.
    Broken("too deep", deepen(12_000), _C.FILE_INVALID, ("config.json", "nested too deeply")),
    Broken("far too deep", deepen(30_000), _C.FILE_INVALID, ("nested too deeply",)),
    Broken(
        "key twice",
        holding("config.json", b'{"vocab_size": 1, "vocab_size": 2}'),
        _C.FILE_INVALID,
        ("config.json", "vocab_size", "twice"),
    ),
    Broken(
        "nested lists without a comma",
        holding("config.json", b'{"a":[' + b"[[[[]]]]," * 300_000 + b"0]}"),
        _C.FILE_INVALID,
        ("more than 1048576 objects and lists",),
    ),
    Broken(
        "utf-16",
        lambda f: (f / "config.json").write_text("{}", encoding="utf-16"),
        _C.FILE_INVALID,
        ("plain UTF-8",),
    ),
    Broken(
        "too large",
        cut("config.json", 20_000_000),
        _C.FILE_INVALID,
        ("20000000", "16000000"),
    ),
    Broken("config not there", linked("config.json", "gone"), _C.NOT_A_MODEL, ("config.json",)),
    Broken("shard not there", linked(SECOND, "gone"), _C.SHARD_MISSING, (SECOND,)),
    Broken("tokenizer not there", linked("tokenizer.json", "gone"), _C.TOKENIZER_MISSING),
    Broken("index not there", linked(INDEX, "gone"), _C.FILE_INVALID, (INDEX, "is not there")),
    Broken("generation not there", linked("generation_config.json", "gone"), None),
)

ALL = SHARD_CASES + FILE_CASES + TEXT_CASES
