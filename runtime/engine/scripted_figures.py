"""Invented but plausible figures for the scripted engine's answers and samples."""

import dataclasses
import time

from runtime.engine.script import TOP_K
from runtime.protocol.chat import FinishReason, GenerationStats
from runtime.protocol.plan import PlacementPlan
from runtime.protocol.telemetry import ExpertMap, RateLimits, RuntimeNote, TelemetrySample
from runtime.protocol.values import EnergyEstimate, EnergyPart, Tier, TierCount

_SKEW = 0.4
"""Hits of the hottest part of the experts: that part to this power."""
_ADMITTED_SHARE = 0.02
"""Look-ups after which an expert is copied to the device."""
_WATTS = 25.0
_DRIVE_JOULES_PER_BYTE = 2e-9
_LIMITS = RateLimits(ram_read=40e9, link=12e9, drive=3e9)


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
    thinking_s: float = 0.0

    def end_prefill(self) -> None:
        """Note that the prompt is processed."""
        self.prefill_s = self.elapsed_s

    def count_token(self) -> None:
        """Note one more token."""
        self.generated_tokens += 1
        if self.generated_tokens == 1:
            self.ttft_s = self.elapsed_s

    def note_thinking(self) -> None:
        """Note that the answer has not begun yet."""
        self.thinking_s = self.elapsed_s - self.ttft_s

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
    tiers = _tiers(new_tokens + run.generated_tokens, plan)
    parts = _energy(elapsed_s, tiers[-1].bytes)
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
        drive_bytes_read=tiers[-1].bytes,
        drive_bytes_written=0,
        seconds=_seconds(elapsed_s, tiers),
        base_bytes=plan.base_bytes if plan else 0,
        budget_bytes=plan.ram_bytes if plan else 0,
        peak_bytes=plan.ram_bytes if plan else 0,
        context_tokens=run.context_tokens,
        context_used_tokens=run.context_used_tokens,
        energy=EnergyEstimate(total_j=sum(part.joules for part in parts), parts=parts),
        predicted=plan.forecast if plan else None,
        thinking_s=run.thinking_s,
    )


def make_sample(
    num_tokens: int,
    interval_s: float,
    plan: PlacementPlan,
    experts: ExpertMap,
    notes: list[RuntimeNote],
) -> TelemetrySample:
    """Return a sample in which the tokens, the placement and the notes alone are true."""
    tiers = _tiers(num_tokens, plan)
    copied = tiers[0].misses if plan.vram_bytes else 0
    return TelemetrySample(
        interval_s=interval_s,
        num_dropped=0,
        num_tokens=num_tokens,
        decode_tokens_per_s=num_tokens / interval_s if interval_s else 0.0,
        tiers=tiers,
        drive_bytes_read=tiers[-1].bytes,
        seconds=_seconds(interval_s if num_tokens else 0.0, tiers),
        resident_bytes=plan.base_bytes + plan.ram_bytes,
        ram_by_kind={part.value: size for part, size in plan.ram_parts.items()},
        vram_by_kind={part.value: size for part, size in plan.vram_parts.items()},
        link_bytes=int(copied * _ADMITTED_SHARE) * _expert_bytes(plan),
        ram_bytes_read=tiers[-2].bytes,
        limits=_LIMITS,
        energy=_energy(interval_s, tiers[-1].bytes),
        experts=experts,
        notes=notes,
    )


def _expert_bytes(plan: PlacementPlan) -> int:
    return next((share.bytes // share.num_experts for share in plan.tiers if share.num_experts), 0)


def _tiers(num_tokens: int, plan: PlacementPlan | None) -> list[TierCount]:
    """Return invented look-ups as skewed as real ones are, hot to cold; VRAM if it is in use."""
    held = {share.tier: share.num_experts for share in plan.tiers} if plan else {}
    num_all = sum(held.values())
    num_lookups = num_tokens * TOP_K * len(plan.slots_per_layer) if plan else 0
    size = _expert_bytes(plan) if plan else 0
    counts = []
    num_held = num_answered = 0
    for tier in Tier:
        if tier is Tier.VRAM and not held.get(tier):
            continue
        num_held += held.get(tier, 0)
        share = (num_held / num_all) ** _SKEW if num_all else 1.0
        reached = num_lookups if tier is Tier.DRIVE else int(num_lookups * share)
        hits = reached - num_answered
        num_answered = reached
        counts.append(
            TierCount(tier=tier, hits=hits, misses=num_lookups - reached, bytes=hits * size)
        )
    return counts


def _seconds(elapsed_s: float, tiers: list[TierCount]) -> dict[str, float]:
    """Return how a time is made up: the more the drive answers, the longer it is waited for."""
    num_lookups = sum(count.hits for count in tiers)
    others = 1.0 - tiers[-1].hits / num_lookups if num_lookups else 1.0
    wait_s = elapsed_s * (1.0 - others**3)
    work_s = elapsed_s - wait_s
    device_s = 0.4 * work_s if tiers[0].tier is Tier.VRAM else 0.0
    return {
        "compute": 0.9 * work_s - device_s,
        "device": device_s,
        "drive_wait": wait_s,
        "other": 0.1 * work_s,
    }


def _energy(elapsed_s: float, drive_bytes: int) -> list[EnergyPart]:
    parts = [EnergyPart(source="scripted", joules=_WATTS * elapsed_s, is_measured=False)]
    if drive_bytes:
        joules = _DRIVE_JOULES_PER_BYTE * drive_bytes
        parts.append(EnergyPart(source="drive-reads", joules=joules, is_measured=False))
    return parts
