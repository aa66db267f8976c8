"""Keys and values of one conversation, in pages, and which tokens they belong to."""

import contextlib
import dataclasses
import math
from collections.abc import Sequence

import torch

from runtime.device.base import Device, DeviceArena
from runtime.errors import LarderError
from runtime.kernels.kv import KvPages
from runtime.kernels.matrix import CPU
from runtime.memory.arena import Arena
from runtime.memory.ledger import Ledger
from runtime.protocol.plan import MemoryPart
from runtime.spec.attention import KvShape
from runtime.spec.footprint import KV_PAGE_TOKENS, kv_page_bytes
from runtime.spec.model import ModelSpec


class KvCache:
    """The KV pages of all layers, and the tokens whose entries in them are valid.

    All pages that the context can need are counted when the cache is made; memory comes into use
    with the first write. One position group takes one page in each layer; layers with pages of one
    size share an arena::

        slot    0        1        2        3        4        5        (2 layers)
        page    l0 p0    l1 p0    l0 p1    l1 p1    l0 p2    l1 p2

    With a device each layer has an arena of its own, there or in RAM, and can move between them.

    Threads: used by the engine thread.
    """

    def __init__(
        self,
        ledger: Ledger,
        spec: ModelSpec,
        context_tokens: int,
        device: Device | None = None,
        ram_layers: Sequence[int] = (),
    ) -> None:
        """Take the memory: of the ledger, or of the device if there is one.

        ``ram_layers`` lie in RAM although there is a device.
        """
        self._context_tokens = context_tokens
        self._ledger = ledger
        self._device = device
        self._num_pages = -(-context_tokens // KV_PAGE_TOKENS)
        sizes = [kv_page_bytes(attention.kv) for attention in spec.attention]
        self._arenas: dict[int, Arena | DeviceArena] = {}
        """By the first layer that has its pages there."""
        self._homes: list[_Home] = []
        for layer, attention in enumerate(spec.attention):
            size = sizes[layer]
            home = _Home(attention.kv, size, layer, 0, 1)
            if device is None:
                first, place = sizes.index(size), sizes[:layer].count(size)
                home = _Home(attention.kv, size, first, place, sizes.count(size))
            self._homes.append(home)
        self._token_ids: list[int] = []
        self.layers: list[KvPages] = []
        """The pages of each layer, as attention takes them."""
        try:
            for layer, home in enumerate(self._homes):
                is_here = device is None or layer in ram_layers
                if home.arena not in self._arenas:
                    self._arenas[home.arena] = self._arena(home, is_here=is_here)
                self.layers.append(self._no_pages(home, is_here=is_here))
        except LarderError:
            self._close_arenas()
            raise

    @property
    def context_tokens(self) -> int:
        """The most tokens that can be held."""
        return self._context_tokens

    @property
    def num_tokens(self) -> int:
        """Tokens whose entries are valid."""
        return len(self._token_ids)

    def keep_prefix(self, token_ids: Sequence[int], max_tokens: int) -> int:
        """Drop everything after the longest common prefix with ``token_ids``; return its length.

        At most ``max_tokens`` are kept.
        """
        limit = min(len(token_ids), self.num_tokens, max_tokens)
        kept = 0
        while kept < limit and token_ids[kept] == self._token_ids[kept]:
            kept += 1
        self.truncate(kept)
        return kept

    def truncate(self, num_tokens: int) -> None:
        """Drop the entries from position ``num_tokens`` on, and the pages that become empty."""
        del self._token_ids[num_tokens:]
        num_pages = -(-self.num_tokens // KV_PAGE_TOKENS)
        for pages in self.layers:
            pages.truncate(num_pages)

    def reserve(self, num_tokens: int) -> None:
        """Add the pages that ``num_tokens`` more tokens need; the context must have the room."""
        needed = self.num_tokens + num_tokens
        if needed > self._context_tokens:
            raise ValueError(f"{needed} tokens in a context of {self._context_tokens}")
        num_pages = -(-needed // KV_PAGE_TOKENS)
        for page in range(len(self.layers[0].keys), num_pages):
            for layer, pages in enumerate(self.layers):
                pages.extend([self._page(layer, page)])

    @property
    def ram_layers(self) -> tuple[int, ...]:
        """The layers that lie in RAM beside a device."""
        if self._device is None:
            return ()
        return tuple(layer for layer, pages in enumerate(self.layers) if pages.device == CPU)

    def move(self, ram_layers: Sequence[int]) -> None:
        """Let just these layers lie in RAM beside the device; what they hold goes with them.

        Both memories need the room of one layer at a time beyond what is given back meanwhile. On
        an error all is as before.
        """
        before, wanted = set(self.ram_layers), set(ram_layers)
        if self._device is None or before == wanted:
            return
        # What was launched may still use the memory that is given back.
        self._device.synchronize()
        with contextlib.ExitStack() as undo:
            for layer in sorted(before ^ wanted):
                self._move(layer, is_here=layer in wanted)
                undo.callback(self._move, layer, is_here=layer in before)
            undo.pop_all()

    def take_over(self, other: "KvCache") -> None:
        """Copy what another cache of the same model and context holds, wherever it lies."""
        self.truncate(0)
        self.reserve(other.num_tokens)
        for mine, theirs in zip(self.layers, other.layers, strict=True):
            for index in range(len(mine.keys)):
                mine.keys[index].copy_(theirs.keys[index])
                mine.values[index].copy_(theirs.values[index])
        self.commit(other.token_ids)

    @property
    def token_ids(self) -> Sequence[int]:
        """The tokens whose entries are valid."""
        return tuple(self._token_ids)

    def commit(self, token_ids: Sequence[int]) -> None:
        """Note that the entries of further tokens were written in all layers."""
        if self.num_tokens + len(token_ids) > self.layers[0].capacity_tokens:
            raise ValueError("entries that no page holds")
        self._token_ids.extend(token_ids)

    def close(self) -> None:
        """Give the memory back; may be called twice."""
        for pages in self.layers:
            pages.truncate(0)
            pages.whole = None
        self._token_ids.clear()
        self._close_arenas()

    def check(self) -> None:
        """Assert that every layer has the same pages, enough for the tokens, none shared."""
        for arena in self._arenas.values():
            arena.check()
        num_pages = {len(pages.keys) for pages in self.layers}
        assert len(num_pages) == 1
        assert self.num_tokens <= self.layers[0].capacity_tokens
        addresses = [
            address
            for pages, home in zip(self.layers, self._homes, strict=True)
            for address in (
                *pages.key_addresses,
                *(() if home.shape.is_shared else pages.value_addresses),
            )
        ]
        assert len(addresses) == len(set(addresses))

    def _close_arenas(self) -> None:
        for arena in self._arenas.values():
            arena.close()

    def _arena(self, home: "_Home", *, is_here: bool) -> Arena | DeviceArena:
        """Return the arena of a layer, or of all that share one: in RAM, or on the device.

        There a layer lies in one piece, all keys before all values, and begins with zeros: what is
        masked out must be a number.
        """
        num_slots = home.num_layers * self._num_pages
        if is_here or self._device is None:
            return Arena(self._ledger, MemoryPart.KV_CACHE, num_slots, home.page_bytes)
        arena = self._device.arena(MemoryPart.KV_CACHE, 1, num_slots * home.page_bytes)
        arena.tensor(0).zero_()
        return arena

    def _no_pages(self, home: "_Home", *, is_here: bool) -> KvPages:
        """Return the pages of a layer before it has any."""
        where = CPU if is_here or self._device is None else self._device.device
        pages = KvPages(KV_PAGE_TOKENS, home.shape.num_heads, home.shape.head_dim, where)
        if where != CPU:
            pages.whole = self._whole(home)
        return pages

    def _whole(self, home: "_Home") -> tuple[torch.Tensor, torch.Tensor]:
        """Return keys and values of all positions of a layer on the device."""
        shape = (self._num_pages * KV_PAGE_TOKENS, home.shape.num_heads, home.shape.head_dim)
        length = math.prod(shape)
        numbers = self._arenas[home.arena].tensor(0).view(torch.float32)
        keys = numbers[:length].view(shape)
        if home.shape.is_shared:
            return keys, keys
        return keys, numbers[length : 2 * length].view(shape)

    def _move(self, layer: int, *, is_here: bool) -> None:
        """Move a layer to RAM, or to the device over its link."""
        home, before = self._homes[layer], self.layers[layer]
        left = self._arenas[home.arena]
        self._arenas[home.arena] = self._arena(home, is_here=is_here)
        after = self.layers[layer] = self._no_pages(home, is_here=is_here)
        after.extend([self._page(layer, page) for page in range(len(before.keys))])
        for page in range(len(before.keys)):
            self._copy(before.keys[page], after.keys[page], is_here=is_here)
            if not home.shape.is_shared:
                self._copy(before.values[page], after.values[page], is_here=is_here)
        before.truncate(0)
        before.whole = None
        left.close()

    def _copy(self, source: torch.Tensor, target: torch.Tensor, *, is_here: bool) -> None:
        """Copy a page to RAM, or to the device over its link."""
        if is_here or self._device is None:
            target.copy_(source)
        else:
            bytes_of = (source.view(torch.uint8).view(-1), target.view(torch.uint8).view(-1))
            self._device.copy(*bytes_of).wait()

    def _page(self, layer: int, page: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return keys and values of a page of a layer."""
        home, whole = self._homes[layer], self.layers[layer].whole
        if whole is not None:
            here = slice(page * KV_PAGE_TOKENS, (page + 1) * KV_PAGE_TOKENS)
            return whole[0][here], whole[1][here]
        shape = (KV_PAGE_TOKENS, home.shape.num_heads, home.shape.head_dim)
        length = math.prod(shape)
        slot = page * home.num_layers + home.place
        both = self._arenas[home.arena].tensor(slot).view(torch.float32)
        keys = both[:length].view(shape)
        if home.shape.is_shared:
            return keys, keys
        return keys, both[length : 2 * length].view(shape)


@dataclasses.dataclass(frozen=True, slots=True)
class _Home:
    """Where the pages of one layer lie: its place among the layers that share an arena."""

    shape: KvShape
    page_bytes: int
    arena: int
    place: int
    num_layers: int
