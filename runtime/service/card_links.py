"""How fast the links of cards are, and what torch tells of the cards: asked of a child process.

Nobody else needs torch before a model is loaded, and a driver that hangs or crashes takes no more
with it than the child.
"""

import contextlib
import logging
import os
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

import msgspec

from runtime.hardware.card_findings import CardFindings, keep_findings, unmeasured_cards
from runtime.hardware.engine_build import torch_builds
from runtime.hardware.profile import MACHINE_VARIABLE
from runtime.hardware.rates import RateCache, link_key
from runtime.protocol.machine import DeviceReport
from runtime.service.own_modules import module_command, module_environment

LIMIT_S = 4.5
"""After so long the child ends itself; with memory and drives it stays below 10 s."""
AGAIN_AFTER_S = 86_400.0
"""What failed is tried again after so long; loading a model on the card measures it as well."""
_GRACE_S = 0.5
"""So much later it is ended, if it could not end itself."""
_KILL_WAIT_S = 1.0
_PIPE_WAIT_S = 0.25
_MAX_LOGGED_CHARACTERS = 2000
_MAX_OUTPUT_BYTES = 1 << 18
"""So much of what a child writes last is kept: its answer is far smaller."""
_COMMAND = module_command("runtime.service.card_child")
_decoder = msgspec.json.Decoder(CardFindings)
_logger = logging.getLogger(__name__)


class _FailedError(Exception):
    """The child told nothing; the text says why."""


class CardLinks:
    """Has the links of cards measured that nobody has measured, and keeps what is found.

    Threads: called by one thread at a time, which must live as long as the process: a child dies
    with the thread that made it.
    """

    def __init__(
        self,
        rates_path: Path,
        command: Sequence[str] = _COMMAND,
        limit_s: float = LIMIT_S,
        builds: Callable[[], frozenset[str]] = torch_builds,
    ) -> None:
        """``builds`` tells what the installed torch was built with."""
        self._rates = RateCache(rates_path)
        self._command = command
        self._limit_s = limit_s
        self._builds = builds
        self._tried: set[str] = set()
        """Each is tried once in the life of the process, wherever it can be kept."""

    def anew(self) -> "CardLinks":
        """Return one that has tried no measurement yet."""
        return CardLinks(self._rates.path, self._command, self._limit_s, self._builds)

    def measure(self, devices: Sequence[DeviceReport], env: Mapping[str, str]) -> bool:
        """Measure what is due; return whether anything was tried, so that more may be kept now.

        ``env`` says which machine profile the devices were described with.
        """
        due = [name for name in unmeasured_cards(devices, self._builds()) if self._is_due(name)]
        if not due:
            return False
        self._tried.update(due)
        known = [card.device for card in devices if card.link_bytes_per_s is not None]
        try:
            findings = self._ask(known, env)
        except _FailedError as failed:
            _logger.warning("the links of cards could not be measured: %s", failed)
            for name in due:
                self._rates.fail(link_key(name), str(failed))
            return True
        for name in due:
            if link_key(name) not in findings.rates:
                reason = findings.problems.get(name, "the engine finds no such card")
                _logger.warning("the link of %s could not be measured: %s", name, reason)
                self._rates.fail(link_key(name), reason)
        keep_findings(self._rates.path, findings)
        return True

    def _is_due(self, name: str) -> bool:
        failure = self._rates.failure(link_key(name))
        is_fresh = failure is not None and failure.age_s < AGAIN_AFTER_S
        return name not in self._tried and not is_fresh

    def _ask(self, known: Sequence[str], env: Mapping[str, str]) -> CardFindings:
        """Return what a child finds; raise ``_FailedError`` if it finds nothing in time."""
        started_s, profile = time.monotonic(), env.get(MACHINE_VARIABLE, "")
        try:
            child = subprocess.Popen(
                [*self._command, str(self._limit_s), *known],
                env=module_environment({**os.environ, MACHINE_VARIABLE: profile}),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except OSError as error:
            raise _FailedError(f"no process could be started: {error}") from error
        output, log = _output_of(child, self._limit_s + _GRACE_S)
        text = log.decode(errors="replace").strip()
        if text:
            _logger.info("the process said: %s", text[-_MAX_LOGGED_CHARACTERS:])
        # Libraries may have printed something before it, and as they end; some crash or hang there.
        lines = [line for line in output.splitlines() if line.startswith(b"{")]
        if not lines and child.returncode != 0:
            if time.monotonic() - started_s >= self._limit_s:
                raise _FailedError(f"no answer in {self._limit_s:g} s")
            told = f"the process ended with status {child.returncode}"
            raise _FailedError(": ".join(filter(None, (told, text.rpartition("\n")[2]))))
        try:
            findings = _decoder.decode(lines[-1] if lines else output)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise _FailedError(f"an answer that cannot be read: {error}") from error
        if any(rate.value <= 0 for rate in findings.rates.values()):
            raise _FailedError("an answer that cannot be: a rate that is not above 0")
        return findings


class _Tail(threading.Thread):
    """Reads a pipe to its end and keeps the last of it, however much that is.

    Threads: ``kept`` is for whoever has waited for this one.
    """

    def __init__(self, pipe: IO[bytes] | None) -> None:
        super().__init__(name="output of the child that looks at cards", daemon=True)
        assert pipe is not None, "the child has pipes"
        self._pipe = pipe
        self.kept = b""

    def run(self) -> None:
        """Read until nobody has the other end any more."""
        with self._pipe as pipe:
            while chunk := os.read(pipe.fileno(), _MAX_OUTPUT_BYTES):
                self.kept = (self.kept + chunk)[-_MAX_OUTPUT_BYTES:]


def _output_of(child: "subprocess.Popen[bytes]", limit_s: float) -> tuple[bytes, bytes]:
    """Return what a child wrote last until it ended, or until it was ended after so long."""
    output, log = tails = _Tail(child.stdout), _Tail(child.stderr)
    for tail in tails:
        tail.start()
    try:
        child.wait(limit_s)
    except subprocess.TimeoutExpired:
        child.kill()
        # In a driver that does not let it go: the system ends it whenever that can be.
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_KILL_WAIT_S)
    for tail in tails:
        # What the child has started may hold its pipes.
        tail.join(_PIPE_WAIT_S)
    return output.kept, log.kept
