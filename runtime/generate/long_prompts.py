"""Long prompts of models larger than their RAM: more tokens at once, in the room of some experts.

A prompt needs nearly all experts of every layer, and those that are absent are read once for each
chunk. A chunk of more tokens needs larger work buffers. While such a prompt is computed some expert
slots give way to them::

    usual      | dense | experts in slots               | KV | work |
    a prompt   | dense | experts in slots        | KV | larger work |
"""

import contextlib
import dataclasses
import logging
from collections.abc import Iterator

from runtime.errors import LarderError
from runtime.generate.loading import LoadedParts
from runtime.spec.footprint import prefill_chunk_tokens, work_bytes
from runtime.spec.ram_slots import even_slots, ram_experts_bytes, ram_slots_within

_LOG = logging.getLogger(__name__)
MAX_CHUNK_TOKENS = 2048
"""Most prompt tokens that go through the layers together where experts are read for them."""
GIVEN_SHARE = 4
"""At most one slot in so many gives way."""
MIN_SAVED_SHARE = 0.25
"""Part of a prompt's reads that must be saved: less is not worth a change."""


@dataclasses.dataclass(frozen=True, slots=True)
class Loan:
    """What a prompt takes: so many tokens at once, for which some slots give way."""

    chunk_tokens: int
    slots_per_layer: tuple[int, ...]
    """Meanwhile; those that there are where the larger work has room beside them."""


@contextlib.contextmanager
def room_for_prompt(parts: LoadedParts, num_tokens: int) -> Iterator[None]:
    """Let a prompt of so many new tokens go through in larger chunks, where that saves reads.

    The slots are there again afterwards, or after ``end_loan``; begins and ends between two steps.
    """
    loan = loan_for(parts, num_tokens)
    try:
        if loan is not None:
            before = parts.experts.slots_per_layer
            if loan.slots_per_layer != before:
                parts.experts.resize(loan.slots_per_layer, parts.ledger.limit_bytes)
                parts.slots_before_loan = before
            parts.home.widen(loan.chunk_tokens)
        yield
    finally:
        end_loan(parts)


def end_loan(parts: LoadedParts) -> None:
    """Give what a prompt was lent back to the experts, which are read again in the background."""
    parts.home.narrow()
    before, parts.slots_before_loan = parts.slots_before_loan, ()
    if not before:
        return
    try:
        parts.experts.resize(before, parts.ledger.limit_bytes)
    except LarderError as error:
        # The answer goes on with fewer experts in RAM.
        num_slots = sum(before) - sum(parts.experts.slots_per_layer)
        _LOG.warning("%d slots that a prompt was lent did not come back: %s", num_slots, error)


def loan_for(parts: LoadedParts, num_tokens: int) -> Loan | None:
    """Return what a prompt would gain from, None if it is as well off without."""
    spec, home, experts = parts.spec, parts.home, parts.experts
    usual = home.chunk_tokens
    num_all = len(spec.moe_layers) * spec.num_experts
    slots = experts.slots_per_layer
    num_here = sum(slots)
    if home.device is not None or num_tokens <= usual or num_here >= num_all:
        return None
    context_tokens = parts.kv.context_tokens
    held_bytes = work_bytes(spec, context_tokens, usual)
    free_bytes = parts.ledger.free_bytes
    experts_bytes = ram_experts_bytes(spec, experts.records, slots)
    fewest = even_slots(num_here - num_here // GIVEN_SHARE, len(slots))
    given_bytes = experts_bytes - ram_experts_bytes(spec, experts.records, fewest)
    room_bytes = held_bytes + free_bytes + max(0, given_bytes)
    most = min(num_tokens, MAX_CHUNK_TOKENS)
    num_chunks = -(-num_tokens // prefill_chunk_tokens(spec, context_tokens, room_bytes, most))
    chunk_tokens = -(-num_tokens // num_chunks)
    more_bytes = work_bytes(spec, context_tokens, chunk_tokens) - held_bytes - free_bytes
    kept = slots
    if more_bytes > 0:
        num_kept = ram_slots_within(spec, experts.records, experts_bytes - more_bytes)
        kept = tuple(even_slots(min(num_here, num_kept), len(slots)))
    num_slots = num_here - sum(kept)
    num_absent = num_all - num_here
    usual_reads = -(-num_tokens // usual) * num_absent
    # Who gives way is read for each chunk, and once more afterwards.
    num_reads = num_chunks * (num_absent + num_slots) + num_slots
    if num_reads > (1 - MIN_SAVED_SHARE) * usual_reads:
        return None
    return Loan(chunk_tokens, kept)
