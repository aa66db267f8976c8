"""Tests of the built demo folder against the reference implementation of its architecture."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

import resources.demo
from resources.demo.derive.chats import chat_prompt
from resources.demo.derive.measure import HeldOutRow, is_right, load_held_out

pytestmark = pytest.mark.demo

_DEMO = Path(resources.demo.__file__).parent
_MAX_KL = 0.25
_NUM_TOKENS = 160


@pytest.fixture(scope="module", name="moe")
def _moe(demo_folder: Path) -> Any:
    return AutoModelForCausalLM.from_pretrained(demo_folder, dtype=torch.float32).eval()


@pytest.fixture(scope="module", name="tokenizer")
def _tokenizer(demo_folder: Path) -> Tokenizer:
    return Tokenizer.from_file(str(demo_folder / "tokenizer.json"))


@pytest.fixture(scope="module", name="dense")
def _dense(moe: Any) -> Any:
    """The dense model that the experts were cut from, put together again."""
    config = moe.config
    dense = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=config.vocab_size,
            hidden_size=config.hidden_size,
            intermediate_size=config.shared_expert_intermediate_size
            + config.num_experts * config.moe_intermediate_size,
            num_hidden_layers=config.num_hidden_layers,
            num_attention_heads=config.num_attention_heads,
            num_key_value_heads=config.num_key_value_heads,
            max_position_embeddings=config.max_position_embeddings,
            rms_norm_eps=config.rms_norm_eps,
            rope_parameters=dict(config.rope_parameters),
            tie_word_embeddings=True,
        )
    ).eval()
    state = {
        name: tensor
        for name, tensor in moe.state_dict().items()
        if ".mlp." not in name and not name.endswith("_proj.bias")
    }
    for index, layer in enumerate(moe.model.layers):
        block, prefix = layer.mlp, f"model.layers.{index}.mlp."
        gate, up = block.experts.gate_up_proj.chunk(2, dim=1)
        shared = block.shared_expert
        routed_down = block.experts.down_proj / config.num_experts
        state[prefix + "gate_proj.weight"] = torch.cat([shared.gate_proj.weight, *gate])
        state[prefix + "up_proj.weight"] = torch.cat([shared.up_proj.weight, *up])
        state[prefix + "down_proj.weight"] = torch.cat(
            [shared.down_proj.weight / 2, *routed_down], dim=1
        )
    dense.load_state_dict(state)
    return dense


@pytest.fixture(scope="module", name="rows")
def _rows(tokenizer: Tokenizer) -> list[HeldOutRow]:
    """The first held-out row of every set that is long enough."""
    first: dict[str, HeldOutRow] = {}
    for row in load_held_out(_DEMO / "heldout.jsonl", tokenizer):
        if len(row.ids) >= _NUM_TOKENS:
            first.setdefault(row.name, row)
    assert len(first) == 4
    return list(first.values())


@pytest.fixture(scope="module", name="text_ids")
def _text_ids(rows: list[HeldOutRow]) -> torch.Tensor:
    return torch.tensor([row.ids[:_NUM_TOKENS] for row in rows])


@contextmanager
def _top_k(moe: Any, top_k: int) -> Iterator[None]:
    shipped = moe.config.num_experts_per_tok
    for layer in moe.model.layers:
        layer.mlp.gate.top_k = top_k
    yield
    for layer in moe.model.layers:
        layer.mlp.gate.top_k = shipped


@torch.no_grad()
def _run(model: Any, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the logits, and per layer which experts each token chose."""
    masks: list[torch.Tensor] = []

    def keep(_module: object, _inputs: object, output: tuple[torch.Tensor, ...]) -> None:
        masks.append(F.one_hot(output[2], model.config.num_experts).sum(1))

    hooks = [layer.mlp.gate.register_forward_hook(keep) for layer in model.model.layers]
    logits = model(ids).logits
    for hook in hooks:
        hook.remove()
    return logits, torch.stack(masks).float()


