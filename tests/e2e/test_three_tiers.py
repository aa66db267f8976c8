"""The demo model over three tiers of a PC with a simulated card: window, answers, warnings."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget
from pytestqt.exceptions import TimeoutError as PatienceEnded
from pytestqt.qtbot import QtBot

from app.main import StartOptions
from app.state.settings import ThemeChoice
from app.state.stages import Stage
from app.views.monitor_view import MonitorView
from app.views.rail import Page
from runtime.hardware.profile import MACHINE_VARIABLE
from runtime.protocol.chat import SamplingSettings
from runtime.protocol.plan import PlacementPlan, PlanKind
from runtime.protocol.values import Tier
from tests.support.card_profile import write_card_profile
from tests.support.picture_checks import problems
from tests.support.tiers_on_screen import (
    drag_to,
    drive_curve_bytes,
    hit_percents,
    map_shares,
    open_monitor,
    press_on,
)
from tests.support.window import ANSWER_MS, START_MS, WindowDriver

pytestmark = pytest.mark.usefixtures("measured_before")

QUESTION = "What is the capital of France?"
STORY = "Write a long story about a cook and a cellar."
MAX_TOKENS = 60
LOOKS = (
    ((760, 520), ThemeChoice.LIGHT),
    ((1100, 700), ThemeChoice.DARK),
    ((1360, 850), ThemeChoice.CONTRAST),
)
ROOT = Path(__file__).resolve().parents[2]
Record = Callable[[str, object], None]


@pytest.fixture
def profile(tmp_path: Path, demo_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A card for the dense part and a tenth of the experts, RAM for a third of them."""
    path = write_card_profile(tmp_path / "profile.json", demo_folder)
    monkeypatch.setenv(MACHINE_VARIABLE, str(path))
    monkeypatch.setenv("LARDER_DEMO_DIR", str(demo_folder))
    return path


@pytest.fixture
def slow_drive_profile(profile: Path, demo_folder: Path) -> Path:
    """The same card beside RAM for all experts, and a drive that is slow on every PC."""
    return write_card_profile(
        profile, demo_folder, ram_part=1.0, drive_gb_per_s=0.1, is_drive_held=True
    )


