"""Attention keys and values of one layer, in pages that somebody else owns."""

from collections.abc import Sequence

import torch

from runtime.kernels.matrix import CPU


class KvPages:
    """The KV pages of one layer in the order of their positions.

    Position ``p`` lies in row ``p % page_tokens`` of page ``p // page_tokens``; each page is a
    contiguous f32 tensor ``[page_tokens, num_kv_heads, head_dim]``, one for keys, one for values::

        keys    [page 0][page 1][page 2]      positions 0..page_tokens-1, page_tokens.., ...
        values  [page 0][page 1][page 2]

    A layer whose values are its keys has the same tensor for both. Pages are added at the end and
    dropped from the end; their addresses are looked up once. ``device`` is where they lie.
    """

    def __init__(
        self, page_tokens: int, num_kv_heads: int, head_dim: int, device: str = CPU
    ) -> None:
        self.device = device
        self.whole: tuple[torch.Tensor, torch.Tensor] | None = None
        """Keys and values of all positions there will ever be, where they lie in one piece."""
        self.page_tokens = page_tokens
        self.num_kv_heads = num_kv_heads
        self.head_dim = head_dim
        self.keys: list[torch.Tensor] = []
        self.values: list[torch.Tensor] = []
        self.key_addresses: list[int] = []
        self.value_addresses: list[int] = []

    @property
    def capacity_tokens(self) -> int:
        """Positions that the present pages can hold."""
        return len(self.keys) * self.page_tokens

    def extend(self, pages: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> None:
        """Add pages (keys, values) at the end."""
        shape = (self.page_tokens, self.num_kv_heads, self.head_dim)
        for keys, values in pages:
            for page in (keys, values):
                if tuple(page.shape) != shape or page.dtype is not torch.float32:
                    raise ValueError(f"a page is f32 {shape}, not {page.dtype} {page.shape}")
                if not page.is_contiguous():
                    raise ValueError("a page is contiguous")
            self.keys.append(keys)
            self.values.append(values)
            self.key_addresses.append(keys.data_ptr())
            self.value_addresses.append(values.data_ptr())

    def gather(self, first: int, end: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return keys and values of positions from ``first`` up to ``end``, perhaps copied."""
        if self.whole is not None:
            return self.whole[0][first:end], self.whole[1][first:end]
        begin, last = first // self.page_tokens, -(-end // self.page_tokens)
        here = slice(first - begin * self.page_tokens, end - begin * self.page_tokens)
        keys = torch.cat(self.keys[begin:last])[here]
        return keys, torch.cat(self.values[begin:last])[here]

    def in_one_piece(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return keys and values ``[positions, num_kv_heads, head_dim]``, which must lie so."""
        assert self.whole is not None, "these pages lie apart"
        return self.whole

    def truncate(self, num_pages: int) -> None:
        """Drop all pages from number ``num_pages`` on."""
        for pages in (self.keys, self.values, self.key_addresses, self.value_addresses):
            del pages[num_pages:]