@pytest.fixture(scope="module", name="dense_logits")
def _dense_logits(dense: Any, text_ids: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return torch.as_tensor(dense(text_ids).logits)


@pytest.fixture(scope="module", name="shipped")
def _shipped(moe: Any, text_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return _run(moe, text_ids)


def test_demo_with_every_expert_equals_the_dense_model(
    moe: Any, dense_logits: torch.Tensor, text_ids: torch.Tensor
) -> None:
    with _top_k(moe, moe.config.num_experts):
        logits, chosen = _run(moe, text_ids)
    assert bool((chosen == 1).all())
    assert float((logits - dense_logits).abs().max()) < 1e-3


def test_demo_at_its_shipped_top_k_stays_near_the_dense_model(
    moe: Any,
    rows: list[HeldOutRow],
    shipped: tuple[torch.Tensor, torch.Tensor],
    dense_logits: torch.Tensor,
) -> None:
    assert moe.config.num_experts_per_tok * 4 <= moe.config.num_experts * 3
    dense_log = F.log_softmax(dense_logits, dim=-1)
    moe_log = F.log_softmax(shipped[0], dim=-1)
    kl = (dense_log.exp() * (dense_log - moe_log)).sum(-1)
    # Of a chat only the answer counts, as in the published figures.
    measured = torch.cat([one[row.start - 1 :] for one, row in zip(kl, rows, strict=True)])
    assert 0.001 < float(measured.mean()) < _MAX_KL


def test_demo_uses_experts_unevenly_and_by_token(
    shipped: tuple[torch.Tensor, torch.Tensor],
) -> None:
    use = shipped[1].mean(dim=1)
    assert float(use.std(dim=1).mean()) > 0.1
    # Most experts are neither always nor never chosen: the token decides.
    assert float(((use > 0.02) & (use < 0.98)).float().mean()) > 0.7


def test_demo_routes_nearly_the_same_in_bf16(
    shipped: tuple[torch.Tensor, torch.Tensor], demo_folder: Path, text_ids: torch.Tensor
) -> None:
    half = AutoModelForCausalLM.from_pretrained(demo_folder, dtype="auto").eval()
    assert half.dtype == torch.bfloat16
    _, chosen = _run(half, text_ids[:1])
    first_row = shipped[1][:, : text_ids.shape[1]]
    assert float((chosen == first_row).float().mean()) > 0.9


def _answer(moe: Any, tokenizer: Tokenizer, question: str) -> str:
    ids = tokenizer.encode(chat_prompt(question)).ids
    block = torch.tensor([ids])
    written = moe.generate(
        block, attention_mask=torch.ones_like(block), max_new_tokens=24, do_sample=False
    )
    return str(tokenizer.decode(written[0, len(ids) :].tolist()))


def test_demo_names_paris(moe: Any, tokenizer: Tokenizer) -> None:
    assert is_right(_answer(moe, tokenizer, "What is the capital of France?"), ["Paris"])


def test_demo_tokenizer_gives_the_same_ids_through_transformers(
    demo_folder: Path, tokenizer: Tokenizer
) -> None:
    through = AutoTokenizer.from_pretrained(demo_folder)
    for text in ("Hello world", "12345 apples", "  two\n\nlines\t", "café 你好 🙂", "it's don't"):
        ids = tokenizer.encode(text).ids
        assert through(text)["input_ids"] == ids
        assert tokenizer.decode(ids, skip_special_tokens=False) == text


def test_demo_chat_template_adds_the_default_system_prompt(demo_folder: Path) -> None:
    config = json.loads((demo_folder / "tokenizer_config.json").read_text("utf-8"))
    template = ImmutableSandboxedEnvironment().from_string(config["chat_template"])
    asked = [{"role": "user", "content": "What is the capital of France?"}]
    rendered = template.render(messages=asked, add_generation_prompt=True)
    assert rendered == chat_prompt("What is the capital of France?")
    own = [{"role": "system", "content": "Be brief."}, *asked]
    rendered = template.render(messages=own, add_generation_prompt=False)
    assert rendered.startswith("<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n")
    assert rendered.endswith("France?<|im_end|>\n")


def test_demo_answers_as_its_generation_config_says(
    demo_folder: Path, moe: Any, tokenizer: Tokenizer
) -> None:
    said = json.loads((demo_folder / "generation_config.json").read_text("utf-8"))
    ends = {tokenizer.token_to_id(mark) for mark in ("<|im_end|>", "<|endoftext|>")}
    assert set(said["eos_token_id"]) == ends
    assert said["do_sample"] is False
    assert said["repetition_penalty"] == 1.05
    # transformers takes it up by itself.
    taken = moe.generation_config
    assert {name: getattr(taken, name) for name in said} == said


def test_demo_folder_holds_its_licence_and_says_what_was_changed(demo_folder: Path) -> None:
    licence = (demo_folder / "LICENSE").read_text("utf-8")
    assert "Apache License" in licence
    assert "Version 2.0, January 2004" in licence
    assert "TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION" in licence
    notice = (demo_folder / "NOTICE.md").read_text("utf-8")
    for part in ("SmolLM2-135M-Instruct", "Hugging Face", "Apache License 2.0", "**Changed:**"):
        assert part in notice


def test_demo_folder_tells_the_figures_that_were_measured(demo_folder: Path) -> None:
    measured = json.loads((_DEMO / "measured.json").read_text("utf-8"))
    told = (demo_folder / "README.md").read_text("utf-8")
    assert f"{measured['overall']['kl']:.3f}" in told
    assert f"{measured['overall']['moe_perplexity']:.2f}" in told
    assert f"{measured['questions']['moe_right']} of" in told
