"""The Monitor page over a played runtime."""

from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QColor, QImage, QMouseEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QFileDialog,
    QLabel,
    QSlider,
    QStackedWidget,
    QToolButton,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.graphs.expert_grid import MapMode
from app.state.drive_warning import Remedy, RemedyKind
from app.theme.palette import DARK, LIGHT
from app.views.monitor_view import MonitorView
from app.views.saving import picture_of
from runtime.protocol.chat import ChatMessage, Role, SamplingSettings
from runtime.protocol.messages import TelemetrySampled
from runtime.protocol.plan import PlanKind
from runtime.protocol.telemetry import ExpertMap, HintCount, MachineStrain, NoteCode, RuntimeNote
from tests.gui.text.test_units import plain
from tests.support.drive_values import answer_with, plan_that_reads
from tests.support.monitor_stage import MonitorStage, live_sample
from tests.support.paint_counts import PaintCounts
from tests.support.session_replies import answer_plan
from tests.support.window_values import FOLDER, some_stats


@pytest.fixture
def view(stage: MonitorStage, qtbot: QtBot) -> MonitorView:
    view = MonitorView(stage.monitor, LIGHT)
    qtbot.addWidget(view)
    view.resize(1276, 810)
    return view


def texts(widget: QWidget) -> str:
    """Return all words below a widget that are shown."""
    found = [each.text() for each in widget.findChildren(QLabel) if not each.isHidden()]
    return plain("\n".join(found))


def test_monitor_shows_what_is_measured(view: MonitorView, stage: MonitorStage) -> None:
    stage.play(30)
    view.show()
    assert [plain(texts(card)) for card in view.hits] == [
        "From VRAM (simulated)\n61 %\nby bytes 58 %",
        "From RAM\n37 %\nby bytes 39 %",
        "From the drive\n2 %\nby bytes 3 %",
    ]
    assert "RAM read 33 of 52" in texts(view.throughput)
    assert "drive 1.5 of 6.8" in texts(view.throughput)
    energy = texts(view.energy)
    assert "graphics card 77 measured" in energy
    assert "rest 16 estimated" in energy
    assert "Wh per 1000 tokens" in energy
    assert "A token takes 4" in texts(view.token)
    assert "waiting for the drive" in texts(view.token)
    assert view.map_card.map.grid.num_layers == 48
    assert "VRAM (simulated)" in view.map_card.map.accessibleDescription()


def test_monitor_shows_what_is_written_and_how_warm_it_is(
    view: MonitorView, stage: MonitorStage
) -> None:
    assert "not told by this system" in texts(view.strain)
    stage.play(30)
    view.show()
    assert texts(view.strain).splitlines()[1:] == [
        "Written: 4 MB by this model, 1.4 GB by all programs to its drive",
        "drive 43 °C · processor 61 °C · graphics card not told",
    ]
    unknown = msgspec.structs.replace(live_sample(1), strain=MachineStrain())
    stage.client.answer(TelemetrySampled(sample=unknown))
    view._show_numbers()
    assert texts(view.strain).splitlines()[1:] == [
        "What is written to drives is not told by this system.",
        "Temperatures are not told by this system.",
    ]


def test_monitor_says_of_a_model_without_experts_that_it_has_none(
    view: MonitorView, stage: MonitorStage
) -> None:
    stage.play(1)
    view.show()
    assert "Each row is a layer" in view.map_card.caption()
    empty = ExpertMap(num_layers=0, num_experts=0, use=b"")
    view.map_card.show_map(empty, is_simulated=False)
    assert view.map_card.caption() == "This model has no experts."


def test_monitor_tells_what_session_and_month_took(view: MonitorView, stage: MonitorStage) -> None:
    stage.play(30)
    view.show()
    assert "This session" not in texts(view.energy)
    stats = msgspec.structs.replace(some_stats(energy_j=7200.0), drive_bytes_read=12_000_000_000)
    assert stage.monitor.energy.take_answer(stats)
    stage.play(3)
    view._show_numbers()
    assert (
        "This session 2.0 Wh · 0.06 ct, this month 2.0 Wh · 0.06 ct"
        "\nThis session read 12.0 GB from drives and wrote nothing, this month 12.0 GB and nothing."
        " Reading does not wear a drive."
    ) in texts(view.energy)


def test_monitor_says_that_the_running_answer_is_not_in_the_sums_yet(
    view: MonitorView, stage: MonitorStage
) -> None:
    added_later = "The answer that is being written is added when it ends."
    view.show()
    stage.monitor.energy.take_answer(some_stats(energy_j=7200.0))
    stage.play(3)
    view._show_numbers()
    assert added_later not in texts(view.energy)
    question = [ChatMessage(role=Role.USER, text="Why?")]
    assert stage.monitor.session.start_answer(question, SamplingSettings(), lambda _: None)
    stage.play(3)
    view._show_numbers()
    assert added_later in texts(view.energy)


