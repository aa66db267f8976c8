"""Figures of this PC in the settings: found, stated, taken back, refused, measured again."""

from pathlib import Path

import pytest
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.state.machine_figures import MachineFigures
from app.text.figure_hints import figure_hint
from app.text.figure_words import FigureWords, age, figure_found, figure_name
from app.views.machine_card import MachineCard
from runtime.hardware.figures import figures_of
from runtime.protocol.errors import ErrorCode, ErrorReport, Severity
from runtime.protocol.figure_messages import (
    DescribeFigures,
    Figure,
    FiguresDescribed,
    FigureUnit,
    StateFigure,
)
from runtime.protocol.machine import Measured
from runtime.protocol.messages import CommandFailed, DescribeMachine
from tests.gui.text.test_units import plain
from tests.support.fake_client import FakeClient
from tests.support.monitor_stage import MonitorStage, machine_with_device, ready_stage
from tests.support.window_values import FOLDER

READ = Figure(
    name="ram.read_gb_per_s",
    unit=FigureUnit.GB_PER_S,
    found=Measured(value=29.53, method="measured, 2 threads", age_s=7300.0),
)
SET = Figure(name="instruction_set", unit=FigureUnit.TEXT, found_text="avx2")
LIMIT = Figure(name="ram.limit_gib", unit=FigureUnit.GIB)
CARD = Figure(name="cards[cuda:0].total_gib", unit=FigureUnit.GIB)
CORES = Figure(
    name="num_physical_cores",
    unit=FigureUnit.COUNT,
    found=Measured(value=6.0, method="system"),
    stated=4.0,
)
ALL = [READ, SET, LIMIT, CARD, CORES]


class Shown:
    def __init__(self, stage: MonitorStage, qtbot: QtBot) -> None:
        self.client: FakeClient = stage.client
        self.figures = MachineFigures(stage.monitor.session)
        self.card = MachineCard(self.figures)
        qtbot.addWidget(self.card)
        self.card.show()

    def answer(self, figures: list[Figure], *, is_fixed: bool = False) -> None:
        asked = self.client.sent[-1]
        assert isinstance(asked, DescribeFigures | StateFigure)
        self.client.answer(
            FiguresDescribed(
                request_id=asked.request_id,
                figures=figures,
                file="/settings/machine.json",
                is_fixed=is_fixed,
            )
        )

    def type(self, name: str, text: str) -> None:
        field = self.card.rows[name].field
        field.setText(text)
        field.editingFinished.emit()

    def texts(self, name: str) -> str:
        return plain(" | ".join(self.card.rows[name].texts()))


@pytest.fixture
def shown(stage: MonitorStage, qtbot: QtBot) -> Shown:
    shown = Shown(stage, qtbot)
    shown.answer(ALL)
    return shown


def test_figures_are_asked_for_when_they_are_seen_of_the_loaded_models_drive(
    stage: MonitorStage, qtbot: QtBot
) -> None:
    shown = Shown(stage, qtbot)
    asked = shown.client.last(DescribeFigures)
    assert (asked.folder, asked.is_fresh) == (FOLDER, False)
    assert shown.card.told() == FigureWords.MEASURING
    shown.answer(ALL)
    assert shown.card.told() == "What you type is kept in /settings/machine.json"
    text = shown.texts("ram.read_gb_per_s")
    assert "Speed of reading RAM" in text
    assert "29.53 GB/s · measured, 2 threads · 2 hours ago" in text
    assert shown.card.rows["num_physical_cores"].field.text() == "4"
    assert not shown.card.rows["num_physical_cores"].reset.isHidden()
    assert shown.card.rows["ram.read_gb_per_s"].reset.isHidden()


def test_typed_figure_is_stated_and_this_pc_is_looked_at_anew(shown: Shown) -> None:
    num_looks = shown.client.count(DescribeMachine)
    shown.type("ram.read_gb_per_s", "40,5")
    command = shown.client.last(StateFigure)
    assert (command.name, command.number) == ("ram.read_gb_per_s", 40.5)
    stated = Figure(name=READ.name, unit=READ.unit, found=READ.found, stated=40.5)
    shown.answer([stated, *ALL[1:]])
    assert shown.client.count(DescribeMachine) == num_looks + 1
    row = shown.card.rows["ram.read_gb_per_s"]
    assert row.field.text() == "40.5"
    row.reset.click()
    command = shown.client.last(StateFigure)
    assert (command.name, command.number, command.text) == ("ram.read_gb_per_s", None, "")


