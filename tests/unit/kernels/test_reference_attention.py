"""The reference's attention in pieces of rows: scores of a long prompt take bounded room."""

import pytest
import torch

from runtime.kernels.kv import KvPages
from runtime.kernels.reference import ReferenceKernels
from tests.support.kernel_inputs import random_pages, random_rows

REFERENCE = ReferenceKernels()
TOKENS, ROWS, HEADS, KV_HEADS, WIDTH = 90, 33, 6, 2, 16


@pytest.mark.parametrize("window", [0, 7, 64])
@pytest.mark.parametrize("has_sinks", [False, True])
def test_attention_in_pieces_is_that_of_all_rows(
    monkeypatch: pytest.MonkeyPatch, window: int, has_sinks: bool
) -> None:
    pages, q = random_pages(TOKENS, 16, KV_HEADS, WIDTH), random_rows(ROWS, HEADS, WIDTH)
    sinks = random_rows(HEADS, seed=2) if has_sinks else None
    start = TOKENS - ROWS
    whole = REFERENCE.attention(q, pages, start, scale=0.3, window=window, sinks=sinks)
    rows: list[int] = []
    gather = KvPages.gather

    def noted(self: KvPages, first: int, end: int) -> tuple[torch.Tensor, torch.Tensor]:
        rows.append(end - first)
        return gather(self, first, end)

    monkeypatch.setattr(KvPages, "gather", noted)
    monkeypatch.setattr("runtime.kernels.reference.SCORE_NUMBERS", 5 * HEADS * TOKENS)

    found = REFERENCE.attention(q, pages, start, scale=0.3, window=window, sinks=sinks)

    torch.testing.assert_close(found, whole)
    assert len(rows) == -(-ROWS // 5)
    # What nobody sees is not looked at.
    assert max(rows) == (TOKENS if not window else window + 4)
