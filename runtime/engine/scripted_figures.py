"""Invented but plausible figures for the scripted engine's answers and samples."""

import dataclasses
import time

from runtime.protocol.chat import FinishReason, GenerationStats
from runtime.protocol.plan import PlacementPlan
from runtime.protocol.telemetry import TelemetrySample
from runtime.protocol.values import EnergyEstimate, EnergyPart, Tier, TierCount

_LOOKUPS_PER_TOKEN = 80
_EXPERT_BYTES = 1 << 20
_DRIVE_SHARE = 8
"""One look-up of this many goes to the drive."""
_WATTS = 25.0


@dataclasses.dataclass(slots=True, kw_only=True)
class Run:
    """One answer while it is given: its counts and its own clock."""

    prompt_tokens: int
    reused_tokens: int
    seed: int
    context_tokens: int
    generated_tokens: int = 0
    reason: FinishReason = FinishReason.STOP
    started_s: float = dataclasses.field(default_factory=time.monotonic)
    prefill_s: float = 0.0
    ttft_s: float = 0.0

    def end_prefill(self) -> None:
        """Note that the prompt is processed."""
        self.prefill_s = self.elapsed_s

    def count_token(self) -> None:
        """Note one more token."""
        self.generated_tokens += 1
        if self.generated_tokens == 1:
            self.ttft_s = self.elapsed_s

    @property
    def elapsed_s(self) -> float:
        """Seconds since the prompt arrived."""
        return time.monotonic() - self.started_s

    @property
    def context_used_tokens(self) -> int:
        """Prompt and answer so far."""
        return self.prompt_tokens + self.generated_tokens


def make_stats(run: Run, plan: PlacementPlan | None) -> GenerationStats:
    """Return the statistics of an answer: true times, invented look-ups."""
    elapsed_s = run.elapsed_s
    prefill_s = run.prefill_s or elapsed_s
    decode_s = max(elapsed_s - prefill_s, 0.0)
    new_tokens = run.prompt_tokens - run.reused_tokens
    tiers = _tiers(new_tokens + run.generated_tokens)
    drive_bytes = tiers[-1].bytes
    joules = _WATTS * elapsed_s
    return GenerationStats(
        prompt_tokens=run.prompt_tokens,
        reused_tokens=run.reused_tokens,
        generated_tokens=run.generated_tokens,
        ttft_s=run.ttft_s,
        prefill_s=prefill_s,
        decode_s=decode_s,
        prompt_tokens_per_s=new_tokens / prefill_s if prefill_s else 0.0,
        decode_tokens_per_s=run.generated_tokens / decode_s if decode_s else 0.0,
        seed=run.seed,
        tiers=tiers,
        drive_bytes_read=drive_bytes,
        seconds=_seconds(elapsed_s),
        base_bytes=plan.base_bytes if plan else 0,
        budget_bytes=plan.ram_bytes if plan else 0,
        peak_bytes=plan.ram_bytes if plan else 0,
        context_tokens=run.context_tokens,
        context_used_tokens=run.context_used_tokens,
        energy=EnergyEstimate(
            total_j=joules, parts=[EnergyPart(source="scripted", joules=joules, is_measured=False)]
        ),
        predicted=plan.forecast if plan else None,
    )


def make_sample(num_tokens: int, interval_s: float, plan: PlacementPlan | None) -> TelemetrySample:
    """Return a sample in which the tokens alone are true."""
    tiers = _tiers(num_tokens)
    return TelemetrySample(
        interval_s=interval_s,
        num_dropped=0,
        num_tokens=num_tokens,
        decode_tokens_per_s=num_tokens / interval_s if interval_s else 0.0,
        tiers=tiers,
        drive_bytes_read=tiers[-1].bytes,
        seconds=_seconds(interval_s if num_tokens else 0.0),
        resident_bytes=(plan.base_bytes + plan.ram_bytes) if plan else 0,
        ram_by_kind={part.value: size for part, size in plan.ram_parts.items()} if plan else {},
    )


def _tiers(num_tokens: int) -> list[TierCount]:
    lookups = num_tokens * _LOOKUPS_PER_TOKEN
    from_drive = lookups // _DRIVE_SHARE
    in_ram = lookups - from_drive
    return [
        TierCount(tier=Tier.RAM, hits=in_ram, misses=from_drive, bytes=in_ram * _EXPERT_BYTES),
        TierCount(tier=Tier.DRIVE, hits=from_drive, misses=0, bytes=from_drive * _EXPERT_BYTES),
    ]


def _seconds(elapsed_s: float) -> dict[str, float]:
    return {
        "compute": elapsed_s * 0.7,
        "drive_wait": elapsed_s * 0.2,
        "other": elapsed_s * 0.1,
    }
