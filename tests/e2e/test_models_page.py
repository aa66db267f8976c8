"""A person drops folders of the demo model, chooses, and moves budgets on the Models page."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel

from app.state.stages import Stage
from app.text import phrases
from app.text.errors import sentence
from app.text.words import ModelWords, ShellWords
from app.views.candidate_view import CandidateView
from app.views.models_view import ModelsView
from app.views.rail import Page
from runtime.protocol.errors import ErrorCode, ErrorReport
from tests.support.window import START_MS, WindowDriver

pytestmark = pytest.mark.usefixtures("measured_before")

QUESTION = "What is the capital of France?"


def candidate_view(window: WindowDriver) -> CandidateView:
    """Return the part of the Models page that shows the folder that is looked at."""
    view = window.program.window.page(Page.MODELS)
    assert isinstance(view, ModelsView)
    return view.candidate_view


def wait_until_loadable(window: WindowDriver) -> None:
    """Wait until the folder that is looked at has a plan that can be carried out."""
    session = window.program.session
    window.qtbot.waitUntil(
        lambda: session.candidate is not None and session.candidate.can_load, timeout=START_MS
    )


def problem_of_plan(window: WindowDriver) -> ErrorReport | None:
    """Return why the first plan cannot be carried out, once there is a newest one."""
    candidate = window.program.session.candidate
    if candidate is None or candidate.is_planning or not candidate.plans:
        return None
    return candidate.plans[0].problem


def test_budget_too_small_is_refused_in_words_and_mended_by_a_larger_one(
    ready_window: WindowDriver, demo_folder: Path
) -> None:
    program = ready_window.program
    ready_window.drop(demo_folder)
    wait_until_loadable(ready_window)
    view = candidate_view(ready_window)
    budgets = view._budget
    ready_window.press_on(budgets.ram.slider, Qt.Key.Key_Home)
    # The least of this context; a longer one would have a least of its own.
    ready_window.qtbot.waitUntil(
        lambda: program.session.budgets.ram_bytes is not None, timeout=START_MS
    )
    ready_window.press_on(budgets._context, Qt.Key.Key_End)

    def is_refused() -> bool:
        problem = problem_of_plan(ready_window)
        return problem is not None and problem.code is ErrorCode.RAM_BUDGET_TOO_SMALL

    ready_window.qtbot.waitUntil(is_refused, timeout=START_MS)
    problem = problem_of_plan(ready_window)
    assert problem is not None
    ready_window.qtbot.waitUntil(
        lambda: sentence(problem) in [label.text() for label in view.findChildren(QLabel)],
        timeout=START_MS,
    )
    assert not view._start.isEnabled()
    assert program.session.loaded is not None
    ready_window.press_on(budgets.ram.slider, Qt.Key.Key_End)
    wait_until_loadable(ready_window)
    assert view._start.isEnabled()


def test_dropped_folder_is_planned_prepared_with_progress_cancelled_and_begun_again(
    ready_window: WindowDriver, demo_folder: Path
) -> None:
    program = ready_window.program
    ready_window.drop(demo_folder)
    wait_until_loadable(ready_window)
    view = candidate_view(ready_window)
    ready_window.click(view, f"{ModelWords.BALANCED}{phrases.DOT}{ModelWords.EIGHT_BIT}")
    ready_window.click(view, ModelWords.PREPARE_AND_LOAD)
    program.window.show_page(Page.MODELS)
    ready_window.qtbot.waitUntil(lambda: view._progress.value() > 0, timeout=START_MS)
    assert program.session.stage is Stage.PREPARING
    assert view._progress.isVisible()
    assert view._progress_text.text().startswith(ModelWords.PREPARING)
    ready_window.click(view, ShellWords.CANCEL)
    ready_window.wait_for_stage(Stage.READY)
    assert program.session.error is None
    assert program.session.loaded is not None
    assert program.session.loaded.is_exact
    assert not view._progress.isVisible()
    assert not view._cancel.isVisible()

    ready_window.click(view, ModelWords.PREPARE_AND_LOAD)
    ready_window.qtbot.waitUntil(
        lambda: (
            program.session.stage is Stage.READY
            and program.session.loaded is not None
            and not program.session.loaded.is_exact
        ),
        timeout=4 * START_MS,
    )
    ready_window.send(QUESTION)
    assert "Paris" in ready_window.wait_for_answer()


@pytest.mark.parametrize("damage", ["missing", "truncated", "no model", "not there"])
def test_broken_folder_dropped_gets_a_sentence_and_the_loaded_model_stays(
    ready_window: WindowDriver, demo_folder: Path, tmp_path: Path, damage: str
) -> None:
    program = ready_window.program
    folder = tmp_path / "broken"
    if damage in ("missing", "truncated"):
        shutil.copytree(demo_folder, folder, copy_function=shutil.copyfile)
        shard = next(iter(sorted(folder.glob("*.safetensors"))))
        if damage == "missing":
            shard.unlink()
        else:
            with shard.open("r+b") as file:
                file.truncate(shard.stat().st_size * 6 // 10)
    elif damage == "no model":
        folder.mkdir()
        (folder / "notes.txt").write_text("nothing here", encoding="utf-8")
    ready_window.drop(folder)

    def is_told() -> bool:
        candidate = program.session.candidate
        return candidate is not None and bool(
            candidate.error or (candidate.report and candidate.report.problems)
        )

    ready_window.qtbot.waitUntil(is_told, timeout=START_MS)
    candidate = program.session.candidate
    assert candidate is not None
    problems = [candidate.error] if candidate.error else []
    problems += candidate.report.problems if candidate.report else []
    view = candidate_view(ready_window)
    ready_window.qtbot.waitUntil(
        lambda: (
            {sentence(each) for each in problems}
            <= {each.text() for each in view.findChildren(QLabel)}
        ),
        timeout=START_MS,
    )
    assert not any("Traceback" in each.text() for each in view.findChildren(QLabel))
    start = view._start
    assert not start.isVisible() or not start.isEnabled()
    assert program.session.loaded is not None
    assert program.session.stage is Stage.READY
