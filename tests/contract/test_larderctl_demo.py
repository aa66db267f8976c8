"""``larderctl`` as a person calls it: a process of its own, the real engine, the demo model."""

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from runtime.spec.tensors import PAGE_BYTES
from tests.support.larderctl import larderctl

pytestmark = pytest.mark.usefixtures("measured_before")

GIB = 2**30
NUM_TOKENS = 24
CONTEXT_TOKENS = 1024
NUM_LAYERS, NUM_EXPERTS, TOP_K = 30, 32, 24
PIECES = 3
"""Matrices of an expert, each read in whole pages."""
CARD_GIB = 0.25


def chat(demo: Path, seed: int, *arguments: str) -> dict[str, Any]:
    """Return a sampled answer with its figures."""
    asked = ("--prompt", "Tell me about the sea.", "--max-tokens", str(NUM_TOKENS))
    drawn = ("--temperature", "1", "--seed", str(seed), "--context", str(CONTEXT_TOKENS))
    return larderctl("chat", str(demo), *asked, *drawn, *arguments)


@pytest.fixture(scope="module", name="exact")
def _exact(demo_folder: Path) -> dict[str, Any]:
    """The plan of the demo as published, on this PC."""
    planned = larderctl("plan", str(demo_folder), "--context", str(CONTEXT_TOKENS))
    plan = next(each for each in planned["plans"] if each["kind"] == "exact")
    assert isinstance(plan, dict)
    return {**plan, "expert_bytes": planned["report"]["expert_bytes"]}


@pytest.fixture(scope="module", name="ram_gib")
def _ram_gib(exact: dict[str, Any]) -> str:
    """A budget that holds a part of the experts, so that the drive is read while answering."""
    least, most = exact["min_ram_bytes"], exact["all_ram_bytes"]
    return f"{(least + (most - least) * 0.5) / GIB:.4f}"


@pytest.fixture(scope="module", name="answer")
def _answer(demo_folder: Path, ram_gib: str) -> dict[str, Any]:
    return chat(demo_folder, 7, "--ram", ram_gib)


@pytest.fixture(name="card_profile")
def _card_profile(tmp_path: Path) -> Path:
    """A PC with 8 GiB and a card twice as large as what is asked of it."""
    path = tmp_path / "pc.json"
    card = {"name": "Pretended card", "total_gib": 2 * CARD_GIB, "link_gb_per_s": 16}
    ram = {"total_gib": 8, "available_gib": 4}
    path.write_text(json.dumps({"ram": ram, "devices": [card]}), encoding="utf-8")
    return path


def test_chat_json_text_is_what_its_ids_say(answer: dict[str, Any], demo_folder: Path) -> None:
    tokenizer = Tokenizer.from_file(str(demo_folder / "tokenizer.json"))
    assert answer["text"] == tokenizer.decode(answer["token_ids"])
    assert answer["thinking"] == ""
    assert answer["finish_reason"] == "length"
    assert len(answer["token_ids"]) == answer["generated_tokens"] == NUM_TOKENS
    assert answer["reused_tokens"] == 0
    assert answer["prompt_tokens"] > 5  # as many as there are words
    assert answer["context_used_tokens"] == answer["prompt_tokens"] + NUM_TOKENS
    assert (answer["seed"], answer["context_tokens"]) == (7, CONTEXT_TOKENS)
    assert (answer["plan"], answer["expert_format"]) == ("exact", "bf16")
    assert answer["kernels"] != ""
    assert answer["load_s"] > 0


def test_chat_json_rates_first_token_and_seconds_fit_together(answer: dict[str, Any]) -> None:
    assert set(answer["seconds"]) == {"compute", "drive_wait", "other"}
    assert min(answer["seconds"].values()) >= 0
    assert answer["seconds"]["compute"] > 0
    assert answer["seconds"]["drive_wait"] > 0
    prefill_s = answer["prompt_tokens"] / answer["prompt_tokens_per_s"]
    decode_s = (NUM_TOKENS - 1) / answer["decode_tokens_per_s"]
    assert 0 < prefill_s <= answer["ttft_s"]
    assert sum(answer["seconds"].values()) == pytest.approx(answer["ttft_s"] + decode_s, rel=0.05)


