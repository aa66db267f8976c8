"""llama.cpp as the peer of the kernels: its environment, its model files, its process.

It is built once for this processor into an environment of its own under build/, from the sources of
`llama-cpp-python`; a second build leaves out everything beyond AVX2.
"""

import dataclasses
import math
import os
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import numpy.typing as npt
from asked import AskedProcess, Start
from model_shapes import Shape

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "llama-cpp-python==0.3.36"
_AVX2_ONLY = "-DGGML_NATIVE=OFF -DGGML_AVX=ON -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON"
FLAVOURS = {"native": "-DGGML_NATIVE=ON", "avx2": f"{_AVX2_ONLY} -DGGML_BMI2=ON"}
"""Builds: for all that this processor has, and for AVX2 alone."""
TYPES = {
    "Q4_0": gguf.GGMLQuantizationType.Q4_0,
    "Q8_0": gguf.GGMLQuantizationType.Q8_0,
    "Q4_K": gguf.GGMLQuantizationType.Q4_K,
    "Q6_K": gguf.GGMLQuantizationType.Q6_K,
    "MXFP4": gguf.GGMLQuantizationType.MXFP4,
}
MIXED = "Q4_K_M"
"""Files in which some matrices have more bits than others."""
_FILE_TYPES = {"Q4_0": 2, "Q8_0": 7, "Q4_K": 14, MIXED: 15, "MXFP4": 38}
_SCALES = {"Q4_0": [0.01], "Q8_0": [0.001], "Q4_K": [0.0003, 0.00225], "Q6_K": [0.00004]}
"""What a block begins with, in fp16; of Q6_K it is what a block ends with."""
_MXFP4_EXPONENT = 120
"""What a block of MXFP4 begins with: a power of two, of which 127 stands for 1."""
_TILE_BLOCKS = 1 << 16
Bytes = npt.NDArray[np.uint8]


def environment(flavour: str) -> Path:
    """Return the Python of a build of the peer, making it the first time (15 to 20 minutes)."""
    folder = ROOT / "build" / ("peer" if flavour == "native" else f"peer-{flavour}")
    bin_folder = "Scripts" if os.name == "nt" else "bin"
    python = folder / "venv" / bin_folder / ("python.exe" if os.name == "nt" else "python")
    if (
        python.exists()
        and subprocess.call([str(python), "-c", "import llama_cpp"], stderr=subprocess.DEVNULL) == 0
    ):
        return python
    print(f"building the peer ({flavour}); this takes 15 to 20 minutes", flush=True)
    venv.create(folder / "venv", with_pip=True)
    variables = os.environ | {"CMAKE_ARGS": f"{FLAVOURS[flavour]} -DLLAVA_BUILD=OFF"}
    command = [str(python), "-m", "pip", "install", "--no-cache-dir", "--no-binary"]
    log = folder / "build.log"
    with log.open("wb") as output:
        code = subprocess.call(
            [*command, "llama-cpp-python", PACKAGE], env=variables, stdout=output, stderr=output
        )
    if code:
        sys.exit(f"the peer could not be built; {log.relative_to(ROOT)} says why")
    return python


def _blocks(kind: str, num_blocks: int) -> Bytes:
    """Return random blocks of a type, with scales that keep a random model finite."""
    random = np.random.default_rng(0)
    size = gguf.GGML_QUANT_SIZES[TYPES[kind]][1]
    data = random.integers(0, 256, (num_blocks, size), dtype=np.uint8)
    if kind == "Q4_0":
        # Without the lowest level their mean is nothing: else every stream would become the same.
        low, high = (random.integers(1, 16, (num_blocks, size), dtype=np.uint8) for _ in range(2))
        data = low | high << np.uint8(4)
    if kind == "Q4_K":
        # The same numbers stand for scales and for what is taken off, which with the scales of
        # blocks is 7.5 levels: so the mean of each 32 weights is nothing too.
        data[:, 8:12] = data[:, 4:8]
        data[:, 12:16] = (data[:, 12:16] & np.uint8(15)) * np.uint8(17)
    if kind == "MXFP4":
        data[:, 0] = _MXFP4_EXPONENT
        return data
    scales = np.array(_SCALES[kind], np.float16).view(np.uint8)
    begin = size - len(scales) if kind == "Q6_K" else 0
    data[:, begin : begin + len(scales)] = scales
    return data


