"""The whole window against a runtime process that plays a script."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.language import speak
from app.main import StartOptions
from app.state.stages import Stage
from app.text import translate
from tests.support.window import WindowDriver

StartWindow = Callable[..., WindowDriver]


@pytest.fixture
def _language_as_before(qtbot: QtBot) -> Iterator[None]:
    """Leave the words as they were, and of the application what English has."""
    before = translate._Catalogue.current
    yield
    speak("en", Path("none"))
    translate.use_translations(before)


@pytest.fixture
def start_window(qtbot: QtBot, tmp_path: Path) -> Iterator[StartWindow]:
    """Start the window with scripted answers, wait until it is ready, end it afterwards."""
    drivers: list[WindowDriver] = []

    def start(
        answers: list[str] | None = None,
        rate: float = 200.0,
        *,
        is_loading: bool = True,
        prompt_rate: float = 2000.0,
        load_s: float = 0.5,
        prepare_s: float = 1.0,
    ) -> WindowDriver:
        path = tmp_path / "script.json"
        script: dict[str, object] = {
            "prompt_tokens_per_s": prompt_rate,
            "load_s": load_s,
            "prepare_s": prepare_s,
        }
        path.write_text(
            json.dumps({**script, "answers": answers} if answers else script), encoding="utf-8"
        )
        folder = tmp_path / "a model"
        folder.mkdir(exist_ok=True)
        options = StartOptions(
            folder=str(folder) if is_loading else "",
            is_demo_wanted=False,
            runtime_arguments=("--engine", "scripted", "--script", str(path), "--rate", str(rate)),
        )
        driver = WindowDriver(qtbot, options)
        drivers.append(driver)
        driver.wait_for_stage(Stage.READY if is_loading else Stage.IDLE)
        return driver

    yield start
    for driver in drivers:
        driver.close()
