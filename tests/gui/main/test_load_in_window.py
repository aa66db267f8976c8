"""Preparing and loading in the window: how far it is can be seen, and cancelled on every page."""

from pathlib import Path

from app.state.stages import Stage
from app.text import phrases
from app.text.words import ModelWords, ShellWords
from app.views.candidate_view import CandidateView
from app.views.models_view import ModelsView
from app.views.rail import Page
from app.views.strip import Strip
from tests.gui.main.conftest import StartWindow
from tests.support.window import START_MS, WindowDriver


def drop_model(window: WindowDriver, folder: Path) -> CandidateView:
    """Drop a model and wait until it can be loaded."""
    session = window.program.session
    window.drop(folder / "a model")
    window.qtbot.waitUntil(
        lambda: session.candidate is not None and session.candidate.can_load, timeout=START_MS
    )
    page = window.program.window.page(Page.MODELS)
    assert isinstance(page, ModelsView)
    return page.candidate_view


def progress_shown(window: WindowDriver, view: CandidateView, word: str) -> Strip:
    """Wait until page and strip say how far something is; return the strip."""
    window.program.window.show_page(Page.MODELS)
    window.qtbot.waitUntil(lambda: view._progress_text.text().startswith(word), timeout=START_MS)
    assert view._progress.isVisible()
    assert view._progress.maximum() > 0
    strip = window.program.window.strip
    assert strip._work.text().startswith(word)
    return strip


def test_load_shows_how_far_it_is_and_is_cancelled_where_the_person_is(
    start_window: StartWindow, tmp_path: Path
) -> None:
    window = start_window(is_loading=False, load_s=600.0)
    session = window.program.session
    view = drop_model(window, tmp_path)
    window.click(view, ModelWords.LOAD)
    window.wait_for_stage(Stage.LOADING)
    strip = progress_shown(window, view, ModelWords.LOADING_DENSE)
    # The page that a start leads to has the button too.
    window.program.window.show_page(Page.CHAT)
    window.click(strip, ShellWords.CANCEL)
    window.wait_for_stage(Stage.PLANNED)
    assert not strip.cancel_button.isVisible()
    window.program.window.show_page(Page.MODELS)
    assert session.loaded is None
    assert session.error is None
    assert not view._progress.isVisible()
    assert not view._cancel.isVisible()
    assert view._start.isEnabled()


def test_preparation_shows_how_far_it_is_and_is_cancelled_where_the_person_is(
    start_window: StartWindow, tmp_path: Path
) -> None:
    window = start_window(prepare_s=600.0)
    session = window.program.session
    loaded = session.loaded
    view = drop_model(window, tmp_path)
    window.click(view, f"{ModelWords.BALANCED}{phrases.DOT}{ModelWords.EIGHT_BIT}")
    window.click(view, ModelWords.PREPARE_AND_LOAD)
    window.wait_for_stage(Stage.PREPARING)
    strip = progress_shown(window, view, ModelWords.PREPARING)
    # Meanwhile the loaded model answers.
    window.program.window.show_page(Page.CHAT)
    window.send("Why sour?")
    assert window.wait_for_answer()
    window.click(strip, ShellWords.CANCEL)
    window.wait_for_stage(Stage.READY)
    assert session.loaded == loaded
    assert session.error is None
    assert not strip.cancel_button.isVisible()
    window.program.window.show_page(Page.MODELS)
    assert not view._progress.isVisible()
    window.click(view, ModelWords.PREPARE_AND_LOAD)
    window.wait_for_stage(Stage.PREPARING)
    window.program.window.show_page(Page.MODELS)
    window.click(view, ShellWords.CANCEL)
    window.wait_for_stage(Stage.READY)
