"""Ordering a copy of mixed bits: its sizes, its text, and what the runtime is told."""

from pathlib import Path

import msgspec
import pytest
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from app.state.load_flow import MixOrder
from app.state.mix_range import LEAST_BITS, MOST_BITS, MixRange, mix_range
from app.state.progress import Progress, ProgressKind
from app.state.session import Session
from app.state.stages import Stage
from app.theme.palette import LIGHT
from app.views.candidate_view import CandidateView
from app.views.mix_card import MixCard
from app.views.progress_text import progress_name
from runtime.protocol.errors import ErrorCode
from runtime.protocol.messages import (
    LoadModel,
    ModelPrepared,
    PrepareCancelled,
    PrepareModel,
    PreparePhase,
    PrepareProgressed,
)
from runtime.protocol.plan import PlanKind
from runtime.protocol.values import WeightFormat
from tests.gui.text.test_units import plain
from tests.support.fake_client import FakeClient
from tests.support.monitor_stage import MonitorStage
from tests.support.session_replies import answer_load, answer_plan, plan_candidate
from tests.support.window_values import FOLDER, some_machine, some_plan, some_report

GIB = 1 << 30
RANGE = MixRange(2 * GIB, 8 * GIB, 4 * GIB, 8 * GIB)
"""Of eight billion weights and a half."""
FEWER = [some_plan(), some_plan(PlanKind.FOUR_BIT)]


@pytest.fixture
def card(qtbot: QtBot) -> MixCard:
    card = MixCard()
    qtbot.addWidget(card)
    card.show_range(RANGE, is_busy=False)
    return card


def ordered(card: MixCard, qtbot: QtBot) -> MixOrder:
    with qtbot.waitSignal(card.ordered) as told:
        card.order.click()
    assert told.args is not None
    order = told.args[0]
    assert isinstance(order, MixOrder)
    return order


def test_size_that_suits_this_pc_is_proposed_and_bits_follow(card: MixCard, qtbot: QtBot) -> None:
    assert ordered(card, qtbot) == MixOrder(4 * GIB)
    assert plain(card.bits()) == "about 4.0 bits a weight"
    card.amount.setValue(6.0)
    assert plain(card.bits()) == "about 6.0 bits a weight"
    card.show_range(MixRange(2 * GIB, 8 * GIB, 3 * GIB, 8 * GIB), is_busy=False)
    assert ordered(card, qtbot).size_bytes == 6 * GIB, "what a person chose stays"
    card.show_range(MixRange(GIB, 4 * GIB, 2 * GIB, 4 * GIB), is_busy=True)
    assert not card.order.isEnabled()
    assert card.amount.value() == 2.0, "of another model its own is proposed"
    card.show_range(None, is_busy=False)
    assert card.isHidden()


def test_text_is_the_one_that_comes_along_or_one_that_is_chosen(
    card: MixCard, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = iter(["/texts/mine.txt", "", "/texts/other.md"])
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (next(paths), ""))

    def choose(index: int) -> str:
        card.text.setCurrentIndex(index)
        card.text.activated.emit(index)
        return ordered(card, qtbot).text

    assert ordered(card, qtbot).text == ""
    assert choose(1) == "/texts/mine.txt"
    assert card.text.currentText() == "mine.txt"
    assert choose(2) == "/texts/mine.txt", "the dialog was closed"
    assert card.text.currentText() == "mine.txt"
    assert choose(2) == "/texts/other.md"
    assert choose(0) == ""
    assert card.text.count() == 3


def test_range_reaches_from_the_fewest_bits_to_what_the_memory_bears() -> None:
    report = msgspec.structs.replace(some_report(), num_parameters=30_000_000_000)
    found = mix_range(report, FEWER, some_machine())
    assert found is not None
    assert found.bits(found.least_bytes) == pytest.approx(LEAST_BITS)
    assert found.bits(found.most_bytes) == pytest.approx(MOST_BITS)
    assert 10e9 < found.best_bytes < 12e9, "12 GB are free"
    small = mix_range(some_report(), FEWER, some_machine())
    assert small is not None
    assert small.bits(small.best_bytes) == pytest.approx(4.5)


def test_range_is_none_where_bits_cannot_be_mixed() -> None:
    machine = some_machine()
    assert mix_range(some_report(), [some_plan()], machine) is None
    assert mix_range(some_report(), [some_plan(PlanKind.FOUR_BIT)], machine) is None
    dense = msgspec.structs.replace(some_report(), num_experts=0)
    assert mix_range(dense, FEWER, machine) is None