def test_monitor_is_empty_without_a_model(empty_stage: MonitorStage, qtbot: QtBot) -> None:
    view = MonitorView(empty_stage.monitor, DARK)
    qtbot.addWidget(view)
    view.show()
    assert "Nothing has been measured yet" in texts(view)
    assert not view.map_card.isVisible()


def test_monitor_hidden_draws_nothing(stage: MonitorStage, qtbot: QtBot) -> None:
    view = MonitorView(stage.monitor, LIGHT)
    pages = QStackedWidget()
    other = QWidget()
    pages.addWidget(view)
    pages.addWidget(other)
    qtbot.addWidget(pages)
    pages.resize(1276, 810)
    pages.show()
    qtbot.waitExposed(pages)
    counts = PaintCounts(view)
    stage.play(3)
    qtbot.waitUntil(lambda: counts.num_paints > 0, timeout=3000)
    pages.setCurrentWidget(other)
    QTest.qWait(50)
    counts.take()
    stage.play(5)
    QTest.qWait(700)
    assert counts.take() == 0
    assert not view.clock.is_running
    pages.setCurrentWidget(view)
    qtbot.waitUntil(lambda: counts.num_paints > 0, timeout=3000)


def test_monitor_without_new_samples_draws_nothing(
    view: MonitorView, stage: MonitorStage, qtbot: QtBot
) -> None:
    stage.play(3)
    view.show()
    qtbot.waitExposed(view)
    QTest.qWait(300)
    counts = PaintCounts(view.map_card.map)
    plots = PaintCounts(view.throughput.plot)
    QTest.qWait(500)
    assert counts.take() == plots.take() == 0


def test_monitor_of_a_resting_engine_is_drawn_once_with_each_sample(
    view: MonitorView, stage: MonitorStage, qtbot: QtBot
) -> None:
    stage.play(3)
    view.show()
    qtbot.waitExposed(view)
    quiet = msgspec.structs.replace(
        live_sample(1), num_tokens=0, ram_bytes_read=0, drive_bytes_read=0, link_bytes=0,
        interval_s=2.0,
    )  # fmt: skip
    everything = (view.map_card.map, view.throughput.plot, view.energy.plot, view.memory)
    for _ in range(3):
        stage.clock.now_s += 2.0
        stage.client.answer(TelemetrySampled(sample=quiet))
        # Room for the layout, which settles with the first numbers of a rest.
        QTest.qWait(150)
    counts = [PaintCounts(each) for each in everything]
    stage.clock.now_s += 2.0
    stage.client.answer(TelemetrySampled(sample=quiet))
    QTest.qWait(300)
    assert not view.clock.is_running
    # Map and memory are as before; the curves wander to the left.
    assert [each.take() for each in counts] == [0, 1, 1, 0]
    assert "RAM read 0 of 52" in texts(view.throughput)


def test_monitor_paused_keeps_its_picture(view: MonitorView, stage: MonitorStage) -> None:
    stage.play(10)
    view.show()
    before = view.throughput.plot.curves()
    QTest.mouseClick(view.pause_button, Qt.MouseButton.LeftButton)
    stage.play(10)
    QTest.qWait(250)
    assert view.throughput.plot.curves() == before
    assert "Paused" in texts(view)
    QTest.mouseClick(view.pause_button, Qt.MouseButton.LeftButton)
    assert view.throughput.plot.curves() != before
    assert "Paused" not in texts(view)


def test_monitor_modes_redraw_the_map(view: MonitorView, stage: MonitorStage) -> None:
    stage.play(1)
    view.show()
    by_name = {each.text(): each for each in view.map_card.findChildren(QToolButton) if each.text()}
    held = [plain(text) for text in view.map_card.legend()]
    assert [text.rsplit(" ", 1)[0] for text in held] == ["VRAM (simulated)", "RAM", "drive"]
    assert sum(int(text.rsplit(" ", 1)[1].replace(",", "")) for text in held) == 48 * 128
    by_name["use"].click()
    assert view.map_card.map.grid.mode is MapMode.USE
    assert view.map_card.legend() == ["used least", "used most"]
    by_name["bits"].click()
    assert view.map_card.map.grid.mode is MapMode.BITS
    stored = [plain(text).split(": ")[0] for text in view.map_card.legend()]
    assert stored == ["4 bits", "8 bits"]
    assert "bits" in view.map_card.caption()
    by_name["tier"].click()
    view.map_card.map.setFocus()
    QTest.keyClick(view.map_card.map, Qt.Key.Key_Right)
    assert plain(view.map_card.caption()).startswith("layer 1 of 48 · expert ")
    assert "VRAM (simulated)" in view.map_card.caption()
    assert "MiB" in view.map_card.caption()
    assert view.map_card.map.toolTip() == view.map_card.caption()


