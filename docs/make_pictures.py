"""Renews the pictures of the README: `python docs/make_pictures.py` (under Xvfb where needed).

The real window answers real questions with the demo model, and its Monitor page is pictured while
an answer is being written; nothing in a picture is made up. A machine profile named by
LARDER_MACHINE takes effect as ever, and what it simulates is labelled so in the picture.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from PySide6.QtWidgets import QApplication  # noqa: E402

from app.main import Program, StartOptions, make_application  # noqa: E402
from app.state.settings import ThemeChoice  # noqa: E402
from app.state.stages import Stage  # noqa: E402
from app.views.models_view import ModelsView  # noqa: E402
from app.views.rail import Page  # noqa: E402
from runtime.protocol.chat import SamplingSettings  # noqa: E402
from runtime.protocol.plan import PlanKind  # noqa: E402
from runtime.protocol.values import Budgets  # noqa: E402

SCREENS = ROOT / "docs" / "screens"
QUESTIONS = ("What is the capital of France?", "Name three things to see there, as a list.")
LONG_QUESTION = "Tell me a story about a baker and her bread."
ANSWER_LIMITS = {"short": 160, "long": 900}
RAM_PART = 0.75
"""How much of what lies between the least and all of the RAM the Monitor is pictured with."""
MEASURED_S = 25.0
"""How long the Monitor page measures an answer before it is pictured."""


def wait(application: QApplication, is_done: Callable[[], bool], timeout_s: float = 120.0) -> None:
    """Run the event loop until something holds."""
    end_s = time.monotonic() + timeout_s
    while not is_done():
        if time.monotonic() > end_s:
            raise SystemExit("the window did not get there in time")
        application.processEvents()
        time.sleep(0.01)


def rest(application: QApplication, seconds: float = 0.4) -> None:
    """Let the window draw."""
    end_s = time.monotonic() + seconds
    wait(application, lambda: time.monotonic() > end_s)


def picture(application: QApplication, program: Program, page: Page, name: str) -> None:
    """Write a page in both themes."""
    for theme in (ThemeChoice.LIGHT, ThemeChoice.DARK):
        program.settings.change(theme=theme)
        program.window.show_page(page)
        rest(application, 0.8)
        path = SCREENS / f"{name}-{theme.value}.png"
        program.window.grab().save(str(path))
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")


def ask(application: QApplication, program: Program, question: str) -> None:
    """Ask, and wait for the whole answer."""
    program.chat.ask(question)
    wait(application, lambda: not program.chat.is_answering)


def use_less_memory(application: QApplication, program: Program) -> None:
    """Without a graphics card, leave some experts on the drive, so that tiers are seen."""
    live, plan = program.monitor.live, program.session.loaded_plan
    wait(application, lambda: live.bounds is not None)
    if plan is None or plan.vram_bytes or live.bounds is None:
        return
    least, most = live.bounds.min_ram_bytes, live.bounds.all_ram_bytes
    live.carry_out(Budgets(ram_bytes=least + round((most - least) * RAM_PART)))
    wait(application, lambda: not live.is_applying)


def picture_monitor(application: QApplication, program: Program) -> None:
    """Picture the Monitor page while answers are written."""
    program.settings.change(
        sampling=SamplingSettings(temperature=0.8, seed=1, max_tokens=ANSWER_LIMITS["long"])
    )
    program.chat.new_chat()
    program.window.show_page(Page.MONITOR)
    use_less_memory(application, program)
    end_s = time.monotonic() + MEASURED_S

    def is_measured() -> bool:
        if program.chat.can_ask:
            program.chat.ask(LONG_QUESTION)
        return time.monotonic() > end_s and program.chat.is_answering

    wait(application, is_measured)
    picture(application, program, Page.MONITOR, Page.MONITOR.value)
    program.chat.stop()
    wait(application, lambda: not program.chat.is_answering)


def main() -> None:
    """Write docs/screens/PAGE-THEME.png."""
    SCREENS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        os.environ["LARDER_HOME"] = home
        application = make_application(["larder"])
        program = Program(StartOptions(), os.environ)
        program.settings.change(
            last_folder=program.library.demo_folder,
            last_plan=PlanKind.EXACT,
            sampling=SamplingSettings(temperature=0.0, max_tokens=ANSWER_LIMITS["short"]),
        )
        program.window.resize(1360, 850)
        program.show()
        wait(application, lambda: program.session.stage in (Stage.READY, Stage.FAILED))
        for question in QUESTIONS:
            ask(application, program, question)
        rest(application, 1.0)
        picture(application, program, Page.CHAT, Page.CHAT.value)
        program.session.drop_folder(program.library.demo_folder)
        wait(
            application, lambda: bool(program.session.candidate and program.session.candidate.plans)
        )
        picture(application, program, Page.MODELS, Page.MODELS.value)
        models = program.window.page(Page.MODELS)
        assert isinstance(models, ModelsView)
        models.show_discover()
        last, forecasts = program.discover.models[-1].model_id, program.discover.forecasts
        wait(application, lambda: forecasts.of(last) is not None)
        picture(application, program, Page.MODELS, "discover")
        picture(application, program, Page.SETTINGS, Page.SETTINGS.value)
        picture_monitor(application, program)
        program.window.close()
        program.close()


if __name__ == "__main__":
    main()