def test_candidate_offers_a_mix_of_the_folder_that_is_looked_at(
    stage: MonitorStage, qtbot: QtBot
) -> None:
    session = stage.monitor.session
    plan_candidate(session, stage.client, *FEWER)
    view = CandidateView(LIGHT)
    qtbot.addWidget(view)
    candidate = session.candidate
    assert candidate is not None
    view.show_candidate(
        candidate,
        loaded_folder="",
        is_busy=False,
        machine=session.machine,
        limits=session.budgets.limits(),
    )
    assert not view.mix.isHidden()
    with qtbot.waitSignal(view.mix_wanted) as told:
        view.mix.order.click()
    assert told.args is not None
    assert told.args[0] == FOLDER


def test_progress_of_a_text_is_told_in_tokens() -> None:
    reading = Progress(ProgressKind.READ_TEXT, 1204, 8192, 40.0, 130.0)
    assert plain(progress_name(reading)) == (
        "Reading the text · 1,204 of 8,192 tokens · 2 min 10 s left for reading"
    )
    assert "tokens · " not in progress_name(Progress(ProgressKind.READ_TEXT, 0, 8, 0.0, None))
    assert "left" not in progress_name(Progress(ProgressKind.READ_TEXT, 8, 8, 4.0, 0.0))
    trying = Progress(ProgressKind.TRY_FORMATS, GIB, 2 * GIB, 0.0, None)
    assert plain(progress_name(trying)).startswith("Trying how many bits each part needs · 1.0 GiB")


def test_progress_of_trials_is_told_in_parts() -> None:
    trying = Progress(ProgressKind.TRY_PARTS, 5, 18, 0.07, 185.0)
    assert plain(progress_name(trying)) == (
        "Trying which parts answers depend on · 5 of 18 parts · 3 min 05 s left"
    )
    first = Progress(ProgressKind.TRY_PARTS, 0, 18, 0.0, None)
    assert plain(progress_name(first)).endswith("depend on · 0 of 18 parts")


ORDER = MixOrder(3 * GIB, "/texts/mine.txt")


@pytest.fixture
def session(stage: MonitorStage) -> Session:
    return stage.monitor.session


@pytest.fixture
def client(stage: MonitorStage) -> FakeClient:
    return stage.client


def told(client: FakeClient, phase: PreparePhase) -> None:
    request_id = client.last(PrepareModel).request_id
    client.answer(
        PrepareProgressed(
            request_id=request_id, done_bytes=1, total_bytes=4, bytes_per_s=1.0, phase=phase
        )
    )


def prepared(client: FakeClient) -> None:
    request_id = client.last(PrepareModel).request_id
    client.answer(
        ModelPrepared(
            request_id=request_id,
            folder="/copy",
            expert_format=WeightFormat.Q4A_G32,
            size_bytes=9,
        )
    )


def test_order_is_written_with_its_text_told_by_phase_and_loaded(
    empty_stage: MonitorStage,
) -> None:
    session, client = empty_stage.monitor.session, empty_stage.client
    session.order_mix(FOLDER, ORDER)
    answer_plan(client, *FEWER)
    command = client.last(PrepareModel)
    assert (command.mix_bytes, command.calibration_text) == (3 * GIB, "/texts/mine.txt")
    kinds = []
    for phase in PreparePhase:
        told(client, phase)
        assert session.progress is not None
        kinds.append(session.progress.kind)
    assert kinds == [
        ProgressKind.READ_TEXT,
        ProgressKind.TRY_PARTS,
        ProgressKind.TRY_FORMATS,
        ProgressKind.PREPARE,
    ]
    prepared(client)
    mixed = some_plan(PlanKind.MIXED)
    answer_plan(client, *FEWER, mixed)
    assert client.last(LoadModel).plan == mixed
    answer_load(client)
    assert session.stage is Stage.READY
    assert session.loaded_plan == mixed


def test_order_that_is_cancelled_leaves_the_loaded_model(
    session: Session, client: FakeClient
) -> None:
    session.order_mix(FOLDER, ORDER)
    answer_plan(client, *FEWER)
    loaded = session.loaded
    session.cancel()
    client.answer(PrepareCancelled(request_id=client.last(PrepareModel).request_id, kept_bytes=5))
    assert session.loaded == loaded
    assert session.error is None


def test_order_whose_copy_is_not_found_again_is_told(empty_stage: MonitorStage) -> None:
    session, client = empty_stage.monitor.session, empty_stage.client
    session.order_mix(FOLDER, ORDER)
    answer_plan(client, *FEWER)
    prepared(client)
    answer_plan(client, *FEWER)
    assert session.error is not None
    assert session.error.code is ErrorCode.COPY_LOST


def test_path_of_a_text_may_have_any_name(card: MixCard, tmp_path: Path) -> None:
    card._take_text(str(tmp_path / "ein Text – 文.txt"))
    assert card.text.currentText() == "ein Text – 文.txt"
