"""Renews the pictures of the README: `python docs/make_pictures.py` (under Xvfb where needed).

The real window answers a real question with the demo model; nothing in a picture is made up.
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
from app.views.rail import Page  # noqa: E402
from runtime.protocol.chat import SamplingSettings  # noqa: E402

IMAGES = ROOT / "docs" / "images"
QUESTIONS = ("What is the capital of France?", "Name three things to see there, as a list.")


def wait(application: QApplication, is_done: Callable[[], bool], timeout_s: float = 90.0) -> None:
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


def main() -> None:
    """Write docs/images/PAGE-THEME.png."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        os.environ["LARDER_HOME"] = home
        application = make_application(["larder"])
        program = Program(StartOptions(), os.environ)
        program.settings.change(sampling=SamplingSettings(temperature=0.0, max_tokens=160))
        program.window.resize(1360, 850)
        program.show()
        wait(application, lambda: program.session.stage in (Stage.READY, Stage.FAILED))
        for question in QUESTIONS:
            program.chat.ask(question)
            wait(application, lambda: not program.chat.is_answering)
        folder = program.library.demo_folder
        program.session.drop_folder(folder)
        wait(
            application, lambda: bool(program.session.candidate and program.session.candidate.plans)
        )
        for theme in (ThemeChoice.LIGHT, ThemeChoice.DARK):
            program.settings.change(theme=theme)
            for page in Page:
                program.window.show_page(page)
                rest(application)
                path = IMAGES / f"{page.value}-{theme.value}.png"
                program.window.grab().save(str(path))
                sys.stdout.write(f"{path.relative_to(ROOT)}\n")
        program.window.close()
        program.close()


if __name__ == "__main__":
    main()
