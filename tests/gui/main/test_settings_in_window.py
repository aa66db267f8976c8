"""The settings of memory and of this PC in the whole window, with a runtime that answers."""

from pytestqt.qtbot import QtBot

from app.main import Program
from app.text.figure_words import FigureWords
from app.views.models_view import ModelsView
from app.views.rail import Page
from app.views.settings_view import SettingsView
from runtime.protocol.model import LoadedModel
from runtime.protocol.values import Tier
from tests.gui.main.conftest import StartWindow
from tests.support.window import START_MS


def test_figures_of_this_pc_are_stated_refused_and_taken_back(
    start_window: StartWindow, qtbot: QtBot
) -> None:
    program = start_window(["one"]).program
    program.window.show_page(Page.SETTINGS)
    view = program.window.page(Page.SETTINGS)
    assert isinstance(view, SettingsView)
    card = view.machine
    qtbot.waitUntil(lambda: "ram.total_gib" in card.rows, timeout=START_MS)

    def typed(text: str) -> None:
        field = card.rows["ram.total_gib"].field
        field.setText(text)
        field.editingFinished.emit()

    def says(words: str) -> bool:
        return words in " ".join(card.rows["ram.total_gib"].texts())

    reset = card.rows["ram.total_gib"].reset
    typed("-3")
    qtbot.waitUntil(lambda: says("a number of GiB from 0 on"), timeout=START_MS)
    typed("8")
    qtbot.waitUntil(lambda: not reset.isHidden(), timeout=START_MS)
    assert not says("a number of GiB")
    look_from_plans(program, qtbot)
    assert view.machine.hasFocus()
    reset.click()
    qtbot.waitUntil(reset.isHidden, timeout=START_MS)
    card.again.click()
    qtbot.waitUntil(lambda: card.told() != FigureWords.MEASURING, timeout=START_MS)


def look_from_plans(program: Program, qtbot: QtBot) -> None:
    """Look at plans, which say that a figure is stated, and take the way from there."""
    program.window.show_page(Page.MODELS)
    models = program.window.page(Page.MODELS)
    assert isinstance(models, ModelsView)
    line = models.candidate_view.stated
    qtbot.waitUntil(line.isVisible, timeout=START_MS)
    assert line.text().startswith("1 figure of this PC is stated in the settings")
    line.settings.click()
    assert program.window.current_page() is Page.SETTINGS


def test_slider_of_the_settings_moves_experts_of_the_running_model(
    start_window: StartWindow, qtbot: QtBot
) -> None:
    program = start_window(["one"]).program
    program.window.show_page(Page.SETTINGS)
    view = program.window.page(Page.SETTINGS)
    assert isinstance(view, SettingsView)
    assert view.memory is not None
    assert view.memory.live.isVisible()
    before = program.session.loaded
    assert before is not None
    slider = view.memory.live.ram.slider
    qtbot.waitUntil(lambda: program.monitor.live.bounds is not None, timeout=START_MS)
    slider.setSliderDown(True)
    slider.setValue(slider.minimum())
    slider.setSliderDown(False)
    slider.let_go.emit(slider.chosen_bytes())
    qtbot.waitUntil(lambda: program.monitor.live.was_set, timeout=START_MS)
    after = program.session.loaded
    assert after is not None

    assert in_ram(after) < in_ram(before)
    assert program.client.is_open, "the same process"


def in_ram(model: LoadedModel) -> int:
    return sum(share.num_experts for share in model.tiers if share.tier is Tier.RAM)
