"""Keeps what the answers of a loaded model took, for the next plan and for who wonders."""

from collections.abc import Iterator

import msgspec

from runtime.engine.base import EngineEvent
from runtime.generate.loading import LoadedParts
from runtime.hardware.past_runs import PastRuns
from runtime.plan.history import Experience, Setting, experience_of, held_ratio
from runtime.protocol.chat import GenerationStats
from runtime.protocol.messages import GenerationCancelled, GenerationFinished, TokensGenerated
from runtime.protocol.values import Forecast, Tier
from runtime.simulate.reuse import ReuseMeter
from runtime.spec.past import PastRun

MIN_TOKENS = 32
"""A shorter answer says little of a rate."""


class Diary:
    """Notes each answer of a loaded model when it ends, and how it reused experts.

    Threads: the engine thread.
    """

    def __init__(self, past_runs: PastRuns, parts: LoadedParts, kernels: str) -> None:
        self._past_runs = past_runs
        self._parts = parts
        self._kernels = kernels
        spec = parts.spec
        if spec.moe_layers:
            parts.experts.reuse = ReuseMeter(spec.num_experts, spec.moe_layers, spec.top_k)

    def kept(self, events: Iterator[EngineEvent]) -> Iterator[EngineEvent]:
        """Yield the events of an answer; before the last, note what it took."""
        plan, is_filled = self._parts.plan, None
        for event in events:
            if not isinstance(event, GenerationFinished | GenerationCancelled):
                if is_filled is None and isinstance(event, TokensGenerated):
                    is_filled = self._parts.experts.wait_filled(0)
                yield event
                continue
            # One during which weights were loaded or moved says nothing of either plan.
            is_steady = is_filled is True and self._parts.plan is plan
            stats = event.stats
            yield msgspec.structs.replace(event, stats=self._noted(stats, is_steady=is_steady))

    def _noted(self, stats: GenerationStats, *, is_steady: bool) -> GenerationStats:
        """Keep an answer and return its figures with what is usual."""
        plan, experts = self._parts.plan, self._parts.experts
        fingerprint = plan.model_fingerprint
        setting = self._setting()
        num_lookups = len(self._parts.spec.moe_layers) * self._parts.spec.top_k
        run = run_of(stats, setting, num_lookups) if is_steady else None
        reuse = experts.reuse.take() if experts.reuse else None
        routing = experts.reuse.take_routing() if experts.reuse else None
        before = self._past_runs.add(fingerprint, run, reuse, routing)
        known = experience_of(before.runs, setting)
        return msgspec.structs.replace(stats, usual_tokens_per_s=_usual(known))

    def _setting(self) -> Setting:
        plan, spec = self._parts.plan, self._parts.spec
        num_held = sum(share.num_experts for share in plan.tiers if share.tier is not Tier.DRIVE)
        return Setting(
            expert_format=plan.expert_format,
            device=plan.device,
            kernels=self._kernels,
            held_ratio=held_ratio(num_held, len(spec.moe_layers) * spec.num_experts),
        )


def run_of(stats: GenerationStats, setting: Setting, num_lookups: int) -> PastRun | None:
    """Return an answer as it is kept, None if it says nothing of the rate of a plan.

    ``num_lookups`` is how many experts a token needs.
    """
    predicted = stats.predicted
    if predicted is None or predicted.decode_tokens_per_s <= 0:
        return None
    if stats.generated_tokens < MIN_TOKENS or stats.decode_tokens_per_s <= 0:
        return None
    return PastRun(
        expert_format=setting.expert_format,
        device=setting.device,
        held_ratio=setting.held_ratio,
        kernels=setting.kernels,
        num_tokens=stats.generated_tokens,
        modelled_tokens_per_s=modelled_rate(predicted, stats, num_lookups),
        predicted_tokens_per_s=predicted.decode_tokens_per_s,
        measured_tokens_per_s=stats.decode_tokens_per_s,
    )


def modelled_rate(predicted: Forecast, stats: GenerationStats, num_lookups: int) -> float:
    """Return what the cost model says for the misses that there were.

    So that what is learned of its costs and what is learned of hits are not counted twice.
    """
    token_s = predicted.speed_ratio / predicted.decode_tokens_per_s
    misses = (1 - predicted.hit_ratio) * num_lookups
    if misses > 0:
        found = stats.decode_expert_misses / (stats.generated_tokens - 1)
        token_s += predicted.drive_s_per_token * (found / misses - 1)
    return 1 / token_s


def _usual(known: Experience | None) -> float:
    return known.measured_tokens_per_s if known is not None and known.num_answers else 0.0
