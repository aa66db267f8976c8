"""Periodic measurements, sent only while somebody watches; the newest replaces the older."""

from runtime.protocol.values import TierCount, Value


class TelemetrySample(Value):
    """What happened in one interval; all amounts are of that interval alone."""

    interval_s: float
    num_dropped: int
    """Samples that were made and never sent because the pipe was full."""
    num_tokens: int
    decode_tokens_per_s: float
    tiers: list[TierCount]
    drive_bytes_read: int
    seconds: dict[str, float]
    """Engine time by cause: ``compute``, ``drive_wait``, ``other``."""
    resident_bytes: int
    ram_by_kind: dict[str, int]
    """Bytes held now by ``dense``, ``experts``, ``kv_cache``, ``work``."""