def _scaled(tile: Bytes, kind: str, scale: float) -> Bytes:
    """Return blocks that begin with larger numbers."""
    scaled, own = tile.copy(), np.array(_SCALES.get(kind, []), np.float16)
    if kind == "MXFP4":
        scaled[:, 0] = _MXFP4_EXPONENT + round(math.log2(scale))
        return scaled
    scaled[:, : 2 * len(own)] = (own * np.float16(scale)).view(np.uint8)
    return scaled


def type_of(kind: str, name: str, num_layers: int) -> str:
    """Return the type of a matrix in a file of a kind.

    Of mixed files these are the output matrix, and in half of the layers, the outermost ones among
    them, values and what leads down.
    """
    if kind != MIXED:
        return kind
    _, *place, part, _ = ("", *name.split("."))
    layer, edge = int(place[1]) if place else 0, num_layers // 8
    has_more = layer < edge or layer >= 7 * num_layers // 8 or (layer - edge) % 3 == 2
    is_larger = has_more and part in ("attn_v", "ffn_down_exps")
    return "Q6_K" if part == "output" or is_larger else "Q4_K"


def _filled(tile: Bytes, kind: str, *shape: int) -> Bytes:
    """Return a quantised tensor of a shape out of repeated blocks, in bytes."""
    per_block, block_bytes = gguf.GGML_QUANT_SIZES[TYPES[kind]]
    row_bytes = shape[-1] // per_block * block_bytes
    total = int(np.prod(shape[:-1])) * row_bytes
    flat = np.resize(tile.reshape(-1), total)
    return flat.reshape(*shape[:-1], row_bytes)


def _no_vocabulary(writer: gguf.GGUFWriter) -> None:
    writer.add_tokenizer_model("no_vocab")


def write_model(
    path: Path,
    shape: Shape,
    kind: str,
    embedding_scale: float = 1.0,
    add_vocabulary: Callable[[gguf.GGUFWriter], None] = _no_vocabulary,
) -> None:
    """Write a random model of a shape in GGUF, its matrices as in a kind of files, routers in f32.

    With a large scale of the embedding each token's stream stays its own, and so does its routing.
    """
    writer = gguf.GGUFWriter(str(path), "qwen3moe")
    writer.add_name("random")
    writer.add_file_type(_FILE_TYPES[kind])
    writer.add_block_count(shape.num_layers)
    writer.add_context_length(4096)
    writer.add_embedding_length(shape.hidden)
    writer.add_feed_forward_length(shape.width)
    writer.add_expert_feed_forward_length(shape.width)
    writer.add_head_count(shape.num_heads)
    writer.add_head_count_kv(shape.num_kv_heads)
    writer.add_key_length(shape.head_dim)
    writer.add_value_length(shape.head_dim)
    writer.add_rope_freq_base(1e6)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_expert_count(shape.num_experts)
    writer.add_expert_used_count(shape.top_k)
    writer.add_vocab_size(shape.vocabulary)
    add_vocabulary(writer)
    types = ("Q4_K", "Q6_K") if kind == MIXED else (kind,)
    tiles, random = {each: _blocks(each, _TILE_BLOCKS) for each in types}, np.random.default_rng(1)

    def add(name: str, *rows: int) -> None:
        own = type_of(kind, name, shape.num_layers)
        writer.add_tensor(name, _filled(tiles[own], own, *rows), raw_dtype=TYPES[own])

    def ones(name: str, width: int) -> None:
        writer.add_tensor(name, np.ones(width, np.float32))

    hidden, experts, width = shape.hidden, shape.num_experts, shape.width
    queries, keys = shape.num_heads * shape.head_dim, shape.num_kv_heads * shape.head_dim
    embedding = _scaled(tiles[types[0]], types[0], embedding_scale)
    rows = _filled(embedding, types[0], shape.vocabulary, hidden)
    writer.add_tensor("token_embd.weight", rows, raw_dtype=TYPES[types[0]])
    add("output.weight", shape.vocabulary, hidden)
    ones("output_norm.weight", hidden)
    for layer in range(shape.num_layers):
        name = f"blk.{layer}"
        add(f"{name}.attn_q.weight", queries, hidden)
        add(f"{name}.attn_k.weight", keys, hidden)
        add(f"{name}.attn_v.weight", keys, hidden)
        add(f"{name}.attn_output.weight", hidden, queries)
        for part, size in (("attn_norm", hidden), ("ffn_norm", hidden)):
            ones(f"{name}.{part}.weight", size)
        for part in ("attn_q_norm", "attn_k_norm"):
            ones(f"{name}.{part}.weight", shape.head_dim)
        router = random.standard_normal((experts, hidden), dtype=np.float32) * np.float32(0.05)
        writer.add_tensor(f"{name}.ffn_gate_inp.weight", router)
        add(f"{name}.ffn_gate_exps.weight", experts, width, hidden)
        add(f"{name}.ffn_up_exps.weight", experts, width, hidden)
        add(f"{name}.ffn_down_exps.weight", experts, hidden, width)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@dataclasses.dataclass(frozen=True)
