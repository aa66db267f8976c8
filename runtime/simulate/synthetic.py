"""Traces that are made up to be like a recorded one: a walk over pieces of it."""

import dataclasses

import numpy as np
import numpy.typing as npt

from runtime.simulate.trace import Trace

_Floats = npt.NDArray[np.float32]
LAGS = (1, 2, 4, 8, 16, 32)
"""Distances in tokens at which reuse is compared."""
_PIECE_TOKENS = 32
_MIN_PIECES = 8
_MAX_PIECES = 2048
_STAYS = 0.97
"""Part of what was used lately that is left after one token."""
_SHARPNESS = 50.0
"""How much more often a walk goes where what was used lately fits better."""
_GOES_ON = 0.75
"""How often the piece follows that followed in the recording."""
_TIRED = 2.0
"""How fast a piece that was walked more often than others becomes unlikely."""
_BALANCE_STEPS = 60


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Likeness:
    """What a made-up trace takes from a recorded one: short pieces, and where one may lead.

    A walk goes on with the piece that followed, or turns to one that began, anywhere in the
    recording, after much the same experts had been in use. All layers walk together.
    """

    recorded: Trace
    """Whole pieces only."""
    piece_tokens: int
    turns: _Floats
    """[pieces, pieces]: how likely a turn leads from one to another; all are reached alike."""

    @property
    def num_pieces(self) -> int:
        """Pieces of the recording."""
        return len(self.turns)


def likeness_of(trace: Trace) -> Likeness:
    """Fit a likeness to a trace, to its first 65536 tokens at most."""
    piece_tokens = max(1, min(_PIECE_TOKENS, trace.num_tokens // _MIN_PIECES))
    num_pieces = min(_MAX_PIECES, trace.num_tokens // piece_tokens)
    recorded = trace.part(num_pieces * piece_tokens)
    lately = _used_lately(recorded, piece_tokens)
    lately /= np.maximum(np.linalg.norm(lately, axis=1, keepdims=True), 1e-9)
    fit = lately[1:] @ lately[:-1].T
    turns: _Floats = np.exp(_SHARPNESS * (fit - fit.max(axis=1, keepdims=True)))
    if num_pieces > _MIN_PIECES:
        # What followed in the recording, and its neighbours, are no turns.
        following = (np.arange(num_pieces) + 1) % num_pieces
        for step in (-1, 0, 1):
            turns[np.arange(num_pieces), (following + step) % num_pieces] = 0
    for _ in range(_BALANCE_STEPS):
        turns /= np.maximum(turns.sum(axis=0, keepdims=True), 1e-30)
        turns /= np.maximum(turns.sum(axis=1, keepdims=True), 1e-30)
    return Likeness(recorded, piece_tokens, turns)


def synthesize(likeness: Likeness, num_tokens: int, seed: int) -> Trace:
    """Make a trace of any length up; the same seed gives the same one."""
    recorded, size = likeness.recorded, likeness.piece_tokens
    pieces = _walk(likeness, -(-num_tokens // size), np.random.default_rng(seed))
    tokens = (pieces[:, None] * size + np.arange(size)).reshape(-1)[:num_tokens]
    source = f"made up from seed {seed} and pieces of {recorded.name}: {recorded.origin.source}"
    return dataclasses.replace(
        recorded,
        name=f"like-{recorded.name}",
        origin=dataclasses.replace(recorded.origin, source=source),
        sequence_tokens=(num_tokens,),
        ids=recorded.ids[tokens],
        scores=None if recorded.scores is None else recorded.scores[tokens],
        hints=None if recorded.hints is None else recorded.hints[tokens],
    )


def _used_lately(trace: Trace, piece_tokens: int) -> _Floats:
    """Return how much each expert was in use before each piece and after the last one.

    [pieces + 1, layers * experts].
    """
    num_all = trace.num_layers * trace.num_experts
    places = trace.ids + np.arange(trace.num_layers)[:, None] * trace.num_experts
    found = np.zeros((trace.num_tokens // piece_tokens + 1, num_all), np.float32)
    present = np.zeros(num_all, np.float32)
    for token, used in enumerate(places.reshape(trace.num_tokens, -1), start=1):
        present *= _STAYS
        present[used] += 1 - _STAYS
        if token % piece_tokens == 0:
            found[token // piece_tokens] = present
    return found


def _walk(likeness: Likeness, num_steps: int, draw: np.random.Generator) -> npt.NDArray[np.intp]:
    """Return the pieces of a walk, each about as often as any other."""
    walked = np.zeros(likeness.num_pieces)
    found = np.empty(num_steps, np.intp)
    piece = int(draw.integers(likeness.num_pieces))
    for step in range(num_steps):
        found[step] = piece
        walked[piece] += 1
        chances = (1 - _GOES_ON) * likeness.turns[piece]
        chances[(piece + 1) % likeness.num_pieces] += _GOES_ON
        sums = np.cumsum(chances * np.exp(_TIRED * (walked.min() - walked)))
        piece = int(np.searchsorted(sums, draw.random() * sums[-1], side="right"))
    return found
