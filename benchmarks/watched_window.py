"""The real program, used as a person would, with a record of how long its event loop stood still.

Started by `make bench-responsiveness`; prints one line of JSON: for each phase the longest gap, and
the most that the window's thread computed in one, in seconds.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from PySide6.QtCore import Qt, QTimer  # noqa: E402
from PySide6.QtTest import QTest  # noqa: E402

from app import __main__ as entry  # noqa: E402
from app import main as window_main  # noqa: E402
from app.state.settings_file import ThemeChoice  # noqa: E402
from app.state.stages import Stage  # noqa: E402
from runtime.protocol.chat import Role, SamplingSettings  # noqa: E402
from tests.support.loop_gaps import LoopGaps  # noqa: E402

QUESTION = "What is the capital of France?"
NUM_TOKENS = 120
WIDTH, HEIGHT = 1360, 850
"""Wide enough for the map beside the chat."""
LOOK_MS = 20
SETTLE_LOOKS = 25
"""After a change of theme, so that what it puts off belongs to it."""


class WatchedProgram(window_main.Program):
    """The program, whose person loads the demo, asks, reads and changes the theme."""

    def show(self) -> None:
        """Show the window and begin."""
        sampling = SamplingSettings(temperature=0.0, max_tokens=NUM_TOKENS)
        self.settings.change(sampling=sampling, is_welcomed=True)
        self.window.resize(WIDTH, HEIGHT)
        super().show()
        self.gaps = LoopGaps()
        self.phases: dict[str, tuple[float, float]] = {}
        self._steps = self._use()
        self._look = QTimer(self)
        self._look.setInterval(LOOK_MS)
        self._look.timeout.connect(self._go_on)
        self.gaps.start()
        self._look.start()

    def _go_on(self) -> None:
        next(self._steps, None)

    def _end(self, phase: str) -> None:
        """Close a phase and begin the next."""
        longest_s = self.gaps.stop()
        self.phases[phase] = (longest_s, self.gaps.longest_work_s)
        self.gaps.start()

    def _has_text(self) -> bool:
        messages = self.chat.messages
        return bool(messages) and messages[-1].role is Role.ASSISTANT and bool(messages[-1].text)

    def _use(self) -> Iterator[None]:
        """Do what a person does, a step at each look."""
        while self.session.stage is not Stage.READY:
            yield
        self._end("start")
        edit = self.chat_view.composer.edit
        for letter in QUESTION:
            QTest.keyClicks(edit, letter)
            yield
        while not self.chat.can_ask:
            yield
        self._end("typing")
        QTest.keyClick(edit, Qt.Key.Key_Return)
        while not self._has_text():
            yield
        self._end("first_text")
        while self.chat.is_answering:
            yield
        self._end("streaming")
        is_dark = self.settings.values.theme is ThemeChoice.DARK
        self.settings.change(theme=ThemeChoice.LIGHT if is_dark else ThemeChoice.DARK)
        for _ in range(SETTLE_LOOKS):
            yield
        self._end("theme")
        self._look.stop()
        view = self.chat_view.cards.map_card.map
        is_drawn = view is not None and not view.grid.is_empty
        if is_drawn and "torch" not in sys.modules:
            print(json.dumps(self.phases), flush=True)
        self.window.close()


if __name__ == "__main__":
    window_main.Program = WatchedProgram  # type: ignore[misc]
    sys.exit(entry.main([]))
