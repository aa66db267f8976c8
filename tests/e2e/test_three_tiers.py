"""Three tiers on screen: the demo model on a simulated card, in RAM and on the drive."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.main import StartOptions
from app.state.stages import Stage
from app.views.rail import Page
from runtime.protocol.chat import SamplingSettings
from runtime.protocol.messages import BudgetsSet, Reply
from runtime.protocol.plan import PlacementPlan, PlanKind
from runtime.protocol.values import Budgets, Tier
from tests.support.card_profile import CARD, write_card_profile
from tests.support.window import ANSWER_MS, START_MS, WindowDriver

QUESTION = "What is the capital of France?"
STORY = "Write a long story about a cook and a cellar."
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def profile(tmp_path: Path, demo_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A card for the dense part and a tenth of the experts, RAM for a third of them."""
    path = write_card_profile(tmp_path / "profile.json", demo_folder)
    monkeypatch.setenv("LARDER_MACHINE", str(path))
    monkeypatch.setenv("LARDER_DEMO_DIR", str(demo_folder))
    return path


@pytest.fixture
def window(qtbot: QtBot, profile: Path, demo_folder: Path) -> Iterator[WindowDriver]:
    """The window on that machine, with the demo loaded as published."""
    driver = WindowDriver(qtbot, StartOptions())
    driver.program.settings.change(
        last_folder=str(demo_folder),
        last_plan=PlanKind.EXACT,
        sampling=SamplingSettings(temperature=0.0, max_tokens=60),
        is_sampling_of_model=False,
    )
    driver.wait_for_stage(Stage.READY)
    yield driver
    driver.close()


def plan_of(window: WindowDriver) -> PlacementPlan:
    """Return the plan in force."""
    plan = window.program.session.loaded_plan
    assert plan is not None
    return plan


def bounds_of(window: WindowDriver) -> PlacementPlan:
    """Return a plan whose least and most bytes hold for what is loaded."""
    live = window.program.monitor.live
    window.qtbot.waitUntil(lambda: live.bounds is not None, timeout=START_MS)
    assert live.bounds is not None
    return live.bounds


def set_budgets(window: WindowDriver, budgets: Budgets) -> BudgetsSet:
    """Change the budgets live and wait until they are in force."""
    replies: list[Reply] = []
    assert window.program.session.set_live_budgets(budgets, replies.append)
    window.qtbot.waitUntil(lambda: bool(replies), timeout=START_MS)
    reply = replies[0]
    assert isinstance(reply, BudgetsSet), reply
    return reply


def experts_by_tier(window: WindowDriver) -> dict[Tier, int]:
    """Return how many experts each tier holds."""
    loaded = window.program.session.loaded
    assert loaded is not None
    return {share.tier: share.num_experts for share in loaded.tiers}


def test_three_tiers_hold_their_parts_and_the_answer_is_the_same(window: WindowDriver) -> None:
    counts = experts_by_tier(window)
    num_all = sum(counts.values())
    assert counts[Tier.VRAM] == pytest.approx(num_all / 10, abs=num_all / 50)
    assert counts[Tier.RAM] > num_all / 5
    assert counts[Tier.DRIVE] > num_all / 5
    window.send(QUESTION)
    assert "Paris" in window.wait_for_answer()
    stats = window.program.chat.messages[-1].stats
    assert stats is not None
    hits = {count.tier: count.hits for count in stats.tiers}
    assert set(hits) == {Tier.VRAM, Tier.RAM, Tier.DRIVE}
    assert hits[Tier.DRIVE] > 0
    assert stats.drive_bytes_read > 0


def test_monitor_shows_three_tiers_that_move_with_the_slider(window: WindowDriver) -> None:
    program = window.program
    program.window.show_page(Page.MONITOR)
    window.send(STORY)

    def tiers_seen() -> set[int]:
        grid = program.telemetry.experts
        return set(grid.tier) if grid is not None else set()

    window.qtbot.waitUntil(lambda: tiers_seen() == {0, 1, 2}, timeout=ANSWER_MS)
    window.wait_for_answer()
    before = experts_by_tier(window)
    plan = bounds_of(window)
    vram = plan.vram_bytes + (plan.all_vram_bytes - plan.vram_bytes) // 2
    reply = set_budgets(window, Budgets(ram_bytes=plan.all_ram_bytes, vram_bytes={CARD: vram}))
    assert reply.plan.vram_bytes <= vram
    after = experts_by_tier(window)
    assert after[Tier.VRAM] > before[Tier.VRAM]
    assert after.get(Tier.DRIVE, 0) == 0
    window.send(STORY)
    window.qtbot.waitUntil(lambda: 2 not in tiers_seen(), timeout=ANSWER_MS)
    window.wait_for_answer()


def test_drive_warning_appears_at_a_small_budget_and_goes_at_a_large_one(
    window: WindowDriver,
) -> None:
    program = window.program
    program.window.show_page(Page.MONITOR)
    plan = bounds_of(window)
    set_budgets(
        window,
        Budgets(ram_bytes=plan.min_ram_bytes, vram_bytes={CARD: plan.min_vram_bytes}),
    )
    window.send(STORY)
    window.qtbot.waitUntil(lambda: program.monitor.drive.warning is not None, timeout=ANSWER_MS)
    assert not program.window.strip.drive_button.isHidden()
    window.wait_for_answer()
    set_budgets(
        window,
        Budgets(ram_bytes=plan.all_ram_bytes, vram_bytes={CARD: plan.vram_bytes}),
    )
    window.send(STORY)
    window.qtbot.waitUntil(lambda: program.monitor.drive.warning is None, timeout=ANSWER_MS)
    assert program.window.strip.drive_button.isHidden()
    window.wait_for_answer()


def test_larderctl_tells_the_same_as_the_window(window: WindowDriver, profile: Path) -> None:
    window.send(QUESTION)
    window.wait_for_answer()
    message = window.program.chat.messages[-1]
    plan = plan_of(window)
    window.program.session.shutdown()
    done = subprocess.run(
        [
            sys.executable, "-m", "runtime.cli", "chat", plan.model_folder, "--prompt", QUESTION,
            "--temperature", "0", "--repetition-penalty", "1", "--max-tokens", "60", "--json",
            "--bits", "16",
        ],
        cwd=ROOT,
        env={**os.environ, "LARDER_MACHINE": str(profile)},
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["token_ids"] == list(message.token_ids)
    assert message.stats is not None
    for count in message.stats.tiers:
        theirs = told["tiers"][count.tier.value]["hits"]
        ours_all = sum(each.hits for each in message.stats.tiers)
        theirs_all = sum(each["hits"] for each in told["tiers"].values())
        assert theirs / theirs_all == pytest.approx(count.hits / ours_all, abs=0.15)