class Settings:
    """How the peer is run."""

    is_repacked: bool
    has_flash: bool
    threads: int
    ubatch: int = 512
    has_f32_kv: bool = False
    """Keys and values in f32, as ours are; they are in f16 where nobody asks."""

    def __str__(self) -> str:
        """Return what stands in the table."""
        weights = "repacked" if self.is_repacked else "mapped"
        return f"{weights}, flash attention {'on' if self.has_flash else 'off'}, {self.ubatch}"


class PeerProcess(AskedProcess):
    """The peer in a process of its own."""

    def __init__(self, python: Path, start: Start = list) -> None:
        """``start`` turns a command into one that starts it where it belongs."""
        super().__init__(
            "the peer",
            start([str(python), str(Path(__file__).with_name("peer_process.py"))]),
            os.environ | {"OMP_WAIT_POLICY": "active", "GOMP_SPINCOUNT": "20000"},
        )

    def load(
        self,
        path: Path,
        settings: Settings,
        *,
        is_watched: bool = False,
        context_tokens: int = 1024,
        gpu_layers: int = 0,
        cpu_experts: int = 0,
    ) -> str:
        """Load a model; return what the peer says of this processor. Watched ones can be routed.

        So many layers lie on a card; of these the first ``cpu_experts`` leave their experts in RAM.
        """
        answer = self.ask(
            gpu_layers=gpu_layers,
            cpu_experts=cpu_experts,
            watched=is_watched,
            context=context_tokens,
            load=str(path),
            repack=settings.is_repacked,
            flash=settings.has_flash,
            threads=settings.threads,
            ubatch=settings.ubatch,
            f32_kv=settings.has_f32_kv,
        )
        return str(answer["info"])

    def prompt(self, ids: list[int]) -> float:
        """Return the seconds of a prompt."""
        return float(self.ask(prompt=ids)["seconds"])

    def decode(self, count: int, first: int) -> float:
        """Return the seconds of some tokens one by one."""
        return float(self.ask(decode=count, first=first)["seconds"])

    def feed(self, ids: list[int], *, is_going_on: bool = False) -> float:
        """Return the seconds of given tokens one by one, after those before or from nothing."""
        return float(self.ask(feed=ids, goes_on=is_going_on)["seconds"])

    def routes(self, ids: list[int]) -> tuple[list[list[list[int]]], int]:
        """Return each layer's experts of each of given tokens, and what token follows the last."""
        answer = self.ask(routes=ids)
        return answer["ids"], int(answer["likeliest"])

    def greedy(self, count: int, first: int) -> list[int]:
        """Return so many tokens, the likeliest each time, from one token on."""
        return [int(number) for number in self.ask(greedy=count, first=first)["ids"]]

    def quantise(self, source: Path, target: Path, kind: int, *, is_pure: bool) -> None:
        """Have a file written in another type; pure: all matrices in that type."""
        self.ask(quantise=str(source), to=str(target), type=kind, pure=is_pure, threads=2)

    def all_logits(self, ids: list[int], target: Path) -> npt.NDArray[np.float32]:
        """Return the logits behind each of given tokens, which are put through at once."""
        self.ask(all_logits=ids, to=str(target))
        found: npt.NDArray[np.float32] = np.load(target)
        return found

    def logits(self, ids: list[int]) -> list[float]:
        """Return the logits behind given tokens, which are fed one by one."""
        return [float(number) for number in self.ask(logits=ids)["logits"]]
