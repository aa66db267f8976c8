"""What loading learns of a card: torch's processor stands in for one, NVML and CUDA are made up."""

import json
import sys
import types
from pathlib import Path

import msgspec
import pytest
import torch

from runtime.device.base import Device
from runtime.device.torch_device import TorchDevice
from runtime.engine.base import CancelToken
from runtime.generate.engine import TieredEngine
from runtime.generate.learning import look_at_cards
from runtime.hardware.card_findings import CardFindings
from runtime.hardware.profile import MACHINE_VARIABLE
from runtime.hardware.rates import RateCache, link_back_key, link_key
from runtime.kernels.base import Kernels
from runtime.protocol.machine import DeviceReport, DriveReport
from runtime.protocol.plan import PlacementPlan
from runtime.protocol.values import Budgets, Forecast
from runtime.service.drive_rates import DriveRates
from runtime.service.local_planning import LocalPlanning
from runtime.service.prepared_places import PreparedPlaces
from tests.support.engine_runs import ignore_load_progress
from tests.support.fake_nvml import fake_nvml
from tests.support.fake_systems import GIB
from tests.support.hand_made_plans import device_plan, exact_plan

CARD = "cuda:0"
TORCH_TOTAL_BYTES = 6 * GIB
TORCH_FREE_BYTES = 5 * GIB


class StillDrive(DriveRates):
    """Measures no drive."""

    def complete(self, drives: list[DriveReport], read_bytes: int) -> list[DriveReport]:
        return drives


@pytest.fixture
def rates_path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "rates.json"


@pytest.fixture
def planning(tmp_path: Path, rates_path: Path) -> LocalPlanning:
    places = PreparedPlaces(tmp_path / "data")
    return LocalPlanning(places, rates_path, StillDrive(rates_path))


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> None:
    """A card of 8 GiB by NVML, 7 of them free, in which torch finds 6 and 5."""

    def opened(device: str, budget_bytes: int) -> Device:
        return TorchDevice(device, budget_bytes, torch.device("cpu"))

    monkeypatch.delenv(MACHINE_VARIABLE, raising=False)
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml(nvmlDeviceGetCount=lambda: 1))
    monkeypatch.setattr("runtime.hardware.machine.torch_kinds", lambda: frozenset({"cuda"}))
    monkeypatch.setattr("runtime.generate.plan_terms.open_device", opened)
    monkeypatch.setattr("runtime.device.modules.torch.cuda", made_up_cuda())


def made_up_cuda() -> types.SimpleNamespace:
    """Return as much of torch's CUDA as looking at cards asks for."""
    facts = types.SimpleNamespace(name="New Card", total_memory=TORCH_TOTAL_BYTES)
    return types.SimpleNamespace(
        is_available=lambda: True,
        device_count=lambda: 1,
        get_device_properties=lambda index: facts,
        mem_get_info=lambda index: (TORCH_FREE_BYTES, TORCH_TOTAL_BYTES),
    )


def load(kernels: Kernels, plan: PlacementPlan, rates_path: Path) -> None:
    """Load a plan in a program that keeps what it learns, and close it."""
    engine = TieredEngine(kernels, rates_path=rates_path)
    try:
        engine.load(plan, ignore_load_progress, CancelToken())
    finally:
        engine.close()


def described(planning: LocalPlanning) -> DeviceReport:
    """Return the card as the doctor shows it."""
    return next(card for card in planning.describe([]).devices if card.device == CARD)


def forecast(planning: LocalPlanning, folder: Path) -> Forecast:
    """Return what the exact plan on the card promises."""
    plan = planning.plan(str(folder), Budgets(), 0).plans[0]
    assert plan.device == CARD
    assert plan.forecast is not None
    return plan.forecast


