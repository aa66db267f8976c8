"""The logits of a model that is loaded, for comparing their bits under two placements."""

from collections.abc import Sequence

import torch

from runtime.generate.loading import LoadedParts


def loaded_logits(parts: LoadedParts, ids: Sequence[int], num_first: int = 5) -> torch.Tensor:
    """Put ``num_first`` tokens through together, then one by one; return what follows each step."""
    parts.kv.truncate(0)
    rows = []
    for piece in (ids[:num_first], *([each] for each in ids[num_first:])):
        parts.experts.begin_step()
        parts.kv.reserve(len(piece))
        hidden = parts.model.forward(piece, parts.kv.num_tokens, parts.kv.layers)
        parts.kv.commit(piece)
        rows.append(parts.model.logits(hidden[-1:]).clone())
    parts.experts.check()
    return torch.cat(rows)