@pytest.fixture
def window(qtbot: QtBot, profile: Path, demo_folder: Path) -> Iterator[WindowDriver]:
    """The window on that machine, with the demo loaded as published."""
    driver = WindowDriver(qtbot, StartOptions())
    driver.program.settings.change(
        last_folder=str(demo_folder),
        last_plan=PlanKind.EXACT,
        sampling=SamplingSettings(temperature=0.0, max_tokens=MAX_TOKENS),
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


def experts_by_tier(window: WindowDriver) -> dict[Tier, int]:
    """Return for how many experts each tier has room, the drive for the rest."""
    loaded = window.program.session.loaded
    assert loaded is not None
    counts = {share.tier: share.num_experts for share in loaded.tiers}
    return {tier: counts.get(tier, 0) for tier in Tier}


def told_by_tier(window: WindowDriver) -> dict[Tier, int]:
    """Return how many experts the newest measurement finds in each tier."""
    experts = window.program.telemetry.experts
    assert experts is not None
    return {tier: experts.tier.count(number) for number, tier in enumerate(Tier)}


def shown_by_tier(window: WindowDriver, view: MonitorView) -> dict[Tier, int]:
    """Return how many experts each tier has on the screen, once it shows what is measured."""

    def is_shown() -> bool:
        told = told_by_tier(window)
        shares = {tier: count / sum(told.values()) for tier, count in told.items()}
        return map_shares(window, view) == pytest.approx(shares, abs=0.01)

    window.qtbot.waitUntil(is_shown, timeout=START_MS)
    return told_by_tier(window)


def ask_larderctl(folder: str) -> dict[str, Any]:
    """Return what ``larderctl chat --json`` says to the question, on the machine that is set."""
    done = subprocess.run(
        [
            sys.executable, "-m", "runtime.cli", "chat", folder, "--prompt", QUESTION,
            "--temperature", "0", "--repetition-penalty", "1", "--max-tokens", str(MAX_TOKENS),
            "--json", "--bits", "16",
        ],
        cwd=ROOT,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_three_tiers_hold_their_parts_and_the_answer_is_that_of_the_processor(
    window: WindowDriver, demo_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = experts_by_tier(window)
    num_all = sum(counts.values())
    assert counts[Tier.VRAM] == pytest.approx(num_all / 10, abs=num_all / 50)
    assert counts[Tier.RAM] == pytest.approx(num_all / 3, abs=num_all / 50)
    assert counts[Tier.DRIVE] > num_all / 2
    window.send(QUESTION)
    assert "Paris" in window.wait_for_answer()
    message = window.program.chat.messages[-1]
    stats = message.stats
    assert stats is not None
    hits = {count.tier: count.hits for count in stats.tiers}
    assert all(hits[tier] > 0 for tier in Tier)
    assert stats.drive_bytes_read > 0
    monkeypatch.delenv(MACHINE_VARIABLE)
    told = ask_larderctl(str(demo_folder))
    assert told["device"] == "cpu"
    assert list(message.token_ids) == told["token_ids"]


def wait_until_drawn_well(window: WindowDriver, view: QWidget) -> None:
    """Wait until nothing on the screen is empty, cut, laid over another or too weak."""
    found: list[str] = ["not looked at yet"]

    def is_good() -> bool:
        found[:] = problems(window.program.window, view)
        return not found

    with contextlib.suppress(PatienceEnded):
        window.qtbot.waitUntil(is_good, timeout=START_MS)
    assert found == []


def test_monitor_shows_three_tiers_that_move_with_the_slider_and_a_kill(
    window: WindowDriver,
) -> None:
    view = open_monitor(window)
    main = window.program.window
    slider = view.budgets.vram.slider
    before = experts_by_tier(window)
    window.send(STORY)
    window.wait_for_answer()
    shown = shown_by_tier(window, view)
    assert before[Tier.VRAM] / 3 < shown[Tier.VRAM] <= before[Tier.VRAM]
    assert shown[Tier.RAM] == pytest.approx(before[Tier.RAM], abs=sum(before.values()) / 20)
    assert shown[Tier.DRIVE] > 0
    percents = hit_percents(view)
    assert all(percents[tier] > 0 for tier in Tier)
    assert sum(percents.values()) == pytest.approx(100, abs=len(Tier))

    least_bytes, most_bytes = plan_of(window).min_vram_bytes, plan_of(window).vram_bytes
    drag_to(window, view, slider, least_bytes + (most_bytes - least_bytes) // 4)
    after = experts_by_tier(window)
    assert after[Tier.VRAM] < before[Tier.VRAM] / 3
    window.qtbot.waitUntil(
        lambda: told_by_tier(window)[Tier.VRAM] <= after[Tier.VRAM], timeout=START_MS
    )
    assert shown_by_tier(window, view)[Tier.VRAM] < shown[Tier.VRAM]

    press_on(window, view, slider, Qt.Key.Key_End)
    assert experts_by_tier(window)[Tier.VRAM] >= before[Tier.VRAM]
    window.send(STORY)
    window.qtbot.waitUntil(
        lambda: told_by_tier(window)[Tier.VRAM] > after[Tier.VRAM], timeout=ANSWER_MS
    )
    window.wait_for_answer()
    assert shown_by_tier(window, view)[Tier.VRAM] > after[Tier.VRAM]
    for size, theme in LOOKS:
        window.program.settings.change(theme=theme)
        main.resize(*size)
        wait_until_drawn_well(window, view)

    window.kill_runtime()
    window.wait_for_stage(Stage.FAILED)
    window.qtbot.waitUntil(lambda: main.notice.text() != "", timeout=START_MS)
    main.show_page(Page.CHAT)
    wait_until_drawn_well(window, window.program.chat_view)
    window.program.session.restart_runtime()
    window.wait_for_stage(Stage.READY)
    assert main.notice.text() == ""
    assert experts_by_tier(window)[Tier.VRAM] > 0


@pytest.mark.usefixtures("slow_drive_profile")
def test_drive_warning_appears_at_a_small_budget_and_goes_at_a_large_one(
    window: WindowDriver,
) -> None:
    program = window.program
    view = open_monitor(window)
    slider = view.budgets.ram.slider
    press_on(window, view, slider, Qt.Key.Key_Home)
    assert experts_by_tier(window)[Tier.DRIVE] > 0
    window.send(STORY)
    window.qtbot.waitUntil(lambda: program.monitor.drive.warning is not None, timeout=ANSWER_MS)
    window.qtbot.waitUntil(program.window.strip.drive_button.isVisible, timeout=START_MS)
    window.qtbot.waitUntil(view.warning.isVisible, timeout=START_MS)
    program.chat.stop()
    window.wait_for_answer()
    assert program.monitor.drive.warning is not None
    press_on(window, view, slider, Qt.Key.Key_End)
    assert experts_by_tier(window)[Tier.DRIVE] == 0
    window.send(STORY)
    window.qtbot.waitUntil(lambda: program.monitor.drive.warning is None, timeout=ANSWER_MS)
    window.qtbot.waitUntil(
        lambda: not program.window.strip.drive_button.isVisible(), timeout=START_MS
    )
    window.qtbot.waitUntil(lambda: not view.warning.isVisible(), timeout=START_MS)
    window.wait_for_answer()


def test_larderctl_tells_the_same_as_the_window_and_its_graphs(
    window: WindowDriver, record_property: Record
) -> None:
    view = open_monitor(window)
    window.send(QUESTION)
    window.wait_for_answer()
    message = window.program.chat.messages[-1]
    folder = plan_of(window).model_folder
    # The last sample may still be on its way, and is drawn with the next point.
    window.qtbot.waitUntil(
        lambda: (
            drive_curve_bytes(view) == pytest.approx(message.stats.drive_bytes_read, rel=0.05)
            if message.stats is not None
            else False
        ),
        timeout=START_MS,
    )
    drawn_bytes, percents = drive_curve_bytes(view), hit_percents(view)
    window.program.session.shutdown()
    told = ask_larderctl(folder)
    assert told["token_ids"] == list(message.token_ids)
    record_property("drive_bytes_drawn", str(round(drawn_bytes)))
    record_property("drive_bytes_told", str(told["drive_bytes_read"]))
    assert drawn_bytes == pytest.approx(told["drive_bytes_read"], rel=0.1)
    hits = {tier: told["tiers"][tier.value]["hits"] for tier in Tier}
    assert message.stats is not None
    ours = {count.tier: count.hits for count in message.stats.tiers}
    for tier in Tier:
        share = hits[tier] / sum(hits.values())
        assert ours[tier] / sum(ours.values()) == pytest.approx(share, abs=0.1)
        assert percents[tier] / 100 == pytest.approx(share, abs=0.1)