def test_chat_json_tiers_and_drive_bytes_fit_together(
    answer: dict[str, Any], exact: dict[str, Any]
) -> None:
    ram, drive = answer["tiers"]["ram"], answer["tiers"]["drive"]
    assert set(answer["tiers"]) == {"ram", "drive"}
    # One look-up for every expert of a step; the prompt, in one step, may need any of them.
    decoded = (NUM_TOKENS - 1) * NUM_LAYERS * TOP_K
    looked_up = ram["hits"] + ram["misses"]
    assert NUM_LAYERS * TOP_K <= looked_up - decoded <= NUM_LAYERS * NUM_EXPERTS
    assert drive["hits"] == ram["misses"] > 0
    assert drive["misses"] == 0
    for tier in (ram, drive):
        assert tier["bytes"] == tier["hits"] * exact["expert_bytes"]
    # What is brought in unasked counts too, and reads are of whole pages.
    rounded = exact["expert_bytes"] + 2 * PIECES * PAGE_BYTES
    most = (drive["hits"] + 2 * NUM_LAYERS * NUM_EXPERTS) * rounded
    assert drive["bytes"] <= answer["drive_bytes_read"] <= most


def test_chat_json_memory_stays_inside_the_budget_given(
    answer: dict[str, Any], exact: dict[str, Any], ram_gib: str
) -> None:
    assert answer["budget_bytes"] == pytest.approx(float(ram_gib) * GIB, abs=1)
    assert exact["min_ram_bytes"] <= answer["budget_bytes"] < exact["all_ram_bytes"]
    assert 0 < answer["base_bytes"] < answer["peak_bytes"]
    assert answer["peak_bytes"] - answer["base_bytes"] <= 1.1 * answer["budget_bytes"]
    assert (answer["device"], answer["vram_bytes"]) == ("cpu", 0)


def test_chat_json_energy_is_the_sum_of_its_sources(answer: dict[str, Any]) -> None:
    sources = {each["source"]: each for each in answer["energy_sources"]}
    assert len(sources) == len(answer["energy_sources"])
    assert all(each["joules"] >= 0 for each in sources.values())
    assert all(isinstance(each["is_measured"], bool) for each in sources.values())
    assert answer["energy_j"] == pytest.approx(sum(each["joules"] for each in sources.values()))
    assert sources["drive-reads"]["joules"] > 0
    # The processor is measured, or a power is assumed for it: its watts are those of a machine.
    terms = [name for name in sources if name not in ("drive-reads", "ram-reads")]
    watts = sum(sources[name]["joules"] for name in terms) / sum(answer["seconds"].values())
    assert 1 < watts < 2000


def test_chat_json_prediction_is_a_band_beside_it(answer: dict[str, Any]) -> None:
    predicted = answer["predicted"]
    for rate in ("prompt_tokens_per_s", "decode_tokens_per_s"):
        assert 0 < predicted[f"{rate}_low"] <= predicted[f"{rate}_high"] < 1e6
    assert predicted["drive_bytes_per_token"] > 0
    assert predicted["basis"] in ("measured", "modelled", "assumed")


def test_chat_of_another_seed_is_another_answer(
    answer: dict[str, Any], demo_folder: Path, ram_gib: str
) -> None:
    other = chat(demo_folder, 8, "--ram", ram_gib)
    assert other["seed"] == 8
    assert other["token_ids"] != answer["token_ids"]


def test_chat_of_the_same_seed_on_a_pretended_card_is_the_same_answer(
    answer: dict[str, Any], demo_folder: Path, card_profile: Path
) -> None:
    budgets = ("--ram", "0.2", "--vram", str(CARD_GIB))
    again = chat(demo_folder, 7, "--machine", str(card_profile), *budgets)
    assert again["token_ids"] == answer["token_ids"]
    assert again["text"] == answer["text"]
    assert again["device"] == "simulated:0"
    assert 0 < again["vram_bytes"] <= CARD_GIB * GIB
    assert again["tiers"]["vram"]["hits"] > 0
    assert again["seconds"]["device"] > 0


def test_plan_with_machine_and_vram_plans_for_the_pretended_pc(
    demo_folder: Path, card_profile: Path, exact: dict[str, Any]
) -> None:
    pretended = ("plan", str(demo_folder), "--machine", str(card_profile))
    asked = larderctl(*pretended, "--vram", str(CARD_GIB))
    by_itself = larderctl(*pretended)
    without = larderctl(*pretended, "--vram", "0")

    plan = asked["plans"][0]
    assert (plan["kind"], plan["device"], plan["problem"]) == ("exact", "simulated:0", None)
    assert plan["budgets"]["vram_bytes"] == {"simulated:0": CARD_GIB * GIB}
    assert 0 < plan["vram_bytes"] <= CARD_GIB * GIB
    assert by_itself["plans"][0]["vram_bytes"] <= 2 * CARD_GIB * GIB
    assert plan["vram_bytes"] < by_itself["plans"][0]["vram_bytes"]
    assert sum(plan["vram_slots_per_layer"]) > 0
    assert sum(plan["vram_slots_per_layer"]) < sum(by_itself["plans"][0]["vram_slots_per_layer"])
    assert without["plans"][0]["vram_bytes"] == 0
    assert without["plans"][0]["device"] == exact["device"] == "cpu"
