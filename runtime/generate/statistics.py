"""What one answer took, gathered while it runs."""

import dataclasses
from collections.abc import Callable

from runtime.hardware.energy_terms import EnergyTerms, Work, assumed_parts
from runtime.hardware.power import EnergyMeter
from runtime.protocol.chat import GenerationStats
from runtime.protocol.values import EnergyEstimate, EnergyPart, Forecast
from runtime.telemetry.recorder import Counters

Clock = Callable[[], float]
"""Monotonic seconds."""
Probe = Callable[[], int]
"""Returns the bytes of this process that lie in RAM now."""


@dataclasses.dataclass(frozen=True, slots=True)
class Ground:
    """What stays the same for all answers of a loaded model."""

    base_bytes: int
    context_tokens: int
    forecast: Forecast | None


@dataclasses.dataclass(frozen=True, slots=True)
class Instruments:
    """Where time, energy, memory and counts are read."""

    counters: Counters
    clock: Clock
    probe: Probe
    energy: EnergyMeter


@dataclasses.dataclass(frozen=True, slots=True)
class Surroundings:
    """What is read about a loaded model at the begin and at the end of an answer."""

    drive_bytes: Callable[[], int]
    """Read from the drive so far."""
    written_bytes: Callable[[], int | None]
    """Written to drives so far; None where the system does not tell."""
    link_bytes: Callable[[], int]
    """Copied to the device so far."""
    budget_bytes: Callable[[], int]
    """RAM budget in force."""
    has_device: Callable[[], bool]


class AnswerMeter:
    """Time, counts, peak and energy of one answer, from its making on.

    Threads: the engine thread.
    """

    def __init__(
        self, instruments: Instruments, ground: Ground, surroundings: Surroundings
    ) -> None:
        self.clock = instruments.clock
        self.counters = instruments.counters
        self._started_s = self.clock()
        self._before = self.counters.copy()
        self._probe = instruments.probe
        self._energy = instruments.energy
        self._energy_before = instruments.energy.read()
        self._ground = ground
        self._surroundings = surroundings
        self._drive_bytes_before = surroundings.drive_bytes()
        self._written_bytes_before = surroundings.written_bytes()
        self._link_bytes_before = surroundings.link_bytes()
        self._budget_bytes = 0
        self._step = (0.0, 0.0, 0.0)
        self._first_token_s: float | None = None
        self._misses_before: int | None = None
        """Before the second token is computed; None until the first was chosen."""
        self._peak_bytes = 0
        self.probe()

    def probe(self) -> None:
        """Note the resident size and the budget if they are the largest of this answer."""
        self._budget_bytes = max(self._budget_bytes, self._surroundings.budget_bytes())
        self._peak_bytes = max(self._peak_bytes, self._probe())

    def note_token(self) -> None:
        """Note that a token was chosen."""
        if self._first_token_s is None:
            self._first_token_s = self.clock()
            self._misses_before = self.counters.expert_misses

    def begin_step(self) -> None:
        """Note that a computation begins."""
        counters = self.counters
        self._step = (self.clock(), counters.drive_wait_s, counters.compute_s)

    def end_step(self) -> float:
        """Count the time since ``begin_step`` by its causes and return it.

        What was not waited for is the processor's, or with a device the device's: then the
        processor's part was counted where it arose.
        """
        counters = self.counters
        started_s, waited_s, computed_s = self._step
        taken_s = self.clock() - started_s
        rest_s = taken_s - (counters.drive_wait_s - waited_s)
        if self._surroundings.has_device():
            counters.device_s += rest_s - (counters.compute_s - computed_s)
        else:
            counters.compute_s += rest_s
        return taken_s

    def statistics(
        self,
        prompt_tokens: int,
        reused_tokens: int,
        generated_tokens: int,
        seed: int,
        thinking_s: float,
    ) -> GenerationStats:
        """Return what the answer took until now."""
        self.probe()
        now_s = self.clock()
        total_s = now_s - self._started_s
        first_token_s = now_s if self._first_token_s is None else self._first_token_s
        decode_s = now_s - first_token_s
        added = self.counters.since(self._before)
        drive_bytes_read = self._surroundings.drive_bytes() - self._drive_bytes_before
        has_device = self._surroundings.has_device() or added.device_s > 0
        measured = self._energy.between(self._energy_before, self._energy.read())
        work = Work(
            seconds=total_s,
            drive_bytes=drive_bytes_read,
            ram_bytes=added.ram_bytes_read,
            link_bytes=self._surroundings.link_bytes() - self._link_bytes_before,
        )
        ground = self._ground
        return GenerationStats(
            prompt_tokens=prompt_tokens,
            reused_tokens=reused_tokens,
            generated_tokens=generated_tokens,
            ttft_s=first_token_s - self._started_s,
            prefill_s=added.prefill_s,
            decode_s=decode_s,
            prompt_tokens_per_s=added.prompt_tokens_per_s,
            decode_tokens_per_s=added.num_decoded_tokens / decode_s if decode_s > 0 else 0.0,
            seed=seed,
            tiers=added.tiers(has_device=has_device),
            drive_bytes_read=drive_bytes_read,
            drive_bytes_written=self._bytes_written(),
            seconds=added.seconds(total_s, has_device=has_device),
            base_bytes=ground.base_bytes,
            budget_bytes=self._budget_bytes,
            peak_bytes=self._peak_bytes,
            context_tokens=ground.context_tokens,
            context_used_tokens=prompt_tokens + generated_tokens,
            energy=_estimate(measured, work, self._energy.terms),
            predicted=ground.forecast,
            thinking_s=thinking_s,
            decode_expert_misses=(
                0
                if self._misses_before is None
                else self.counters.expert_misses - self._misses_before
            ),
        )

    def _bytes_written(self) -> int | None:
        before, now = self._written_bytes_before, self._surroundings.written_bytes()
        return None if before is None or now is None else max(0, now - before)


class ThinkingTime:
    """How long an answer thought: from its first token to the last one that was thinking.

    Threads: the engine thread.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._started_s: float | None = None
        self.seconds = 0.0

    def note(self, *, is_thinking: bool) -> None:
        """Note a token, and whether the text after it is thinking."""
        now_s = self._clock()
        if self._started_s is None:
            self._started_s = now_s
        if is_thinking:
            self.seconds = now_s - self._started_s


def _estimate(measured: list[EnergyPart], work: Work, terms: EnergyTerms) -> EnergyEstimate:
    """Return what an answer took: what was measured, and what is assumed for the rest."""
    parts = [*measured, *assumed_parts(measured, work, terms)]
    return EnergyEstimate(total_j=sum(part.joules for part in parts), parts=parts)