def test_figure_that_is_stated_needs_no_wider_window_than_one_that_is_found(
    shown: Shown,
) -> None:
    row = shown.card.rows["ram.read_gb_per_s"]
    found_width = row.minimumSizeHint().width()
    stated = Figure(name=READ.name, unit=READ.unit, found=READ.found, stated=40.5)
    shown.type(READ.name, "40.5")
    shown.answer([stated, *ALL[1:]])
    assert not row.reset.isHidden()
    assert row.minimumSizeHint().width() == found_width


def test_typed_text_is_stated_as_text(shown: Shown) -> None:
    shown.type("instruction_set", "portable")
    command = shown.client.last(StateFigure)
    assert (command.name, command.text, command.number) == ("instruction_set", "portable", None)
    num_looks = shown.client.count(DescribeMachine)
    stated = Figure(name=SET.name, unit=SET.unit, found_text="avx2", stated_text="portable")
    shown.answer([READ, stated, *ALL[2:]])
    assert shown.client.count(DescribeMachine) == num_looks + 1


def test_what_was_not_changed_is_not_sent(shown: Shown) -> None:
    shown.type("ram.read_gb_per_s", " ")
    shown.type("num_physical_cores", "4")
    assert shown.client.count(StateFigure) == 0


def test_what_is_no_number_is_refused_with_a_sentence_and_stays_to_be_mended(
    shown: Shown,
) -> None:
    shown.type("ram.read_gb_per_s", "fast")
    assert shown.client.count(StateFigure) == 0
    text = shown.texts("ram.read_gb_per_s")
    assert "Speed of reading RAM is fast, but a number is needed. Change it and try again." in text
    assert shown.card.rows["ram.read_gb_per_s"].field.text() == "fast"
    assert "but a number" not in shown.texts("ram.limit_gib")


def test_what_was_refused_and_taken_out_again_is_forgotten(shown: Shown) -> None:
    shown.type("ram.read_gb_per_s", "fast")
    shown.type("ram.read_gb_per_s", "")
    assert "but a number" not in shown.texts("ram.read_gb_per_s")
    assert shown.client.count(StateFigure) == 0
    shown.type("num_physical_cores", "many")
    shown.figures.forgive("ram.read_gb_per_s")
    assert "but a number" in shown.texts("num_physical_cores")


def test_what_is_being_typed_stays_when_another_figure_is_told(shown: Shown) -> None:
    field = shown.card.rows["ram.limit_gib"].field
    shown.type("ram.read_gb_per_s", "40")
    QTest.keyClicks(field, "1")
    shown.answer(ALL)
    QTest.keyClicks(field, "2")
    assert field.text() == "12"
    field.editingFinished.emit()
    command = shown.client.last(StateFigure)
    assert (command.name, command.number) == ("ram.limit_gib", 12.0)
    stated = Figure(name=LIMIT.name, unit=LIMIT.unit, stated=12.0)
    shown.answer([READ, SET, stated, CARD, CORES])
    assert field.text() == "12"


def test_what_the_runtime_refuses_is_told_at_its_figure(shown: Shown) -> None:
    shown.type("num_physical_cores", "1.5")
    error = ErrorReport(
        code=ErrorCode.SETTING_INVALID,
        severity=Severity.REQUEST,
        parameters={
            "name": "num_physical_cores",
            "found": "1.5",
            "expected": "a whole number above 0",
        },
    )
    request_id = shown.client.last(StateFigure).request_id
    shown.client.answer(CommandFailed(request_id=request_id, error=error))
    assert "setting Processor cores that compute is 1.5, but a whole number above 0" in shown.texts(
        "num_physical_cores"
    )
    shown.type("num_physical_cores", "2")
    shown.answer(ALL)
    assert "whole number" not in shown.texts("num_physical_cores")


def test_measure_again_forgets_and_says_so_while_it_takes(shown: Shown) -> None:
    shown.card.again.click()
    assert shown.client.last(DescribeFigures).is_fresh
    assert not shown.card.again.isEnabled()
    assert shown.card.told() == FigureWords.MEASURING
    request_id = shown.client.last(DescribeFigures).request_id
    error = ErrorReport(code=ErrorCode.INTERNAL, severity=Severity.RUNTIME)
    shown.client.answer(CommandFailed(request_id=request_id, error=error))
    assert shown.card.again.isEnabled()
    assert shown.card.told() not in (
        FigureWords.MEASURING,
        f"{FigureWords.KEPT_IN} /settings/machine.json",
    )


def test_profile_of_this_run_cannot_be_changed(shown: Shown) -> None:
    shown.card.again.click()
    shown.answer(ALL, is_fixed=True)
    assert shown.card.told().startswith(FigureWords.FIXED)
    assert not shown.card.rows["ram.read_gb_per_s"].field.isEnabled()
    assert shown.card.rows["num_physical_cores"].reset.isHidden()