def test_monitor_bars_say_which_tiers_answered_a_layer(
    view: MonitorView, stage: MonitorStage, qtbot: QtBot
) -> None:
    stage.play(1)
    view.show()
    bars = view.map_card.bars
    assert "of its look-ups" in bars.accessibleDescription()
    colours = {QColor(bars.image().pixel(x, 3)).name().upper() for x in range(bars.width())}
    assert colours == {LIGHT.vram.upper(), LIGHT.ram.upper(), LIGHT.drive.upper()}
    QTest.keyClick(bars, Qt.Key.Key_Down)
    QTest.keyClick(bars, Qt.Key.Key_Down)
    said = plain(view.map_card.caption())
    assert said.startswith("layer 2 of 48 · VRAM ")
    assert "drive" in said
    assert bars.toolTip() == view.map_card.caption()
    counts = PaintCounts(bars)
    place = QPointF(5, bars.height() - 2)
    none = Qt.MouseButton.NoButton
    how = (none, none, Qt.KeyboardModifier.NoModifier)
    bars.mouseMoveEvent(QMouseEvent(QEvent.Type.MouseMove, place, place, *how))
    assert plain(view.map_card.caption()).startswith("layer 48 of 48")
    qtbot.waitUntil(lambda: counts.take() > 0)
    bars.leaveEvent(None)  # type: ignore[arg-type]
    assert "Each row is a layer" in view.map_card.caption()
    QTest.keyClick(bars, Qt.Key.Key_Left)
    assert "Each row is a layer" in view.map_card.caption()
    view.show_palette(DARK)
    assert QColor(bars.image().pixel(0, 3)).name().upper() == DARK.vram.upper()


def test_monitor_notes_are_told_with_the_time(view: MonitorView, stage: MonitorStage) -> None:
    assert "Nothing out of the ordinary" in view.notes.text()
    note = RuntimeNote(code=NoteCode.TOPIC_CHANGED, parameters={"num_experts": 212})
    stage.client.answer(
        TelemetrySampled(sample=msgspec.structs.replace(live_sample(1), notes=[note]))
    )
    line = view.notes.text()
    assert line[2] == ":"
    assert line.endswith("Topic changed: 212 experts exchanged")


def test_monitor_warning_appears_with_its_remedy_and_goes(
    view: MonitorView, stage: MonitorStage, qtbot: QtBot
) -> None:
    view.show()
    assert view.warning.text() == ""
    stage.play(60, wait_ratio=0.7)
    text = plain(view.warning.text())
    assert "7.0 GB per 100 tokens" in text
    assert "of the time" in text
    assert "cost" in text
    assert "from RAM they would take about" in text
    assert "Working out what would help" in text
    first, second = view.warning.remedies
    assert not first.button.isVisible()
    assert not second.isVisible()
    plan = msgspec.structs.replace(
        plan_that_reads(0, rate=31), ram_bytes=12 << 30, all_ram_bytes=12 << 30
    )
    lower = plan_that_reads(0, PlanKind.FOUR_BIT, rate=25)
    answer_plan(stage.client, plan, lower)
    text = plain(view.warning.text())
    assert "The plan “4 bits” about 25 tokens/s, reading nothing." in text
    assert "With 12.0 GiB RAM about 31 tokens/s, reading nothing." in text
    with qtbot.waitSignal(view.remedy_wanted) as wanted:
        first.button.click()
    assert wanted.args == [Remedy(RemedyKind.MORE_MEMORY, plan)]
    with qtbot.waitSignal(view.remedy_wanted) as wanted:
        second.button.click()
    assert wanted.args == [Remedy(RemedyKind.LOWER_BITS, lower)]
    stage.play(70, wait_ratio=0.05)
    assert view.warning.text() == ""
    assert view.warning.isHidden()


def test_monitor_warning_is_muted_for_this_model_by_its_button(
    view: MonitorView, stage: MonitorStage
) -> None:
    view.show()
    stage.play(60, wait_ratio=0.7)
    assert view.warning.isVisible()
    view.warning.quiet.click()
    assert view.warning.isHidden()
    stage.play(20, wait_ratio=0.7)
    assert view.warning.isHidden()
    assert stage.monitor.settings.values.quiet_drive_models == [FOLDER]


