"""One sitting at a packaged program: it is started, asked a question with keys, and closed.

The trial in a bare system (`installers.try_linux`) and the gate both use a package like this.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from installers.description import RecipeError
from installers.screen import Screen

QUESTION = "What is the capital of France?"
ANSWER = "Paris"
_MAX_WAIT_S = 240.0
_MAX_CLOSE_S = 60.0
_LOOK_S = 0.2


@dataclass(frozen=True)
class Sitting:
    """A packaged program that was started, and how it is reached."""

    program: subprocess.Popen[bytes]
    screen: Screen
    chats: Path
    """Where the program keeps its chats, as seen from here."""
    log: Path

    def window(self, title: str) -> str:
        """Wait for the window with a title; return its number."""
        return self.wait(
            "window",
            lambda: self.screen.keys(
                "search", "--onlyvisible", "--name", f"^{title}$"
            ).partition("\n")[0],
        )  # fmt: skip

    def ask(self, window: str) -> str:
        """Type the question into a window; return what was answered.

        Raises:
            RecipeError: another question arrived, no answer came, or a wrong one.
        """
        self.screen.keys("windowfocus", window)
        # Through the first start's steps, if they are shown, and to the field for questions.
        self.screen.keys("key", "Escape", "sleep", "2")
        self.screen.keys("type", "--delay", "20", QUESTION)
        asked = self.wait("question", self._send)
        answer = self.wait("answer", lambda: _message(self.chats, "assistant"))
        if asked != QUESTION:
            raise RecipeError(f"The question arrived as {asked!r}.")
        if ANSWER not in answer:
            raise RecipeError(f"The answer to {asked!r} was {answer!r}.")
        return answer

    def _send(self) -> str:
        """Press Enter until the question is in the chat: the model may still be loading."""
        found = _message(self.chats, "user")
        if not found:
            self.screen.keys("key", "Return")
        return found

    def wait(self, what: str, look: Callable[[], str]) -> str:
        """Wait until something is found.

        Raises:
            RecipeError: it was not, or the program ended.
        """
        until_s = time.monotonic() + _MAX_WAIT_S
        while time.monotonic() < until_s:
            found = look()
            if found:
                return found
            if self.program.poll() is not None:
                break
            time.sleep(_LOOK_S)
        said = " ".join(self.log.read_text(encoding="utf-8", errors="replace").split()[-60:])
        raise RecipeError(f"There was no {what} (status {self.program.poll()}): {said}")

    def close(self, home: str) -> None:
        """Ask the program of a home, as it was told of it, to end, as a session that closes does.

        Raises:
            RecipeError: it did not.
        """
        mark = f"HOME={home}".encode()
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                is_launcher = (folder / "exe").readlink().name == "larder"
                is_there = mark in (folder / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if is_there and is_launcher:
                os.kill(int(folder.name), signal.SIGTERM)
        try:
            self.program.wait(_MAX_CLOSE_S)
        except subprocess.TimeoutExpired as error:
            self.program.kill()
            raise RecipeError("The program did not close when it was asked to.") from error


@contextlib.contextmanager
def begin(
    words: Sequence[str], screen: Screen, home: Path, told: str, log: Path
) -> Iterator[Sitting]:
    """Start a program whose home lies in a folder, and close it afterwards.

    `told` is that home as the program knows it.
    """
    with log.open("wb") as out:
        program = subprocess.Popen(words, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
    sitting = Sitting(program, screen, home / ".local" / "share" / "larder" / "chats.db", log)
    try:
        yield sitting
    finally:
        sitting.close(told)


def _message(chats: Path, role: str) -> str:
    """The newest finished message of a role; empty where there is none yet."""
    if not chats.exists():
        return ""
    try:
        with sqlite3.connect(f"file:{chats}?mode=ro", uri=True) as database:
            row = database.execute(
                "SELECT text FROM messages WHERE role = ? AND ending != 'growing' "
                "ORDER BY message_id DESC", (role,),
            ).fetchone()  # fmt: skip
    except sqlite3.OperationalError:
        return ""
    return str(row[0]) if row else ""
