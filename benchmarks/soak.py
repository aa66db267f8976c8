"""`make bench-soak`: an hour of chats, loads, unloads and budget changes with the demo model.

The real window and the real runtime, offscreen, driven as a person would. Every question must get
its answer; memory and open files of both processes must stay as they are. Fewer minutes are given
as an argument (`python .ci/verb.py bench-soak 5`); only a run of an hour writes its result.
"""

from __future__ import annotations

import dataclasses
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from reporting import load_averages, row, write_result

ROOT = Path(__file__).resolve().parent.parent
FULL_MINUTES = 60.0
ROUNDS_PER_LOAD = 8
"""A runtime lives for so many rounds; then the model is unloaded and loaded again."""
MAX_WAIT_S = 300.0
MAX_GROWTH = 0.02
WARM_UP_SHARE = 0.25
"""Of the rounds: caches of fonts, formulas and imports fill in that time."""
QUESTIONS = (
    "What is the capital of France?",
    "Write a long story about a cook and a cellar.",
    "Explain in a table what a larder is.",
)


@dataclasses.dataclass(frozen=True)
class Sample:
    """Both processes at the end of a round."""

    place: int
    """Which round of its runtime it was."""
    window_bytes: int
    window_files: int
    runtime_bytes: int
    runtime_files: int


class Soak:
    """The window, what was asked of it, and what came."""

    def __init__(self, demo: Path) -> None:
        from app.main import Program, StartOptions, make_application

        self._application = make_application(["larder"])
        self.program = Program(StartOptions(folder=str(demo), is_demo_wanted=False), os.environ)
        self._demo = str(demo)
        self.num_asked = 0
        self.lost: list[str] = []
        self.num_loads = 0
        self.num_budget_changes = 0
        self.num_stops = 0
        self.samples: list[Sample] = []

    def run(self, seconds: float) -> None:
        """Go on for so long, then close the window."""
        from app.state.stages import Stage
        from runtime.protocol.chat import SamplingSettings

        program = self.program
        program.settings.change(sampling=SamplingSettings(temperature=0.0, max_tokens=48))
        program.show()
        self._wait(lambda: program.session.stage is Stage.READY, "the first load")
        end_s = time.monotonic() + seconds
        number = 0
        while time.monotonic() < end_s:
            place = number % ROUNDS_PER_LOAD
            if number and place == 0:
                self._load_again()
            self._round(number)
            self._sample(place)
            number += 1
        program.window.close()
        program.close()

    def _round(self, number: int) -> None:
        """One chat of three questions: one whole, one stopped, one with the budget moved."""
        chat = self.program.chat
        chat.new_chat()
        self._ask(QUESTIONS[0])
        self._settled(number, "asked")
        self._ask(QUESTIONS[1])
        self._wait(lambda: len(chat.messages[-1].text) > 20 or not chat.is_answering, "text")
        if chat.is_answering:
            chat.stop()
            self.num_stops += 1
        self._settled(number, "stopped")
        self._ask(QUESTIONS[2])
        self._move_budget(is_small=number % 2 == 0)
        self._settled(number, "asked while the budget moved")
        if chat.chat_id is not None:
            chat.delete_chat(chat.chat_id)

    def _ask(self, question: str) -> None:
        self.num_asked += 1
        if not self.program.chat.ask(question):
            self.lost.append(f"{question} was not taken")

    def _settled(self, number: int, how: str) -> None:
        """Wait for the end of an answer and look at it."""
        from app.state.chat_values import AnswerEnd
        from runtime.protocol.chat import Role

        chat = self.program.chat
        self._wait(lambda: not chat.is_answering, "an answer")
        last = chat.messages[-1]
        good = (AnswerEnd.FINISHED, AnswerEnd.LENGTH, AnswerEnd.STOPPED)
        if last.role is not Role.ASSISTANT or last.end not in good or not last.text:
            self.lost.append(f"round {number}, {how}: {last.role} {last.end} {last.text[:40]!r}")

    def _move_budget(self, *, is_small: bool) -> None:
        from runtime.protocol.values import Budgets

        session, live = self.program.session, self.program.monitor.live
        plan = session.loaded_plan
        if plan is None:
            self.lost.append("no plan")
            return
        least, most = plan.min_ram_bytes, plan.all_ram_bytes
        wanted = least + (most - least) // 3 if is_small else most
        live.carry_out(Budgets(ram_bytes=wanted, vram_bytes=session.loaded_budgets.vram_bytes))
        self._wait(lambda: not live.is_applying and live.wanted is None, "a budget")
        self.num_budget_changes += 1

    def _load_again(self) -> None:
        from app.state.stages import Stage

        session = self.program.session
        session.unload()
        at_rest = (Stage.IDLE, Stage.PLANNED)
        self._wait(lambda: session.loaded is None and session.stage in at_rest, "an unload")
        session.load_folder(self._demo)
        self._wait(lambda: session.stage is Stage.READY, "a load")
        self.num_loads += 1

    def _sample(self, place: int) -> None:
        window = psutil.Process()
        (runtime,) = (child for child in window.children() if "runtime.service" in child.cmdline())
        self.samples.append(
            Sample(
                place,
                window.memory_info().rss,
                window.num_fds(),
                runtime.memory_info().rss,
                runtime.num_fds(),
            )
        )

    def _wait(self, is_true: Callable[[], bool], what: str) -> None:
        """Let the window live until something holds."""
        from PySide6.QtTest import QTest

        deadline_s = time.monotonic() + MAX_WAIT_S
        while not is_true():
            if time.monotonic() > deadline_s:
                raise SystemExit(
                    f"waited {MAX_WAIT_S:.0f} s for {what} in vain: "
                    f"{self.program.session.stage}, {self.program.session.error}"
                )
            QTest.qWait(20)


