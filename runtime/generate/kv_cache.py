"""Keys and values of one conversation, in pages, and which tokens they belong to."""

import dataclasses
import math
from collections.abc import Sequence

import torch

from runtime.device.base import Device, DeviceArena
from runtime.errors import LarderError
from runtime.kernels.kv import KvPages
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

    Threads: used by the engine thread.
    """

    def __init__(
        self,
        ledger: Ledger,
        spec: ModelSpec,
        context_tokens: int,
        device: Device | None = None,
    ) -> None:
        """Take the memory: of the ledger, or of the device if there is one."""
        self._context_tokens = context_tokens
        num_pages = -(-context_tokens // KV_PAGE_TOKENS)
        sizes = [kv_page_bytes(attention.kv) for attention in spec.attention]
        self._arenas: dict[int, Arena | DeviceArena] = {}
        self._homes: list[_Home] = []
        for layer, attention in enumerate(spec.attention):
            size = sizes[layer]
            self._homes.append(
                _Home(attention.kv, size, sizes[:layer].count(size), sizes.count(size))
            )
        try:
            for size in dict.fromkeys(sizes):
                num_slots = sizes.count(size) * num_pages
                self._arenas[size] = (
                    Arena(ledger, MemoryPart.KV_CACHE, num_slots, size)
                    if device is None
                    else device.arena(MemoryPart.KV_CACHE, num_slots, size)
                )
        except LarderError:
            self._close_arenas()
            raise
        self._token_ids: list[int] = []
        self.layers = [
            KvPages(KV_PAGE_TOKENS, home.shape.num_heads, home.shape.head_dim)
            for home in self._homes
        ]
        """The pages of each layer, as attention takes them."""

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
                pages.extend([self._page(self._homes[layer], page)])

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

    def _page(self, home: "_Home", page: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return keys and values of a page of a layer."""
        shape = (KV_PAGE_TOKENS, home.shape.num_heads, home.shape.head_dim)
        length = math.prod(shape)
        slot = page * home.num_layers + home.place
        both = self._arenas[home.page_bytes].tensor(slot).view(torch.float32)
        keys = both[:length].view(shape)
        if home.shape.is_shared:
            return keys, keys
        return keys, both[length : 2 * length].view(shape)


@dataclasses.dataclass(frozen=True, slots=True)
class _Home:
    """Where the pages of one layer lie: its place among the layers that share an arena."""

    shape: KvShape
    page_bytes: int
    place: int
    num_layers: int
