"""What a memory of this PC is taken by: the loaded model by kind, others, what stays free. Pure."""

import dataclasses
import enum
from collections.abc import Mapping

from app.state.budget_range import BudgetRange
from runtime.protocol.plan import MemoryPart

_OURS = (MemoryPart.EXPERTS, MemoryPart.DENSE, MemoryPart.KV_CACHE, MemoryPart.WORK)


class MemoryKind(enum.Enum):
    """Who holds a part, in the order in which parts are drawn; ours first."""

    EXPERTS = "experts"
    DENSE = "dense"
    KV_CACHE = "kv_cache"
    WORK = "work"
    PROGRAM = "program"
    """The background process itself."""
    OTHERS = "others"
    """Other programs, as it was when the background process started."""
    RESERVE = "reserve"
    FREE = "free"


@dataclasses.dataclass(frozen=True, slots=True)
class MemoryMap:
    """One memory; the parts sum to ``total_bytes`` or, where it is overdrawn, to more."""

    total_bytes: int
    parts: dict[MemoryKind, int]


def memory_map(
    bounds: BudgetRange, by_kind: Mapping[str, int], program_bytes: int = 0
) -> MemoryMap:
    """Return who holds what of a memory; ``by_kind`` is named by ``MemoryPart``."""
    parts = {MemoryKind(part.value): by_kind.get(part.value, 0) for part in _OURS}
    parts[MemoryKind.PROGRAM] = program_bytes
    left = bounds.total_bytes - sum(parts.values())
    for kind, num_bytes in (
        (MemoryKind.OTHERS, bounds.others_bytes),
        (MemoryKind.RESERVE, bounds.reserve_bytes),
    ):
        # What others hold may have become less since it was counted.
        parts[kind] = max(0, min(num_bytes, left))
        left -= parts[kind]
    parts[MemoryKind.FREE] = max(0, left)
    return MemoryMap(bounds.total_bytes, parts)
