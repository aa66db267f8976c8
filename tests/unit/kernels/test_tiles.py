"""The tile of a product: the fastest of few, tried once, and none where nothing can be measured."""

from collections.abc import Callable

import pytest
import torch

from runtime.kernels.tiles import TILES, Tile, TileChoice

PROCESSOR, CARD = torch.device("cpu"), torch.device("cuda:0")
FASTEST = TILES[2]


class Measured:
    """A card on which one tile is the fastest, and which cannot be launched with another."""

    def __init__(self, fastest: Tile | None, refused: tuple[Tile, ...] = ()) -> None:
        self.tried: list[Tile] = []
        self._fastest = fastest
        self._refused = refused

    def run(self, tile: Tile) -> None:
        """Launch."""
        self.tried.append(tile)
        if tile in self._refused:
            raise RuntimeError("out of resources: shared memory")

    def measure(self, work: Callable[[], object]) -> float:
        """Return what the last tile takes."""
        work()
        return 1.0 if self.tried[-1] is self._fastest else 2.0


def test_fastest_tile_is_found_once_for_each_kind() -> None:
    card = Measured(FASTEST)
    choice = TileChoice(card.measure)

    found = [choice.of(("q4", 768, 2048), CARD, card.run) for _ in range(3)]
    other = choice.of(("q4", 2048, 768), CARD, card.run)

    assert found == [FASTEST] * 3
    assert other is FASTEST
    assert card.tried == [*TILES, *TILES]


@pytest.mark.parametrize(("refused", "expected"), [(TILES[:3], TILES[3]), (TILES, TILES[0])])
def test_tile_that_cannot_be_launched_is_passed_over(
    refused: tuple[Tile, ...], expected: Tile
) -> None:
    card = Measured(None, refused)

    assert TileChoice(card.measure).of("kind", CARD, card.run) is expected


def test_nothing_is_tried_without_a_card() -> None:
    card = Measured(FASTEST)

    assert TileChoice().of("kind", PROCESSOR, card.run) is TILES[0]
    assert card.tried == []


def test_nothing_is_tried_while_launches_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    card = Measured(FASTEST)
    monkeypatch.setattr("torch.cuda.is_current_stream_capturing", lambda: True)

    assert TileChoice().of("kind", CARD, card.run) is TILES[0]
    assert card.tried == []


def test_card_is_measured_by_its_own_events(monkeypatch: pytest.MonkeyPatch) -> None:
    card, clock = Measured(None), [0.0]

    class Event:
        """A moment of the card's clock, in milliseconds."""

        def __init__(self, *, enable_timing: bool) -> None:
            assert enable_timing

        def record(self) -> None:
            self.at = clock[0]

        def synchronize(self) -> None:
            """Wait."""

        def elapsed_time(self, end: "Event") -> float:
            return end.at - self.at

    def run(tile: Tile) -> None:
        card.run(tile)
        clock[0] += 1.0 if tile is FASTEST else 3.0

    monkeypatch.setattr("torch.cuda.is_current_stream_capturing", lambda: False)
    monkeypatch.setattr("torch.cuda.Event", Event)

    assert TileChoice().of("kind", CARD, run) is FASTEST


def test_tiles_are_whole_blocks_and_groups() -> None:
    assert all(tile.rows % 8 == tile.columns % 32 == 0 for tile in TILES)
    assert len(set(TILES)) == len(TILES) <= 4
