"""Experts of Qwen3-VL in the layout of its publisher, in which each matrix lies turned."""

import shutil
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from runtime.kernels.base import Kernels
from tests.support.model_bench import open_bench
from tests.support.tiny_checkpoints import tiny_checkpoint

IDS = [5, 9, 200, 31, 77, 8, 150]


def test_turned_experts_give_the_bits_of_upright_ones(
    tiny_root: Path, tmp_path: Path, kernels: Kernels
) -> None:
    upright = tiny_checkpoint(tiny_root, "qwen3_vl_moe")
    turned = tmp_path / "turned"
    shutil.copytree(upright, turned)
    tensors = load_file(turned / "model.safetensors")
    experts = [name for name in tensors if ".mlp.experts." in name]
    assert len(experts) == 6
    for name in experts:
        tensors[name] = tensors[name].transpose(1, 2).contiguous()
    save_file(tensors, turned / "model.safetensors")

    with open_bench(upright, kernels) as bench:
        expected = bench.feed_in_chunks(IDS, [])
    with open_bench(turned, kernels) as bench:
        logits = bench.feed_in_chunks(IDS, [])

    assert expected.std() > 0.5
    assert torch.equal(logits, expected)
