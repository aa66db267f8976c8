"""Tests of the derivation's parts, on made-up numbers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

import resources.demo
from resources.demo.derive.cluster import balanced_owners
from resources.demo.derive.measure import Sums, is_right, made_from
from resources.demo.derive.network import DenseNetwork, KvCache, LayerWeights
from resources.demo.derive.relaxation import soft_top_k
from resources.demo.derive.routing import RoutedChoice
from resources.demo.derive.training_text import cut_blocks
from resources.demo.derived import Derived
from resources.demo.gguf_source import DenseShape
from resources.demo.recipe import RECIPE_VERSION
from resources.demo.split import SHARED, SplitShape

_DEMO = Path(resources.demo.__file__).parent


@pytest.mark.parametrize("temperature", [0.5, 0.1])
def test_soft_top_k_sums_to_k_and_keeps_its_sum_under_gradients(temperature: float) -> None:
    scores = torch.randn(20, 8, generator=torch.Generator().manual_seed(1)).requires_grad_()
    soft = soft_top_k(scores, 3, temperature)
    torch.testing.assert_close(soft.sum(-1), torch.full((20,), 3.0), atol=1e-3, rtol=0)
    (gradient,) = torch.autograd.grad(soft.sum(), scores)
    assert float(gradient.abs().max()) < 1e-3


def test_soft_top_k_when_cold_is_the_mask_of_the_best() -> None:
    scores = torch.tensor([[3.0, 1.0, 2.0, 0.0]])
    expected = torch.tensor([[1.0, 0.0, 1.0, 0.0]])
    torch.testing.assert_close(soft_top_k(scores, 2, 0.01), expected, atol=1e-4, rtol=0)


def test_balanced_owners_fills_experts_equally_and_follows_the_gain() -> None:
    wanted = torch.arange(12) % 3
    noise = torch.rand(12, 3, generator=torch.Generator().manual_seed(2))
    owner = balanced_owners(torch.nn.functional.one_hot(wanted, 3) * 5.0 + noise, 4)
    assert owner.tolist() == wanted.tolist()
    crowded = balanced_owners(torch.tensor([[1.0, 0.0]] * 6), 3)
    assert torch.bincount(crowded).tolist() == [3, 3]


def test_routed_choice_keeps_shared_channels_and_the_best_expert() -> None:
    shape = SplitShape(num_experts=2, expert_size=1, shared_size=1, top_k=1)
    assignment = np.asarray([[0, SHARED, 1]], np.uint8)
    router = np.asarray([[1.0, 0.0], [0.0, 1.0]], np.float32)
    choose = RoutedChoice(Derived(shape, assignment, [router]), shape.top_k)
    x = torch.tensor([[[2.0, 1.0], [1.0, 2.0], [1.0, 3.0]]])
    kept = choose(0, x, torch.ones(1, 3, 3))
    assert kept.tolist() == [[[1, 1, 0], [0, 1, 1], [0, 1, 1]]]
    assert choose.use_shares().tolist() == pytest.approx(np.asarray([[1 / 3, 2 / 3]]))
    assert choose.repeat_ratio() == pytest.approx(0.5)


def _tiny_llama() -> tuple[LlamaForCausalLM, DenseNetwork]:
    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=50, hidden_size=24, intermediate_size=16, num_hidden_layers=2,
        num_attention_heads=6, num_key_value_heads=2, rms_norm_eps=1e-5,
        rope_parameters={"rope_theta": 100000.0, "rope_type": "default"}, tie_word_embeddings=True,
    )  # fmt: skip
    model = LlamaForCausalLM(config).eval()
    layers = [
        LayerWeights(
            attention_norm=layer.input_layernorm.weight,
            q=layer.self_attn.q_proj.weight,
            k=layer.self_attn.k_proj.weight,
            v=layer.self_attn.v_proj.weight,
            o=layer.self_attn.o_proj.weight,
            feed_forward_norm=layer.post_attention_layernorm.weight,
            gate=layer.mlp.gate_proj.weight,
            up=layer.mlp.up_proj.weight,
            down=layer.mlp.down_proj.weight,
        )
        for layer in model.model.layers
    ]
    shape = DenseShape(
        num_layers=2, hidden_size=24, feed_forward_size=16, num_heads=6, num_kv_heads=2,
        head_size=4, vocab_size=50, context_tokens=64, rope_theta=100000.0, rms_norm_eps=1e-5,
    )  # fmt: skip
    embedding, norm = model.model.embed_tokens.weight, model.model.norm.weight
    return model, DenseNetwork(shape, embedding, norm, layers)


@torch.no_grad()
def test_network_equals_the_reference_at_once_and_token_by_token() -> None:
    model, network = _tiny_llama()
    ids = torch.arange(12).view(2, 6) * 4 % 50
    expected = model(ids).logits
    torch.testing.assert_close(network.logits(network.hidden(ids)), expected, atol=1e-5, rtol=0)
    cache = KvCache()
    steps = [network.logits(network.hidden(ids[:, [at]], cache=cache)) for at in range(6)]
    torch.testing.assert_close(torch.cat(steps, dim=1), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("answer", "right"),
    [("It is Paris.", True), ("paris", True), ("Parisian life", False), ("", False)],
)
def test_is_right_wants_whole_words(answer: str, right: bool) -> None:
    assert is_right(answer, ["Paris"]) is right


def test_sums_give_means_over_all_tokens() -> None:
    sums = Sums()
    sums.add(Sums(num_tokens=1, kl=0.5, dense_nll=0.0, moe_nll=1.0))
    sums.add(Sums(num_tokens=3, kl=0.1, dense_nll=0.0, moe_nll=3.0))
    assert sums.figures() == {
        "num_tokens": 4, "kl": 0.15, "dense_perplexity": 1.0, "moe_perplexity": 2.718
    }  # fmt: skip


def test_cut_blocks_keeps_whole_blocks_only() -> None:
    assert [len(block) for block in cut_blocks(list(range(1000)))] == [400, 400]


def test_questions_are_twenty_and_ask_for_paris() -> None:
    questions = json.loads((_DEMO / "questions.json").read_text("utf-8"))
    assert len(questions) == 20
    assert questions[0] == {"question": "What is the capital of France?", "accepted": ["Paris"]}
    assert all(entry["accepted"] for entry in questions)


def test_measured_figures_are_those_of_the_committed_files() -> None:
    measured = json.loads((_DEMO / "measured.json").read_text("utf-8"))
    assert measured["made_from"] == made_from()


def test_comparison_with_another_reader_of_the_source_is_of_these_files_and_held() -> None:
    path = _DEMO.parent.parent / "benchmarks" / "results" / "demo_source.json"
    result = json.loads(path.read_text("utf-8"))
    assert result["made_from"] == made_from()
    assert result["recipe_version"] == RECIPE_VERSION
    judged = [row for row in result["rows"] if row["target"]]
    assert [row["target"] for row in judged] == ["below 0.001", "1", "0"]
    assert all(row["is_reached"] for row in judged)


def test_measured_figures_meet_what_was_promised() -> None:
    measured = json.loads((_DEMO / "measured.json").read_text("utf-8"))
    assert measured["split"]["routed_idle_ratio"] >= 0.25
    assert measured["overall"]["kl"] <= 0.25
    assert measured["sets"]["mt-bench answers"]["kl"] <= 0.25
    questions = measured["questions"]
    assert questions["moe_right"] >= questions["dense_right"] - 2
    assert {answer["question"] for answer in questions["answers"] if answer["moe_right"]} >= {
        "What is the capital of France?"
    }
