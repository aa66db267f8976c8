"""Looks at every page in every appearance: `make bench-appearance`, which `make deep` runs too.

Three sizes, three colours, three languages (one a made-up one from right to left), at 100 and
200 %, with a model that answers, under Xvfb where there is one: words that overlap, are cut or too
weak, and pages that show nothing, are told. LARDER_PICTURES names a folder for the pictures.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from reporting import load_averages, row, write_result
from screen import a_screen

if TYPE_CHECKING:
    from PySide6.QtWidgets import QScrollBar, QWidget

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

SIZES = ((760, 520), (1100, 700), (1360, 850))
THEMES = ("light", "dark", "contrast")
LANGUAGES = ("en", "zh_CN", "ar")
ZOOMS = (100, 200)
SCREEN = "2800x1800x24"
"""Room for the largest size at 200 %."""
SETTLE_S = 0.4
SCROLLED_S = 0.1
MAX_PARTS = 20
"""Of a page that is longer than the window."""


def main() -> int:
    """Run each language and zoom in a process of its own; the status is 1 where one complains."""
    found: list[str] = []
    load_before = load_averages()
    with tempfile.TemporaryDirectory() as home, a_screen(Path(home), SCREEN) as environment:
        for language in LANGUAGES:
            for zoom in ZOOMS:
                done = subprocess.run(
                    [sys.executable, __file__, language, str(zoom)],
                    stdout=subprocess.PIPE,
                    text=True,
                    env=environment,
                    check=False,
                )
                found += done.stdout.splitlines()
                if done.returncode not in (0, 1):
                    found.append(f"{language} at {zoom} %: ended with status {done.returncode}")
    number = len(SIZES) * len(THEMES) * len(LANGUAGES) * len(ZOOMS) * 4
    print("\n".join(found))
    print(f"{number} pages on {environment['QT_QPA_PLATFORM']}, {len(found)} complaints")
    write_result(
        "appearance",
        [
            row(
                what="complaints about pictures: overlap, cut, contrast, emptiness",
                ours=len(found),
                target="0",
                is_reached=not found,
            ),
            row(what="pages looked at from top to bottom", ours=number),
        ],
        load_before=load_before,
        shown_by=environment["QT_QPA_PLATFORM"],
    )
    return 1 if found else 0


def _look_over(
    window: QWidget, page: QWidget, where: str, rest: Callable[[float], None]
) -> list[str]:
    """Look at a page from top to bottom."""
    from tests.support.picture_checks import problems

    pictures = os.environ.get("LARDER_PICTURES", "")
    found = []
    for part in range(1, MAX_PARTS + 1):
        found += [f"{where}, part {part}: {text}" for text in problems(window, page)]
        if pictures:
            name = f"{where}-{part}".replace(" %", "").replace(" ", "-")
            window.grab().save(str(Path(pictures, f"{name}.png")))
        if not _scroll_on(page):
            break
        rest(SCROLLED_S)
    for bar in _bars(page):
        bar.setValue(0)
    return found


def _bars(page: QWidget) -> list[QScrollBar]:
    """Return what moves the parts of a page up and down."""
    from PySide6.QtWidgets import QScrollArea

    areas = [area for area in page.findChildren(QScrollArea) if area.isVisible()]
    own = [page] if isinstance(page, QScrollArea) else []
    return [area.verticalScrollBar() for area in (*own, *areas)]


def _scroll_on(page: QWidget) -> bool:
    """Show what lies below; return whether there was anything."""
    before = [bar.value() for bar in _bars(page)]
    for bar in _bars(page):
        bar.setValue(bar.value() + bar.pageStep() * 3 // 4)
    return [bar.value() for bar in _bars(page)] != before


def look(language: str, zoom: int) -> int:
    """Look at all pages of one window in all its sizes and colours."""
    from app.language import zoomed
    from app.main import Program, StartOptions, make_application
    from app.state.settings import ThemeChoice
    from app.state.stages import Stage
    from app.views.rail import Page
    from tests.support import pseudo_language

    os.environ.update(zoomed(zoom, {}))
    with tempfile.TemporaryDirectory() as home:
        os.environ["LARDER_HOME"] = home
        settings = Path(home, "settings")
        settings.mkdir()
        text = json.dumps({"language": language})
        (settings / "settings.json").write_text(text, encoding="utf-8")
        if language == pseudo_language.CODE:
            pseudo_language.write_pseudo_language(Path(home, "data", "translations"))
        folder = Path(home, "Qwen3-30B-A3B")
        folder.mkdir()
        application = make_application(["larder"])
        options = StartOptions(
            folder=str(folder),
            is_demo_wanted=False,
            runtime_arguments=("--engine", "scripted", "--rate", "60"),
        )
        program = Program(options, os.environ)
        program.show()

        def wait(is_done: Callable[[], bool], most_s: float = 60.0) -> None:
            end_s = time.monotonic() + most_s
            while not is_done() and time.monotonic() < end_s:
                application.processEvents()
                time.sleep(0.005)

        def rest(seconds: float) -> None:
            end_s = time.monotonic() + seconds
            wait(lambda: time.monotonic() > end_s)

        wait(lambda: program.session.stage in (Stage.READY, Stage.FAILED))
        program.chat.ask("?")
        wait(lambda: not program.chat.is_answering)
        found = []
        for theme in THEMES:
            program.settings.change(theme=ThemeChoice(theme))
            for width, height in SIZES:
                program.window.resize(width, height)
                for page in Page:
                    program.window.show_page(page)
                    rest(SETTLE_S)
                    where = f"{page.value} {language} {theme} {width}x{height} {zoom} %"
                    found += _look_over(program.window, program.window.page(page), where, rest)
        program.window.close()
        program.close()
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(look(sys.argv[1], int(sys.argv[2])) if len(sys.argv) > 2 else main())
