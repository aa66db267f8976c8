"""The peer on a card: its ways hold as many experts as ours, and what is missing is said."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import card_peer
import pytest
from model_shapes import Shape

SHAPE = Shape(64, 32, 8, 2, 4, 2, 16, num_layers=6, vocabulary=96)
PARTS = {"none": 0.0, "a third": 1 / 3, "all": 1.0}
OURS = [{"what": name, "tokens_per_s": 26.0} for name in PARTS]


class PretendedPeer:
    """A peer that takes longer the fewer experts lie on the card."""

    loads: Sequence[dict[str, int]] = []

    def __init__(self, python: Path) -> None:
        self._seconds = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def load(self, path: Path, settings: object, *, context_tokens: int, **layers: int) -> None:
        assert path.stat().st_size > 0
        type(self).loads = [*self.loads, layers]
        there = layers["gpu_layers"] - layers.get("cpu_experts", 0)
        self._seconds = 1.0 + SHAPE.num_layers - there / 2

    def decode(self, count: int, first: int) -> float:
        return self._seconds * count


def test_peer_is_run_in_every_way_and_its_best_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(card_peer, "why_not", lambda: "")
    monkeypatch.setattr(card_peer, "PeerProcess", PretendedPeer)
    PretendedPeer.loads = []

    rows = list(card_peer.peers(SHAPE, PARTS, OURS, 8))

    assert PretendedPeer.loads == [
        {"gpu_layers": 0, "cpu_experts": 0},
        {"gpu_layers": 7, "cpu_experts": 6},
        {"gpu_layers": 3, "cpu_experts": 0},
        {"gpu_layers": 7, "cpu_experts": 4},
        {"gpu_layers": 7, "cpu_experts": 0},
        {"gpu_layers": 7, "cpu_experts": 0},
    ]
    assert [row["what"].rpartition(": ")[2] for row in rows] == [
        "all layers, experts of 0",
        "2 whole layers",
        "6 whole layers",
    ]
    assert all(row["ours_by_it"] == pytest.approx(26.0 / row["tokens_per_s"]) for row in rows)


@pytest.mark.parametrize(
    ("spec", "status", "why"),
    [(None, 0, "not installed"), (object(), 1, "for the processor alone"), (object(), 0, "")],
)
def test_peer_that_cannot_use_a_card_is_said(
    monkeypatch: pytest.MonkeyPatch, spec: object, status: int, why: str
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: spec)
    monkeypatch.setattr("subprocess.call", lambda *_, **__: status)

    found = card_peer.why_not()

    assert why in found
    assert bool(found) == bool(why)


def test_peer_that_ends_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def end(*_: Any, **__: Any) -> None:
        raise SystemExit("the peer ended with status 1")

    monkeypatch.setattr(card_peer, "why_not", lambda: "")
    monkeypatch.setattr(card_peer, "PeerProcess", end)

    (row,) = card_peer.peers(SHAPE, PARTS, OURS, 8)

    assert row["not_compared"] == "the peer ended with status 1"