def growth(values: list[float]) -> float:
    """By which part the last quarter of what was measured after warming up exceeds the first."""
    warm = values[int(len(values) * WARM_UP_SHARE) :]
    quarter = max(1, len(warm) // 4)
    return statistics.median(warm[-quarter:]) / statistics.median(warm[:quarter]) - 1


def runtime_growth(samples: list[Sample]) -> float:
    """By which part a runtime exceeds itself two rounds before its end; median of all.

    Every second round has the same budget; the first two of a runtime fill its cache.
    """
    first = {index: sample for index, sample in enumerate(samples) if sample.place == 3}
    ratios = [
        samples[index + 4].runtime_bytes / sample.runtime_bytes - 1
        for index, sample in first.items()
        if index + 4 < len(samples)
    ]
    return statistics.median(ratios) if ratios else 0.0


def main(arguments: list[str]) -> int:
    """Soak, print, and write `benchmarks/results/soak.json` after an hour; 1 where it fails."""
    minutes = float(arguments[0]) if arguments else FULL_MINUTES
    demo = ROOT / "build" / "demo" / "larder-demo"
    load_before = load_averages()
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    with tempfile.TemporaryDirectory() as home:
        os.environ["LARDER_HOME"] = home
        soak = Soak(demo)
        soak.run(minutes * 60)
    samples = soak.samples
    window = growth([float(sample.window_bytes) for sample in samples])
    files = growth([float(sample.window_files) for sample in samples])
    runtime = runtime_growth(samples)
    ends = [sample for sample in samples if sample.place == ROUNDS_PER_LOAD - 1] or samples
    runtime_files = max(s.runtime_files for s in ends) - min(s.runtime_files for s in ends)
    print("\n".join(soak.lost))
    rows = []
    for what, value, most in (
        ("questions", soak.num_asked, None),
        ("rounds", len(samples), None),
        ("answers stopped", soak.num_stops, None),
        ("unloads and loads", soak.num_loads, None),
        ("changes of the budget during an answer", soak.num_budget_changes, None),
        ("replies lost", len(soak.lost), 0),
        ("growth of the window's memory, part of it", round(window, 4), MAX_GROWTH),
        ("growth of the window's open files, part of them", round(files, 4), 0),
        ("growth of a runtime's memory in four rounds, part of it", round(runtime, 4), MAX_GROWTH),
        ("most open files of one runtime above another", runtime_files, 0),
    ):
        is_reached = None if most is None else value <= most
        print(f"{what}: {value}" + ("" if is_reached is None else f" (at most {most})"))
        target = "" if most is None else f"at most {most}"
        rows.append(row(what=what, ours=value, target=target, is_reached=is_reached))
    if minutes >= FULL_MINUTES:
        write_result("soak", rows, load_before=load_before, minutes=minutes)
    return 0 if all(each["is_reached"] is not False for each in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
