"""One token's positional work with its place in a tensor, so that a recording of it stays true.

What is recorded once and run again uses the same memory every time: keys and values in one piece,
seen up to a fixed length of which the end is masked.
"""

import dataclasses

import torch

from runtime.kernels.base import Kernels, RopeTables
from runtime.kernels.kv import KvPages


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class FixedPlace:
    """Where a token stands: its position (int64 ``[1]``, on the device), and how far it looks."""

    position: torch.Tensor
    length: int
    """Above every position that it may have."""

    def rope(self, kernels: Kernels, x: torch.Tensor, tables: RopeTables) -> None:
        """Turn the one row ``x[1, heads, head_dim]`` in place."""
        own = RopeTables(
            tables.cosines.index_select(0, self.position),
            tables.sines.index_select(0, self.position),
            tables.is_interleaved,
        )
        kernels.rope(x, 0, own)

    def store(self, pages: KvPages, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Write the one row ``[1, num_kv_heads, head_dim]`` of keys and values."""
        all_keys, all_values = pages.in_one_piece()
        all_keys.index_copy_(0, self.position, keys)
        if all_values is not all_keys:
            all_values.index_copy_(0, self.position, values)

    def attention(
        self,
        q: torch.Tensor,
        pages: KvPages,
        *,
        scale: float,
        window: int = 0,
        sinks: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Return what ``Kernels.attention`` does for one row: ``[1, heads * head_dim]``."""
        keys, values = (part[: self.length] for part in pages.in_one_piece())
        heads, head_dim = q.shape[1:]
        grouped = q.view(pages.num_kv_heads, heads // pages.num_kv_heads, head_dim)
        scores = torch.einsum("kgd,tkd->kgt", grouped, keys) * scale
        other = torch.arange(self.length, device=q.device)
        is_hidden = other > self.position
        if window > 0:
            is_hidden |= other <= self.position - window
        scores = scores.masked_fill(is_hidden, -torch.inf)
        if sinks is not None:
            own = sinks.view(pages.num_kv_heads, -1, 1)
            scores = torch.cat([scores, own], dim=-1)
        shares = torch.softmax(scores, dim=-1)[..., : self.length]
        return torch.einsum("kgt,tkd->kgd", shares, values).reshape(1, heads * head_dim)
