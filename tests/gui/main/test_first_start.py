"""The first start in the whole window: gone through, skipped, and by keys."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QRect, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog
from pytestqt.exceptions import TimeoutError as PatienceEnded
from pytestqt.qtbot import QtBot

from app.main import StartOptions
from app.state.settings import ThemeChoice
from app.views.models_view import ModelsView
from app.views.rail import Page
from app.views.welcome_view import WelcomeView
from tests.gui.text.test_units import plain
from tests.support.accessibility import controls, is_focus_seen, name_of, tour, unnamed
from tests.support.picture_checks import problems
from tests.support.window import WindowDriver

StartFirst = Callable[..., WindowDriver]


@pytest.fixture
def first_start(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[StartFirst]:
    """Start the window as a person does for the first time, or again."""
    demo = tmp_path / "larder-demo"
    demo.mkdir()
    monkeypatch.setenv("LARDER_DEMO_DIR", str(demo))
    drivers: list[WindowDriver] = []

    def start(*, has_demo: bool = True, folder: str = "") -> WindowDriver:
        options = StartOptions(
            folder=folder,
            is_welcome_wanted=True,
            is_demo_wanted=has_demo,
            runtime_arguments=("--engine", "scripted", "--rate", "200"),
        )
        drivers.append(WindowDriver(qtbot, options))
        return drivers[-1]

    yield start
    for driver in drivers:
        driver.close()


def cover(driver: WindowDriver) -> WelcomeView:
    (view,) = driver.program.window.covers()
    assert isinstance(view, WelcomeView)
    return view


def test_first_start_measures_the_pc_and_leads_to_the_demo(
    first_start: StartFirst, qtbot: QtBot
) -> None:
    driver = first_start()
    window = driver.program.window
    view = cover(driver)
    assert view.isVisible()
    assert not window.rail.isVisible()
    QTest.keyClick(view.next_button, Qt.Key.Key_Return)
    assert driver.program.first_start.welcome.step == 1, "Enter presses a button, as Space does"
    qtbot.waitUntil(lambda: driver.program.first_start.welcome.is_measured, timeout=30_000)
    processor, ram, card, drive = (plain(line) for line in view.machine_lines())
    assert processor == "scripted · 4 cores"
    assert ram.startswith(("16 GiB", "16.0 GiB"))
    assert "reads 40.0 GB/s" in ram
    assert card.startswith("Scripted card")
    assert "free" in drive
    assert view.progress.value() == view.progress.maximum()
    QTest.mouseClick(view.back_button, Qt.MouseButton.LeftButton)
    for _ in range(2):
        QTest.mouseClick(view.next_button, Qt.MouseButton.LeftButton)
    QTest.mouseClick(view.demo_button, Qt.MouseButton.LeftButton)
    assert window.covers() == []
    assert window.rail.isVisible()
    assert window.current_page() is Page.CHAT
    assert driver.program.settings.values.is_welcomed
    qtbot.waitUntil(lambda: driver.program.chat.can_ask, timeout=30_000)
    driver.send("?")
    assert driver.wait_for_answer()


def test_first_start_buttons_stay_where_they_are(first_start: StartFirst) -> None:
    view = cover(first_start())
    places: list[tuple[QRect, QRect]] = []
    for step in range(3):
        QApplication.processEvents()
        layout = view.layout()
        assert layout is not None
        layout.activate()
        places.append((view.back_button.geometry(), view.next_button.geometry()))
        assert view.next_button.isVisible() == (step < 2)
        QTest.mouseClick(view.next_button, Qt.MouseButton.LeftButton)
    assert len({(back.x(), on.x()) for back, on in places}) == 1
    assert places[0][0].right() < places[0][1].left()


def test_first_start_skipped_is_not_shown_again(first_start: StartFirst, qtbot: QtBot) -> None:
    driver = first_start(has_demo=False)
    driver.press(Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: driver.program.window.covers() == [])
    assert driver.program.settings.values.is_welcomed
    driver.program.settings.save()
    assert QApplication.focusWidget() is driver.program.chat_view.composer.edit
    assert first_start(has_demo=False).program.window.covers() == []


def test_first_start_gives_way_to_what_was_asked_for(
    first_start: StartFirst, tmp_path: Path
) -> None:
    assert first_start(folder=str(tmp_path / "larder-demo")).program.window.covers() == []
    driver = first_start()
    driver.program.open_again(str(tmp_path / "larder-demo" / "larder-manifest.json"))
    assert driver.program.window.covers() == []
    assert driver.program.window.current_page() is Page.MODELS
    candidate = driver.program.session.candidate
    assert candidate is not None
    assert candidate.folder == str(tmp_path / "larder-demo"), "a file stands for its folder"


def test_first_start_leads_to_folders_and_to_the_hub(
    first_start: StartFirst, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(
        QFileDialog, "getExistingDirectory", lambda *_arguments: str(tmp_path / "larder-demo")
    )
    driver = first_start(has_demo=False)
    view = cover(driver)
    driver.program.first_start.welcome.go(2)
    assert not view.demo_button.isVisible()
    QTest.mouseClick(view.choose_button, Qt.MouseButton.LeftButton)
    candidate = driver.program.session.candidate
    assert candidate is not None
    assert candidate.folder == str(tmp_path / "larder-demo")
    driver.program.settings.change(is_welcomed=False, last_folder="")
    other = first_start(has_demo=False)
    other.program.first_start.welcome.go(2)
    QTest.mouseClick(cover(other).discover_button, Qt.MouseButton.LeftButton)
    page = other.program.window.page(Page.MODELS)
    assert isinstance(page, ModelsView)
    assert page.discover_view is not None
    assert page.discover_tab.isChecked()


@pytest.mark.parametrize(
    ("size", "theme"), [((760, 520), ThemeChoice.LIGHT), ((1360, 850), ThemeChoice.DARK)]
)
def test_first_start_is_drawn_whole_named_and_reached_by_keys(
    first_start: StartFirst, qtbot: QtBot, size: tuple[int, int], theme: ThemeChoice
) -> None:
    driver = first_start()
    window, welcome = driver.program.window, driver.program.first_start.welcome
    driver.program.settings.change(theme=theme)
    window.resize(*size)
    view = cover(driver)
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    qtbot.waitUntil(lambda: welcome.is_measured, timeout=30_000)
    for step in range(3):
        welcome.go(step)
        QApplication.processEvents()
        assert unnamed(window) == []
        visited = tour(window, view.skip_button)
        assert [name_of(each) for each in controls(window) if each not in visited] == []
        assert [name_of(each) for each in visited if not is_focus_seen(window, each)] == []
        found: list[str] = ["not looked at yet"]

        def is_good(found: list[str] = found) -> bool:
            found[:] = problems(window, view)
            return not found

        with contextlib.suppress(PatienceEnded):
            qtbot.waitUntil(is_good, timeout=10_000)
        assert found == []
    view.next_button.setFocus()
    welcome.go(0)
    assert view.next_button.hasFocus()
