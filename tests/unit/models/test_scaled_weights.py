"""A model in eight bits answers like the one that its weights stand for, and like transformers."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from runtime.kernels.base import Kernels
from tests.support.model_bench import open_bench
from tests.support.tiny_checkpoints import VOCABULARY_SIZE, reference_model, tiny_checkpoint

BLOCK = (16, 24)
LARGEST = 448.0


def in_eight_bits(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return codes, scales, and what they stand for, by torch's own type."""
    rows, columns = weight.shape
    grid = (-(-rows // BLOCK[0]), -(-columns // BLOCK[1]))
    padded = torch.zeros(grid[0] * BLOCK[0], grid[1] * BLOCK[1])
    padded[:rows, :columns] = weight
    largest = padded.abs().view(grid[0], BLOCK[0], grid[1], BLOCK[1]).amax((1, 3))
    scales = largest / LARGEST
    wide = scales.repeat_interleave(BLOCK[0], 0).repeat_interleave(BLOCK[1], 1)[:rows, :columns]
    codes = (weight / wide).to(torch.float8_e4m3fn)
    return codes, scales, (codes.to(torch.float32) * wide).to(torch.bfloat16)


def both_folders(tiny: Path, root: Path) -> tuple[Path, Path]:
    """Return a folder in eight bits, and one in bf16 with the same weights."""
    scaled, plain = root / "scaled", root / "plain"
    for folder in (scaled, plain):
        shutil.copytree(tiny, folder)
    tensors = load_file(tiny / "model.safetensors")
    stored, meant = {}, {}
    for name, tensor in tensors.items():
        is_kept = tensor.ndim != 2 or any(
            part in name for part in ("embed", "lm_head", "mlp.gate.")
        )
        if is_kept:
            stored[name] = meant[name] = tensor
            continue
        codes, scales, value = in_eight_bits(tensor.to(torch.float32))
        stored[name], stored[f"{name}_scale_inv"], meant[name] = codes, scales, value
    save_file(stored, scaled / "model.safetensors", {"format": "pt"})
    save_file(meant, plain / "model.safetensors", {"format": "pt"})
    config = json.loads((scaled / "config.json").read_text())
    config["quantization_config"] = {
        "quant_method": "fp8",
        "fmt": "e4m3",
        "activation_scheme": "dynamic",
        "weight_block_size": list(BLOCK),
    }
    (scaled / "config.json").write_text(json.dumps(config))
    return scaled, plain


@pytest.mark.parametrize("name", ["deepseek_v3", "qwen3_moe"])
def test_model_in_eight_bits_gives_the_logits_of_its_weights(
    tiny_root: Path, tmp_path: Path, kernels: Kernels, name: str
) -> None:
    scaled, plain = both_folders(tiny_checkpoint(tiny_root, name), tmp_path)
    generator = torch.Generator().manual_seed(7)
    ids: list[int] = torch.randint(3, VOCABULARY_SIZE, (40,), generator=generator).tolist()
    with open_bench(scaled, kernels, 4) as bench:
        logits = bench.feed_in_chunks(ids, [7, 1, 13])
        chosen = bench.greedy(ids, 24)
    with open_bench(plain, kernels) as bench:
        expected = bench.feed_in_chunks(ids, [])
        assert bench.greedy(ids, 24) == chosen
    with torch.no_grad():
        theirs = reference_model(plain)(torch.tensor([ids])).logits[0]

    torch.testing.assert_close(
        logits, expected, atol=0 if kernels.is_row_invariant else 1e-4, rtol=0
    )
    torch.testing.assert_close(logits, theirs, atol=1e-4, rtol=0)
