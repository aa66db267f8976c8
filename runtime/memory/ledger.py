"""The account of the RAM budget: how many bytes each part of the model holds, and the limit."""

from runtime.errors import LarderError
from runtime.protocol.errors import ErrorCode
from runtime.protocol.plan import MemoryPart


class Ledger:
    """Bytes held by kind, never above ``limit_bytes``.

    Whoever allocates takes from the ledger first; a refusal happens before memory is touched. The
    limit may change while memory is held.

    Threads: the engine thread takes and gives back; any thread may read the counts.
    """

    def __init__(self, limit_bytes: int) -> None:
        if limit_bytes < 0:
            raise ValueError(f"a limit of {limit_bytes} bytes")
        self._limit_bytes = limit_bytes
        self._held = dict.fromkeys(MemoryPart, 0)
        self._peak_bytes = 0

    @property
    def limit_bytes(self) -> int:
        """What may be held in total."""
        return self._limit_bytes

    @property
    def held_bytes(self) -> int:
        """What is held now, all kinds together."""
        return sum(self._held.values())

    @property
    def free_bytes(self) -> int:
        """What may still be taken."""
        return self._limit_bytes - self.held_bytes

    @property
    def peak_bytes(self) -> int:
        """The most that was held at any time."""
        return self._peak_bytes

    def set_limit(self, limit_bytes: int) -> None:
        """Let another total be held from now on; what is held must be within it."""
        if limit_bytes < self.held_bytes:
            raise ValueError(f"a limit of {limit_bytes} bytes, {self.held_bytes} are held")
        self._limit_bytes = limit_bytes

    def by_kind(self) -> dict[MemoryPart, int]:
        """Return what each kind holds now."""
        return dict(self._held)

    def take(self, kind: MemoryPart, num_bytes: int) -> None:
        """Count ``num_bytes`` as held; raise ``RAM_BUDGET_TOO_SMALL`` if the limit forbids it."""
        if num_bytes < 0:
            raise ValueError(f"taking {num_bytes} bytes")
        needed_bytes = self.held_bytes + num_bytes
        if needed_bytes > self._limit_bytes:
            raise LarderError(
                ErrorCode.RAM_BUDGET_TOO_SMALL,
                detail=f"{num_bytes} bytes for {kind.value}, {self.free_bytes} left",
                budget_bytes=self._limit_bytes,
                needed_bytes=needed_bytes,
            )
        self._held[kind] += num_bytes
        self._peak_bytes = max(self._peak_bytes, needed_bytes)

    def give_back(self, kind: MemoryPart, num_bytes: int) -> None:
        """Count ``num_bytes`` of a kind as free again; it must have been taken before."""
        if not 0 <= num_bytes <= self._held[kind]:
            raise ValueError(f"giving back {num_bytes} of {self._held[kind]} bytes {kind.value}")
        self._held[kind] -= num_bytes