def test_monitor_after_an_answer_shows_its_time_and_hits(view: MonitorView) -> None:
    view.show_answer(None)
    assert "Ask something" in texts(view.token)
    view.show_answer(answer_with(0.5))
    assert "A token takes 47 ms" in texts(view.token)
    assert texts(view.hits[1]) == "From RAM\n98 %\nby bytes 98 %"
    assert texts(view.hits[2]) == "From the drive\n2 %\nby bytes 2 %"


def test_monitor_narrow_stands_in_one_column(view: MonitorView, stage: MonitorStage) -> None:
    stage.play(2)
    view.show()
    assert view.energy.geometry().left() > view.map_card.geometry().right()
    view.resize(800, 560)
    QTest.qWait(20)
    assert view.energy.geometry().top() > view.map_card.geometry().bottom()
    assert view.map_card.width() > 700


def test_monitor_every_control_has_a_name(view: MonitorView, stage: MonitorStage) -> None:
    stage.play(60, wait_ratio=0.7)
    view.show()
    controls = [
        each
        for each in view.findChildren(QWidget)
        if isinstance(each, QAbstractButton | QSlider) and not each.objectName().startswith("qt_")
    ]
    assert len(controls) >= 8
    assert [
        each
        for each in controls
        if not each.accessibleName() and not each.isHidden() and not getattr(each, "text", str)()
    ] == []
    for drawn in (view.map_card.map, view.throughput.plot, view.energy.plot, *view.hits):
        assert drawn.accessibleName()


def test_monitor_in_dark_changes_every_part(view: MonitorView, stage: MonitorStage) -> None:
    stage.play(3)
    view.show()
    view.show_palette(DARK)
    found = view.map_card.map.image().pixelColor(0, 0)
    assert abs(found.red() - QColor(DARK.vram).red()) < 20


def test_memory_says_who_holds_what(view: MonitorView, stage: MonitorStage) -> None:
    stage.play(30)
    view.show()
    memory = texts(view.memory)
    assert "VRAM (simulated), 12.0 GiB" in memory
    assert "RAM, 32.0 GiB" in memory
    assert "experts 8.0 GiB" in memory
    assert "other programs, at the start 8.0 GiB" in memory
    assert "free" in memory


def test_reading_ahead_shows_what_became_of_it(view: MonitorView, stage: MonitorStage) -> None:
    view.show()
    stage.play(30)
    view._show_numbers()
    assert "No expert was read before it was needed" in texts(view.reading)
    hints = HintCount(useful=6, late=3, wasted=1)
    for step in range(10):
        sample = msgspec.structs.replace(live_sample(step), hints=hints)
        stage.clock.now_s += 0.1
        stage.client.answer(TelemetrySampled(sample=sample))
    view._show_numbers()
    assert "100 experts · useful 60 % · late 30 % · wasted 10 %" in texts(view.reading)
    assert "GB read from the drive in the last minute" in texts(view.reading)


def test_curves_can_go_back_a_quarter_of_an_hour(view: MonitorView, stage: MonitorStage) -> None:
    view.show()
    stage.play(20)
    stage.clock.now_s += 100
    stage.play(20)
    heading = view.menu.menu().actions()[0]
    assert (heading.text(), heading.isEnabled()) == ("How far back the curves go", False)
    view.menu.windows[900.0].trigger()
    assert view.menu.windows[900.0].isChecked()
    points = [x for curve in view.energy.plot.curves() for part in curve.segments for x, _ in part]
    assert min(points) < -100
    assert "in the last 15 minutes" in texts(view.reading)
    assert not view.energy.plot.grab().toImage().isNull()


def test_saved_picture_has_a_ground_of_its_own(qtbot: QtBot) -> None:
    widget = QWidget()
    qtbot.addWidget(widget)
    widget.setAttribute(Qt.WidgetAttribute.WA_TranslucentBackground)
    saved = QImage.fromData(picture_of(widget, DARK.background))
    assert saved.pixelColor(2, 2).name().upper() == DARK.background


def test_curves_and_page_can_be_saved(
    view: MonitorView, stage: MonitorStage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    view.show()
    stage.play(20)
    table, picture = tmp_path / "curves.csv", tmp_path / "page.png"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(table), ""))
    view.menu.table.trigger()
    assert table.read_text().startswith("seconds,ram_read_bytes_per_s,")
    assert f"Saved as {table}." in texts(view)
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(picture), ""))
    view.menu.picture.trigger()
    saved = QImage(str(picture))
    assert saved.width() > 1000
    assert not saved.hasAlphaChannel()
    assert {saved.pixelColor(x, 300).name() for x in range(0, saved.width(), 5)} != {"#ffffff"}
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path), ""))
    view.menu.table.trigger()
    assert "could not be written" in texts(view)
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: ("", ""))
    view.menu.picture.trigger()
    view.menu.table.trigger()
    assert sorted(tmp_path.glob("*.png")) == [picture]
