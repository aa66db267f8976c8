"""What models did before on this PC, one small file for each, measured elsewhere and kept here."""

import math
from pathlib import Path

import msgspec

from runtime.hardware.kept_file import kept_text, path_of_model, replace_file
from runtime.spec.past import (
    CACHE_RATIOS,
    NO_PAST,
    SEGMENT_TOKENS,
    Past,
    PastRun,
    ReuseCounts,
    RoutingCounts,
)

MAX_RUNS = 40
MAX_TOKENS = 20_000
"""Counts of reuse fade once they are of more tokens than this."""


class _Kept(msgspec.Struct, forbid_unknown_fields=True):
    fingerprint: str
    past: Past


class PastRuns:
    """Earlier runs of models by fingerprint, in a folder of the cache.

    A file that is missing, damaged or of another model counts as no past. What cannot be written is
    told in the log.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, fingerprint: str) -> Past:
        """Return what is kept of a model."""
        try:
            kept = msgspec.json.decode(
                kept_text(path_of_model(self._folder, fingerprint)), type=_Kept
            )
        except (ValueError, RecursionError):
            return NO_PAST
        is_sound = kept.fingerprint == fingerprint and _is_sound(kept.past)
        return kept.past if is_sound else NO_PAST

    def add(
        self,
        fingerprint: str,
        run: PastRun | None,
        reuse: ReuseCounts | None,
        routing: RoutingCounts | None = None,
    ) -> Past:
        """Keep a run, and what was counted since the last time; None adds nothing.

        Return what was kept before.
        """
        before = self.read(fingerprint)
        if run is None and reuse is None and routing is None:
            return before
        runs = before.runs if run is None else (*before.runs, run)[-MAX_RUNS:]
        if reuse is None:
            reuse = before.reuse
        elif before.reuse is not None:
            reuse = before.reuse.plus(reuse, MAX_TOKENS)
        if routing is None:
            routing = before.routing
        elif before.routing is not None:
            routing = before.routing.plus(routing, MAX_TOKENS)
        content = msgspec.json.encode(_Kept(fingerprint, Past(runs, reuse, routing))).decode()
        replace_file(path_of_model(self._folder, fingerprint), content, "what an answer took")
        return before


def _is_sound(past: Past) -> bool:
    """Whether figures can be reckoned with; a file can say anything."""
    rates = [
        rate
        for run in past.runs
        for rate in (
            run.modelled_tokens_per_s,
            run.predicted_tokens_per_s,
            run.measured_tokens_per_s,
        )
    ]
    counts = () if past.reuse is None else past.reuse.found
    routing = past.routing
    if routing is not None:
        if (len(routing.uses), len(routing.hits)) != (SEGMENT_TOKENS + 1, len(CACHE_RATIOS)):
            return False
        if max(routing.hits) > routing.num_needs:
            return False
        counts = (*counts, *routing.uses, *routing.hits, routing.num_needs, routing.num_tokens)
    return (
        all(math.isfinite(rate) and rate > 0 for rate in rates)
        and all(0 <= run.held_ratio <= 1 for run in past.runs)
        and min(counts, default=0) >= 0
    )
