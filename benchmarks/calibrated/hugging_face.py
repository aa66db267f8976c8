"""Writing a calibrated model as a Hugging Face folder, a matrix at a time."""

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

from benchmarks.calibrated.model import CalibratedModel, Kind, Tensor
from benchmarks.calibrated.numbers import GROUP, as_bf16
from benchmarks.calibrated.tokenizer import END, write_tokenizer

_INT4 = {
    "quant_method": "compressed-tensors",
    "format": "pack-quantized",
    "ignore": ["lm_head", "re:.*mlp.gate$"],
    "config_groups": {
        "group_0": {
            "targets": ["Linear"],
            "weights": {
                "num_bits": 4, "type": "int", "symmetric": True,
                "strategy": "group", "group_size": GROUP, "actorder": None,
            },
        }
    },
}  # fmt: skip
_SIZES = {"BF16": 2, "I32": 4, "I64": 8, "U8": 1}


@dataclasses.dataclass(frozen=True, slots=True)
class _Stored:
    """One tensor of a safetensors file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    pieces: Callable[[], Iterable[np.ndarray]]

    @property
    def num_bytes(self) -> int:
        """Bytes in the file."""
        return int(np.prod(self.shape, dtype=np.int64)) * _SIZES[self.dtype]


def write_folder(folder: Path, model: CalibratedModel) -> None:
    """Write config, tokenizer and weights, a file for each layer and one for what is outside.

    Matrices are published in four bits by compressed-tensors, embedding, head and routers in bf16;
    of gpt-oss the experts in MXFP4, all else in bf16. The index is written last.
    """
    folder.mkdir(parents=True, exist_ok=True)
    config = dict(model.shape.config)
    if not model.is_mxfp4:
        config["quantization_config"] = _INT4
    config |= {"eos_token_id": len(model.sequence) + END, "bos_token_id": None}
    _write_json(folder / "config.json", config)
    write_tokenizer(folder, len(model.sequence), model.shape.vocabulary)
    outside = [tensor for tensor in model.tensors() if tensor.layer < 0]
    groups = [outside, *(list(model.layer_tensors(n)) for n in range(model.shape.num_layers))]
    weight_map: dict[str, str] = {}
    total_bytes = 0
    for number, group in enumerate(groups, 1):
        name = f"model-{number:05d}-of-{len(groups):05d}.safetensors"
        stored = list(_stored(model, group))
        _write_safetensors(folder / name, stored)
        weight_map |= dict.fromkeys((each.name for each in stored), name)
        total_bytes += sum(each.num_bytes for each in stored)
    index = {"metadata": {"total_size": total_bytes}, "weight_map": weight_map}
    _write_json(folder / "model.safetensors.index.json", index)


def _write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")


def _write_safetensors(path: Path, tensors: list[_Stored]) -> None:
    header: dict[str, object] = {}
    position = 0
    for each in tensors:
        end = position + each.num_bytes
        offsets = [position, end]
        header[each.name] = {
            "dtype": each.dtype, "shape": list(each.shape), "data_offsets": offsets
        }  # fmt: skip
        position = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for each in tensors:
            begin = file.tell()
            for data in each.pieces():
                file.write(np.ascontiguousarray(data).data)
            assert file.tell() - begin == each.num_bytes, each.name


def _stored(model: CalibratedModel, tensors: list[Tensor]) -> Iterator[_Stored]:
    """Yield what is written of some tensors."""
    named = [tensor for tensor in tensors if tensor.name]
    for tensor in named:
        if tensor.kind in (Kind.ROUTER, Kind.ONES, Kind.ZEROS):
            yield _plain(model, tensor)
        elif tensor.kind in (Kind.EMBEDDING, Kind.HEAD) or (
            model.is_mxfp4 and tensor.kind is Kind.DENSE
        ):
            yield _as_bf16(model, tensor)
        elif not model.is_mxfp4:
            yield from _packed(model, tensor)
    if model.is_mxfp4:
        experts = [tensor for tensor in named if tensor.kind is Kind.EXPERT]
        number = model.shape.num_experts
        gates, ups, downs = (experts[part : part + number] for part in (0, number, 2 * number))
        if experts:
            yield from _woven(model, "gate_up_proj", list(zip(gates, ups, strict=True)))
            yield from _woven(model, "down_proj", [(tensor,) for tensor in downs])


def _plain(model: CalibratedModel, tensor: Tensor) -> _Stored:
    return _Stored(tensor.name, "BF16", tensor.shape, lambda: [as_bf16(model.plain(tensor))])


def _as_bf16(model: CalibratedModel, tensor: Tensor) -> _Stored:
    def pieces() -> Iterator[np.ndarray]:
        return (as_bf16(stripe.values()) for stripe in model.stripes(tensor))

    return _Stored(tensor.name, "BF16", tensor.shape, pieces)


def _packed(model: CalibratedModel, tensor: Tensor) -> Iterator[_Stored]:
    rows, columns = tensor.shape
    words, scales = (rows, columns // 8), (rows, columns // GROUP)
    shape = np.array(tensor.shape, np.int64)
    yield _Stored(
        f"{tensor.name}_packed", "I32", words,
        lambda: (stripe.words() for stripe in model.stripes(tensor)),
    )  # fmt: skip
    yield _Stored(
        f"{tensor.name}_scale", "BF16", scales,
        lambda: (as_bf16(stripe.scales) for stripe in model.stripes(tensor)),
    )  # fmt: skip
    yield _Stored(f"{tensor.name}_shape", "I64", (2,), lambda: [shape])


def _woven(
    model: CalibratedModel, stem: str, experts: list[tuple[Tensor, ...]]
) -> Iterator[_Stored]:
    """Yield the stacked experts of a layer; rows of gate and up take turns."""
    first = experts[0][0]
    name = f"model.layers.{first.layer}.mlp.experts.{stem}"
    rows, columns = len(experts[0]) * first.shape[0], first.shape[1]
    shape = (len(experts), rows, columns // GROUP)

    def blocks() -> Iterator[np.ndarray]:
        for parts in experts:
            yield np.stack([model.fours(part).blocks() for part in parts], axis=1)

    def scales() -> Iterator[np.ndarray]:
        for parts in experts:
            yield np.stack([model.fours(part).exponents for part in parts], axis=1)

    yield _Stored(f"{name}_blocks", "U8", (*shape, GROUP // 2), blocks)
    yield _Stored(f"{name}_scales", "U8", shape, scales)
