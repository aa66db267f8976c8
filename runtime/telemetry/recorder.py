"""Counters that the engine's hot loop touches, and their differences.

Record inside, compute outside: the hot loop adds to plain numbers; rates and shares are made from
two snapshots by whoever wants to know.
"""

import dataclasses

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
    device_hits: int = 0
    """Look-ups that found their expert on the device."""
    device_misses: int = 0
    """Look-ups that did not, where a device is used."""
    expert_hits: int = 0
    """Of the others, those that found it in RAM."""
    expert_misses: int = 0
    """Those that waited for the drive."""
    device_hit_bytes: int = 0
    expert_hit_bytes: int = 0
    expert_miss_bytes: int = 0
    hints_useful: int = 0
    """Guessed experts that were read before they were needed; they count as misses too."""
    hints_late: int = 0
    """Those that were being read when they were needed."""
    hints_wasted: int = 0
    """Those that were read and not needed."""
    ram_bytes_read: int = 0
    """Weights that the processor read from RAM."""
    prefill_s: float = 0.0
    decode_s: float = 0.0
    compute_s: float = 0.0
    """Time inside the model on the processor, without waiting for weights."""
    device_s: float = 0.0
    """Time inside the model on the device."""
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

    def tiers(self, *, has_device: bool) -> list[TierCount]:
        """Return what each tier answered, hot to cold; a tier misses what a colder one answers."""
        tiers = [
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
        if has_device:
            vram = TierCount(
                tier=Tier.VRAM,
                hits=self.device_hits,
                misses=self.device_misses,
                bytes=self.device_hit_bytes,
            )
            tiers.insert(0, vram)
        return tiers

    def seconds(self, total_s: float, *, has_device: bool) -> dict[str, float]:
        """Return how ``total_s`` is made up: compute, device, drive_wait and other."""
        causes = {"compute": self.compute_s, "drive_wait": self.drive_wait_s}
        if has_device:
            causes["device"] = self.device_s
        causes["other"] = max(0.0, total_s - sum(causes.values()))
        return causes
