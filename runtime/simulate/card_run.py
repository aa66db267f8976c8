"""Tokens of a trace on a pretended PC with a card, experts lying there as chosen by the engine."""

import dataclasses
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from runtime.policy.device_choice import Upload
from runtime.simulate.card import LayerCosts
from runtime.simulate.trace import Trace

Flags = npt.NDArray[np.bool_]


@dataclasses.dataclass(frozen=True, slots=True)
class CardTiming:
    """What timed tokens took."""

    num_tokens: int
    seconds: float
    hits: int
    misses: int
    uploads: int

    @property
    def token_s(self) -> float:
        """Seconds of a token."""
        return self.seconds / max(1, self.num_tokens)

    @property
    def hit_ratio(self) -> float:
        """Part of the look-ups that found their expert on the card."""
        return self.hits / max(1, self.hits + self.misses)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """A trace as a program meets it: each sequence a prompt, read at once, and tokens after it."""

    trace: Trace
    is_prompt: Flags
    is_timed: Flags
    """Generated tokens that count; those before them only warm the caches."""

    @classmethod
    def of(cls, trace: Trace, prompt_part: float = 0.25, timed_part: float = 0.5) -> "Steps":
        """Return steps whose prompts are the first part of each sequence."""
        is_prompt = np.zeros(trace.num_tokens, np.bool_)
        first = 0
        for size in trace.sequence_tokens:
            is_prompt[first : first + int(size * prompt_part)] = True
            first += size
        is_timed = ~is_prompt
        is_timed[: int(trace.num_tokens * (1 - timed_part))] = False
        return cls(trace, is_prompt, is_timed)

    def prompt_end(self, token: int) -> int:
        """Return where the prompt ends that begins at a token; the token itself if none does."""
        end = token
        while end < self.trace.num_tokens and self.is_prompt[end]:
            end += 1
        return end


class Choice(Protocol):
    """Who decides what lies on the card: ``DeviceChoice``, or another for comparison."""

    @property
    def residents(self) -> Flags:
        """Whether each expert of each layer is resident."""

    def need(self, layer: int, experts: Sequence[int]) -> None:
        """Note the distinct experts that one token needs of a layer."""

    def need_rows(self, layer: int, counts: npt.NDArray[np.integer], num_rows: int) -> None:
        """Note how many of the rows of a prompt need each expert of a layer."""

    def end_step(self) -> None:
        """Note that a step has ended."""

    def choose(self) -> list[Upload]:
        """Return what is to be uploaded now."""

    def publish(self, layer: int, expert: int) -> None:
        """Note that an expert has come and is resident."""

    def check(self) -> None:
        """Assert that what it holds is sound."""


def run_choice(steps: Steps, choice: Choice, costs: LayerCosts) -> CardTiming:
    """Run a choice over a trace; uploads take time and are published when they end."""
    return _Run(steps, choice, costs).run()


def hits_of(trace: Trace, residents: Flags) -> npt.NDArray[np.int64]:
    """Return what each token hits of each layer with residents that stay, [tokens, layers]."""
    layers = np.arange(trace.num_layers)[None, :, None]
    hits: npt.NDArray[np.int64] = residents[layers, trace.ids.astype(np.intp)].sum(axis=2)
    return hits


def time_hits(
    steps: Steps,
    hits: npt.NDArray[np.integer],
    costs: LayerCosts,
    *,
    is_copied: bool = False,
) -> CardTiming:
    """Return what timed tokens take that hit so many experts, [tokens, layers], nothing moving."""
    top_k = steps.trace.top_k
    chosen = hits[steps.is_timed]
    layer_s = (costs.copied if is_copied else costs.split)(chosen, top_k - chosen)
    num_tokens = len(chosen)
    seconds = float(layer_s.sum()) + num_tokens * costs.token_s
    num_hits = int(chosen.sum())
    num_misses = chosen.size * top_k - num_hits
    return CardTiming(num_tokens, seconds, num_hits, num_misses, num_misses if is_copied else 0)


class _Run:
    """One run with its clock."""

    def __init__(self, steps: Steps, choice: Choice, costs: LayerCosts) -> None:
        self._steps = steps
        self._choice = choice
        self._costs = costs
        self._now_s = 0.0
        self._link_free_s = 0.0
        self._coming: list[tuple[float, int, int]] = []
        self._uploads = 0

    def run(self) -> CardTiming:
        """Run all tokens."""
        trace, steps, costs = self._steps.trace, self._steps, self._costs
        layers = np.arange(trace.num_layers)[:, None]
        residents = self._choice.residents
        ids = trace.ids.astype(np.intp)
        timed_s, hits, misses, uploads = 0.0, 0, 0, 0
        token = 0
        while token < trace.num_tokens:
            end = steps.prompt_end(token)
            if end > token:
                self._read_prompt(token, end)
                token = end
                continue
            begin_s, before = self._now_s, self._uploads
            self._begin_step()
            found = residents[layers, ids[token]].sum(axis=1)
            absent = trace.top_k - found
            if self._link_free_s <= self._now_s:
                self._now_s += float(costs.split(found, absent).sum())
            else:
                for hit, miss in zip(found.tolist(), absent.tolist(), strict=True):
                    self._now_s = costs.beside_copies(self._now_s, hit, miss, self._link_free_s)
            self._now_s += costs.token_s
            for layer, row in enumerate(ids[token].tolist()):
                self._choice.need(layer, row)
            if steps.is_timed[token]:
                timed_s += self._now_s - begin_s
                hits += int(found.sum())
                misses += int(absent.sum())
                uploads += self._uploads - before
            token += 1
        self._choice.check()
        return CardTiming(int(steps.is_timed.sum()), timed_s, hits, misses, uploads)

    def _read_prompt(self, first: int, end: int) -> None:
        """Let the choice see a prompt; no time passes."""
        self._choice.end_step()
        trace = self._steps.trace
        for layer in range(trace.num_layers):
            ids = trace.ids[first:end, layer].reshape(-1)
            counts = np.bincount(ids, minlength=trace.num_experts)
            self._choice.need_rows(layer, counts, end - first)

    def _begin_step(self) -> None:
        """Publish what has come and begin what is chosen, as the engine does between two steps."""
        choice, costs = self._choice, self._costs
        choice.end_step()
        left = []
        for each in self._coming:
            if each[0] <= self._now_s:
                choice.publish(each[1], each[2])
            else:
                left.append(each)
        self._coming = left
        for upload in choice.choose():
            self._now_s += costs.begin_s
            self._link_free_s = max(self._link_free_s, self._now_s) + costs.copy_s
            self._coming.append((self._link_free_s, upload.layer, upload.expert))
            self._uploads += 1
