"""The expert map as numbers: what each expert is, and the colour index of each cell.

An index is ``group * NUM_LEVELS + level``: the group is the tier, the step of bits or nothing, the
level is the use. The image is a table of indices; colours are put in by the table of the palette.
"""

import enum
import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from runtime.protocol.telemetry import ExpertMap

NUM_LEVELS = 64
NUM_TIERS = 3
BITS_STEPS = (4, 8, 16, 32)
"""Upper ends of the groups by bits."""
USE_PER_DOUBLING = 16.0

Bytes = npt.NDArray[np.uint8]
Colours = npt.NDArray[np.uint32]
"""A colour for each index, as ``0xAARRGGBB``."""


class MapMode(enum.Enum):
    """What the colour of a cell says."""

    TIER = "tier"
    USE = "use"
    BITS = "bits"


class ExpertGrid:
    """The newest map, and its picture in one of the modes.

    Sorted, a row's experts stand by group and then by use, strongest first; unsorted, by number.
    """

    def __init__(self) -> None:
        self._use: Bytes = np.zeros((0, 0), np.uint8)
        self._tier: Bytes = np.zeros((0, 0), np.uint8)
        self._bits: Bytes = np.zeros((0, 0), np.uint8)
        self._hits: Bytes = np.zeros((0, NUM_TIERS), np.uint8)
        self.mode = MapMode.TIER
        self.is_sorted = True

    @property
    def num_layers(self) -> int:
        """Rows."""
        return int(self._use.shape[0])

    @property
    def num_experts(self) -> int:
        """Columns."""
        return int(self._use.shape[1])

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to draw."""
        return self._use.size == 0

    def take(self, experts: ExpertMap) -> bool:
        """Take a map; return whether it differs from the one before."""
        shape = (experts.num_layers, experts.num_experts)
        before = (self._use, self._tier, self._bits, self._hits)
        is_new = self._use.shape != shape
        self._use = _table(experts.use, shape, self._use)
        self._tier = _table(experts.tier, shape, self._tier)
        self._bits = _table(experts.bits, shape, self._bits)
        self._hits = _table(experts.layer_hits, (shape[0], NUM_TIERS), self._hits)
        after = (self._use, self._tier, self._bits, self._hits)
        return is_new or any(
            old is not new and not np.array_equal(old, new)
            for old, new in zip(before, after, strict=True)
        )

    def indices(self) -> Bytes:
        """Return the colour index of each cell, row by row."""
        keys = self._keys()
        colours = _colours(keys)
        if self.is_sorted:
            keys = np.sort(keys, axis=1, kind="stable")
        return colours[keys]

    def pixels(self, table: Colours) -> Colours:
        """Return the colour of each cell, row by row."""
        found: Colours = np.take(table, self.indices())
        return found

    def expert_at(self, layer: int, column: int) -> int:
        """Return which expert stands in a cell."""
        if not self.is_sorted:
            return column
        order = np.argsort(self._keys()[layer], kind="stable")
        return int(order[column])

    def column_of(self, layer: int, expert: int) -> int:
        """Return in which column an expert stands."""
        if not self.is_sorted:
            return expert
        order = np.argsort(self._keys()[layer], kind="stable")
        return int(np.nonzero(order == expert)[0][0])

    def facts(self, layer: int, expert: int) -> tuple[int, int, float]:
        """Return tier (0 VRAM, 1 RAM, 2 drive), bits, and about how often it was used."""
        use = float(self._use[layer, expert])
        uses = 2.0 ** (use / USE_PER_DOUBLING) - 1.0
        return int(self._tier[layer, expert]), int(self._bits[layer, expert]), uses

    def num_in_tiers(self) -> tuple[int, ...]:
        """Return how many experts each tier holds, hot to cold."""
        counts = np.bincount(self._tier.ravel(), minlength=NUM_TIERS)
        return tuple(int(number) for number in counts[:NUM_TIERS])

    def num_of_bits(self) -> list[tuple[int, int, int]]:
        """Return of each group by bits the fewest and most bits and how many experts it has."""
        counts = np.bincount(self._bits.ravel(), minlength=256)
        ends = (0, *(step + 1 for step in BITS_STEPS[:-1]), 256)
        found = []
        for start, end in itertools.pairwise(ends):
            (there,) = np.nonzero(counts[start:end])
            lowest, highest = (there[0], there[-1]) if there.size else (0, 0)
            num_experts = int(counts[start:end].sum())
            found.append((start + int(lowest), start + int(highest), num_experts))
        return found

    def layer_hits(self, layer: int) -> tuple[float, ...]:
        """Return the parts of a layer's look-ups that each tier answered; all 0 without any."""
        row = self._hits[layer].astype(float)
        total = float(row.sum())
        return tuple(float(part) / total if total else 0.0 for part in row)

    def hit_pixels(self, colours: Sequence[int], width: int) -> Colours:
        """Return a bar of so many pixels for each layer; colours are the tiers', then none's."""
        ends = np.cumsum(self._hits.astype(np.float32), axis=1)
        total = ends[:, -1:]
        # Each pixel belongs to the tier in whose part its middle lies.
        middles = (np.arange(width, dtype=np.float32) + 0.5) / width * np.maximum(total, 1)
        tier = (middles[:, :, None] >= ends[:, None, :]).sum(axis=2)
        found: Colours = np.take(
            np.array(colours, np.uint32), np.where(total > 0, np.minimum(tier, NUM_TIERS - 1), 3)
        )
        return found

    def _groups(self) -> Bytes | None:
        if self.mode is MapMode.TIER:
            return np.minimum(self._tier, NUM_TIERS - 1)
        if self.mode is MapMode.BITS:
            return np.searchsorted(BITS_STEPS[:-1], self._bits).astype(np.uint8)
        return None

    def _keys(self) -> npt.NDArray[np.uint16]:
        """Return numbers by which a row is sorted and coloured: group, then rare use last."""
        keys = np.subtract(255, self._use, dtype=np.uint16)
        groups = self._groups()
        if groups is not None:
            keys |= groups.astype(np.uint16) << 8
        return keys


def _colours(keys: npt.NDArray[np.uint16]) -> Bytes:
    """Return the colour index of every possible key.

    Levels reach from the weakest to the strongest use within a group, so that each band shows its
    own order; between the rows of one group they can be compared.
    """
    is_there = np.zeros(len(BITS_STEPS) * 256, np.bool_)
    is_there[keys] = True
    table = np.zeros(is_there.size, np.uint8)
    use = np.arange(255, -1, -1)
    for group in range(len(BITS_STEPS)):
        part = slice(group * 256, group * 256 + 256)
        found = use[is_there[part]]
        most = int(found[0]) if found.size else 0
        least = min(int(found[-1]), most - 1) if most else 0
        level = (use - least) * (NUM_LEVELS - 1) // max(1, most - least)
        table[part] = group * NUM_LEVELS + np.clip(level, 0, NUM_LEVELS - 1)
    return table


def colours_of(colours: Sequence[int]) -> Colours:
    """Return colours as a table for ``ExpertGrid.pixels``, as long as any index can be."""
    table = np.zeros(len(BITS_STEPS) * NUM_LEVELS, np.uint32)
    table[: len(colours)] = colours
    return table


def _table(data: bytes, shape: tuple[int, int], before: Bytes) -> Bytes:
    """Return bytes as a table; what is empty is as before, what has another length is nothing."""
    if len(data) == shape[0] * shape[1]:
        return np.frombuffer(data, np.uint8).reshape(shape)
    if not data and before.shape == shape:
        return before
    return np.zeros(shape, np.uint8)
