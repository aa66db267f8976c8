"""Counters that the engine's hot loop touches, and their differences.

Record inside, compute outside: the hot loop adds to plain numbers; rates and shares are made from
two snapshots by whoever wants to know.
"""

import dataclasses

from runtime.protocol.plan import MemoryPart
from runtime.protocol.telemetry import TelemetrySample
from runtime.protocol.values import Tier, TierCount


@dataclasses.dataclass(slots=True)
class Counters:
    """Amounts since the engine was made; each only grows.

    Threads: written by the engine thread, read by any thread without a lock. A reader may see one
    amount newer than another, by at most one layer.
    """

    num_prompt_tokens: int = 0
    """Prompt tokens computed; reused ones are not counted."""
    num_decoded_tokens: int = 0
    expert_hits: int = 0
    expert_misses: int = 0
    expert_hit_bytes: int = 0
    expert_miss_bytes: int = 0
    drive_bytes_read: int = 0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    compute_s: float = 0.0
    """Time inside the model without waiting for weights."""
    drive_wait_s: float = 0.0
    """Stalls: time the engine waited for weights."""

    def copy(self) -> "Counters":
        """Return the amounts of now as an object of their own."""
        return dataclasses.replace(self)

    def since(self, earlier: "Counters") -> "Counters":
        """Return what was added after an earlier copy."""
        return Counters(
            *(
                getattr(self, field.name) - getattr(earlier, field.name)
                for field in dataclasses.fields(self)
            )
        )

    @property
    def decode_tokens_per_s(self) -> float:
        """Decode rate; 0 where nothing was decoded."""
        return self.num_decoded_tokens / self.decode_s if self.decode_s > 0 else 0.0

    @property
    def prompt_tokens_per_s(self) -> float:
        """Prompt rate over new tokens; 0 where there were none."""
        return self.num_prompt_tokens / self.prefill_s if self.prefill_s > 0 else 0.0

    def tiers(self) -> list[TierCount]:
        """Return what each tier answered, hot to cold."""
        return [
            TierCount(
                tier=Tier.RAM,
                hits=self.expert_hits,
                misses=self.expert_misses,
                bytes=self.expert_hit_bytes,
            ),
            TierCount(
                tier=Tier.DRIVE, hits=self.expert_misses, misses=0, bytes=self.expert_miss_bytes
            ),
        ]

    def seconds(self, total_s: float) -> dict[str, float]:
        """Return how ``total_s`` is made up: ``compute``, ``drive_wait`` and ``other``."""
        known_s = self.compute_s + self.drive_wait_s
        return {
            "compute": self.compute_s,
            "drive_wait": self.drive_wait_s,
            "other": max(0.0, total_s - known_s),
        }


class Sampler:
    """Makes telemetry samples from the counters, each of the interval since the one before.

    Threads: used by the telemetry thread alone; it reads the engine thread's counters.
    """

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._earlier = counters.copy()

    def sample(
        self, interval_s: float, resident_bytes: int, ram_by_kind: dict[MemoryPart, int]
    ) -> TelemetrySample:
        """Return what happened since the previous call, ``interval_s`` ago."""
        now = self._counters.copy()
        added = now.since(self._earlier)
        self._earlier = now
        worked_s = min(interval_s, added.prefill_s + added.decode_s)
        return TelemetrySample(
            interval_s=interval_s,
            num_dropped=0,
            num_tokens=added.num_decoded_tokens,
            decode_tokens_per_s=added.decode_tokens_per_s,
            tiers=added.tiers(),
            drive_bytes_read=added.drive_bytes_read,
            seconds=added.seconds(worked_s),
            resident_bytes=resident_bytes,
            ram_by_kind={kind.value: num_bytes for kind, num_bytes in ram_by_kind.items()},
        )