def test_without_a_runtime_figures_are_asked_for_once_there_is_one(
    tmp_path: Path, qtbot: QtBot
) -> None:
    stage = ready_stage(tmp_path, is_loaded=False)
    stage.client.stop()
    shown = Shown(stage, qtbot)
    stage.monitor.session.changed.emit()
    assert not shown.figures.is_measuring
    assert shown.client.count(DescribeFigures) == 0
    stage.client.open()
    assert shown.client.count(DescribeFigures) == 1
    stage.close()


def test_what_no_runtime_can_take_does_not_stay_in_its_field(shown: Shown) -> None:
    shown.client.stop()
    shown.type("num_physical_cores", "3")
    shown.type("ram.read_gb_per_s", "40")
    assert shown.client.count(StateFigure) == 0
    assert shown.card.rows["num_physical_cores"].field.text() == "4"
    assert shown.card.rows["ram.read_gb_per_s"].field.text() == ""


def test_figures_that_a_runtime_owed_when_it_went_are_asked_of_the_next(
    stage: MonitorStage, qtbot: QtBot
) -> None:
    shown = Shown(stage, qtbot)
    assert shown.figures.is_measuring
    stage.monitor.session.unload()
    assert not shown.figures.is_measuring
    stage.client.end()
    stage.client.open()
    assert shown.client.count(DescribeFigures) == 2
    assert shown.figures.is_measuring


def test_every_figure_has_a_name_and_says_what_was_found() -> None:
    assert figure_name("cards[cuda:0].total_gib") == "VRAM (cuda:0)"
    assert figure_name("something else") == "something else"
    assert figure_found(LIMIT) == FigureWords.NO_LIMIT
    assert figure_found(CARD) == FigureWords.NOT_FOUND
    unread = Figure(name="drive.read_gb_per_s", unit=FigureUnit.GB_PER_S)
    assert figure_found(unread) == FigureWords.NOT_MEASURED
    assert plain(figure_found(CORES)) == "6 · asked of the system"
    large = Figure(name=CARD.name, unit=CARD.unit, found=Measured(value=14901.2, method="system"))
    assert plain(figure_found(large)) == "14901 GiB · asked of the system"
    assert figure_found(SET) == "avx2"
    hung = Figure(name=CARD.name, unit=CARD.unit, problem="its driver did not answer in 4.5 s")
    assert figure_found(hung) == "could not be measured: its driver did not answer in 4.5 s"
    watts = Figure(
        name="pc_watts", unit=FigureUnit.WATT, found=Measured(value=65.0, method="assumed")
    )
    assert plain(figure_found(watts)) == "65 W · assumed"
    joules = Figure(
        name="drive.joules_per_gb",
        unit=FigureUnit.J_PER_GB,
        found=Measured(value=1.0, method="assumed"),
    )
    assert plain(figure_found(joules)) == "1 J/GB · assumed"
    readers = Figure(name="drive.num_readers", unit=FigureUnit.COUNT)
    assert figure_found(readers) == FigureWords.CHOSEN
    sources = Figure(name="energy_sources", unit=FigureUnit.TEXT)
    assert figure_found(sources) == FigureWords.NOT_FOUND
    ages = [age(seconds) for seconds in (5, 61, 7200, 200_000)]
    assert ages == ["just now", "1 minute ago", "2 hours ago", "2 days ago"]


def test_every_figure_that_the_runtime_tells_has_words_and_a_hint_with_what_holds_without_it() -> (
    None
):
    for figure in figures_of(machine_with_device(), {}):
        assert figure_name(figure.name) != figure.name
        hint = figure_hint(figure.name)
        assert "Empty: " in hint, figure.name
        assert "for example" in hint or "type avx512" in hint, figure.name
    assert figure_hint("something else") == figure_hint("cards[cuda:0].colour") == ""


def test_hints_are_said_and_shown_where_a_name_is_not_enough(
    stage: MonitorStage, qtbot: QtBot
) -> None:
    shown = Shown(stage, qtbot)
    watts = Figure(name="rest_watts", unit=FigureUnit.WATT)
    shown.answer([READ, watts])
    row = shown.card.rows["rest_watts"]
    assert "Power of all but processor, memory and graphics card" in shown.texts("rest_watts")
    assert "Mainboard, fans, drives and what the power supply loses" in shown.texts("rest_watts")
    assert "for example 30" in row.field.toolTip()
    assert row.field.accessibleDescription().endswith(row.field.toolTip())
    reading = shown.card.rows["ram.read_gb_per_s"].field
    assert "Experts in RAM answer no faster" not in shown.texts("ram.read_gb_per_s")
    assert "Experts in RAM answer no faster" in reading.toolTip()
    assert "29.53" in reading.accessibleDescription()