@pytest.mark.usefixtures("card")
def test_loading_measures_the_link_and_later_plans_use_it(
    kernels: Kernels, qwen2_folder: Path, planning: LocalPlanning, rates_path: Path
) -> None:
    assert described(planning).link_bytes_per_s is None
    plan = device_plan(qwen2_folder, 3, 3, CARD)
    # The tiny model's own budget has no room for copies that tell of a link.
    larger = Budgets(ram_bytes=plan.ram_bytes, vram_bytes={CARD: plan.vram_bytes + (16 << 20)})

    load(kernels, msgspec.structs.replace(plan, budgets=larger), rates_path)

    rate = described(planning).link_bytes_per_s
    assert rate is not None
    assert rate.value > 1e6
    assert rate.method.startswith("measured, ")
    assert rate.method.endswith(" MiB copied")
    back = described(planning).link_back_bytes_per_s
    assert back is not None
    assert back.value > 1e6
    as_measured = forecast(planning, qwen2_folder)
    RateCache(rates_path).record(link_key(CARD), 1e3, "measured on a very slow link")
    slow = forecast(planning, qwen2_folder)
    assert slow.decode_tokens_per_s_high < 0.5 * as_measured.decode_tokens_per_s_high
    RateCache(rates_path).record(link_key(CARD), rate.value, rate.method)
    RateCache(rates_path).record(link_back_key(CARD), 1e3, "measured on a very slow way back")
    slow_back = forecast(planning, qwen2_folder)
    assert slow_back.decode_tokens_per_s_high < 0.5 * as_measured.decode_tokens_per_s_high


@pytest.mark.usefixtures("card")
def test_loading_compares_what_torch_and_nvml_tell_of_the_card(
    kernels: Kernels, qwen2_folder: Path, planning: LocalPlanning, rates_path: Path
) -> None:
    before = described(planning)
    assert (before.total_bytes, before.free_bytes, before.note) == (8 * GIB, 7 * GIB, "NVML")

    load(kernels, device_plan(qwen2_folder, 3, 3, CARD), rates_path)

    after = described(planning)
    assert after.total_bytes == TORCH_TOTAL_BYTES
    assert after.free_bytes == TORCH_FREE_BYTES
    assert "torch found 6.0 GiB where NVML tells 8.0 GiB" in after.note
    assert "torch found 5.0 GiB free where NVML told 7.0 GiB" in after.note


@pytest.mark.usefixtures("card")
def test_loading_without_a_device_does_not_take_memory_of_cards(
    kernels: Kernels,
    qwen2_folder: Path,
    planning: LocalPlanning,
    rates_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(index: int) -> None:
        raise AssertionError(f"card {index} was asked for its free memory")

    cuda = made_up_cuda()
    cuda.mem_get_info = refuse
    monkeypatch.setattr("runtime.device.modules.torch.cuda", cuda)
    load(kernels, exact_plan(qwen2_folder), rates_path)
    assert described(planning).total_bytes == TORCH_TOTAL_BYTES
    assert described(planning).link_bytes_per_s is None


def looked_at(monkeypatch: pytest.MonkeyPatch, *known: str) -> CardFindings:
    """Return what is found where torch's processor stands in for each card that is opened."""

    def opened(device: str, budget_bytes: int) -> Device:
        return TorchDevice(device, budget_bytes, torch.device("cpu"))

    monkeypatch.setattr("runtime.generate.learning.open_device", opened)
    return look_at_cards(known)


@pytest.mark.usefixtures("card")
def test_looking_at_cards_measures_links_that_are_not_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = looked_at(monkeypatch)
    assert [(card.device, card.nvml_free_bytes) for card in found.cards] == [(CARD, 7 * GIB)]
    assert set(found.rates) == {link_key(CARD), link_back_key(CARD)}
    assert not found.problems
    known = looked_at(monkeypatch, CARD)
    assert [card.device for card in known.cards] == [CARD]
    assert not known.rates


@pytest.mark.usefixtures("card")
def test_looking_at_cards_tells_what_went_wrong_with_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(device: Device) -> None:
        raise RuntimeError(f"an error of {device.device}\nadvice for developers")

    monkeypatch.setattr("runtime.generate.learning.measure_link", broken)
    found = looked_at(monkeypatch)
    assert [card.device for card in found.cards] == [CARD]
    assert (found.rates, found.problems) == ({}, {CARD: f"an error of {CARD}"})
    monkeypatch.setattr("runtime.generate.learning.measure_link", lambda _: None)
    assert looked_at(monkeypatch).problems == {CARD: "copies took no time"}


def test_loading_leaves_the_stated_link_of_a_simulated_card(
    kernels: Kernels, qwen2_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = tmp_path / "machine.json"
    profile.write_text(json.dumps({"devices": [{"total_gib": 1, "link_gb_per_s": 1000}]}))
    monkeypatch.setenv(MACHINE_VARIABLE, str(profile))
    rates_path = tmp_path / "cache" / "rates.json"

    load(kernels, device_plan(qwen2_folder, 3, 3), rates_path)

    assert RateCache(rates_path).rate(link_key("simulated:0")) is None
