"""Periodic measurements, sent only while somebody watches; the newest replaces the older."""

import enum

from runtime.protocol.values import EnergyPart, TierCount, Value


class ExpertMap(Value):
    """What each expert of each MoE layer is and does, one byte each, layer after layer.

    The first three have ``num_layers`` x ``num_experts`` bytes; ``tier`` and ``bits`` are empty
    where they are as in the map before.
    """

    num_layers: int
    num_experts: int
    use: bytes
    """Uses in the last minute or so on a log scale: round(16 x log2(1 + uses)), at most 255."""
    tier: bytes = b""
    """0 VRAM, 1 RAM, 2 drive."""
    bits: bytes = b""
    """Stored bits of a weight, scales left out: 4, 8, 16 or 32."""
    layer_hits: bytes = b""
    """For each layer the parts of its look-ups in the last minute or so that VRAM, RAM and the
    drive answered, three bytes in which 255 is all; of a layer without look-ups all are 0."""


class NoteCode(enum.StrEnum):
    """What can happen while a model is loaded that a person should see in words."""

    BUDGET_CHANGED = "budget_changed"
    """Parameters ``tier``, ``old_bytes``, ``new_bytes``."""
    CARD_UNPACKS = "card_unpacks"
    """The card has no kernels for packed weights: Triton is not installed, or is no use there."""
    CARD_STARTS_PIECES = "card_starts_pieces"
    """A layer's fixed part could not be recorded on the card, or came to something else."""
    CARD_FULL = "card_full"
    """Parameters ``old_bytes``, ``new_bytes``: the card had less memory than its budget, which was
    lowered."""
    MEMORY_GIVEN_BACK = "memory_given_back"
    """Parameters ``old_bytes``, ``new_bytes`` of RAM: other programs needed it."""
    MEMORY_TAKEN_AGAIN = "memory_taken_again"
    """The same, once there was room."""
    EXPERTS_LOADED = "experts_loaded"
    """Parameters ``num_experts``, ``seconds``: loading in the background ended."""
    TOPIC_CHANGED = "topic_changed"
    """Parameters ``num_experts``: experts exchanged within one answer, many more than usual."""
    DRIVE_STALLED = "drive_stalled"
    """Parameters ``file``, ``offset_bytes``, ``layer``, ``expert``, ``seconds``: a read is waited
    for that the drive does not answer."""


class RuntimeNote(Value):
    """One thing that happened."""

    code: NoteCode
    parameters: dict[str, str | int | float] = {}


class RateLimits(Value):
    """What the hardware could move at most, in bytes per second; 0 where it is not known."""

    ram_read: float = 0.0
    link: float = 0.0
    drive: float = 0.0


class HintCount(Value):
    """What became of experts that were read ahead because they were guessed to be needed."""

    useful: int = 0
    """There before they were needed."""
    late: int = 0
    """Still being read when they were needed."""
    wasted: int = 0
    """Read and not needed."""


class MachineStrain(Value):
    """What the machine is put through; None where the system does not tell."""

    own_bytes_written: int | None = None
    """To drives by the background process and what it started, since it loaded the model."""
    drive_bytes_written: int | None = None
    """To the drive that holds the model by all programs, since then."""
    drive_temperature_c: float | None = None
    """Degrees Celsius of that drive."""
    processor_temperature_c: float | None = None
    card_temperature_c: float | None = None
    """Of the warmest graphics card."""


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
    """Engine time by cause: ``compute``, ``device``, ``drive_wait``, ``other``."""
    resident_bytes: int
    ram_by_kind: dict[str, int]
    """Bytes held now by ``dense``, ``experts``, ``kv_cache``, ``work``."""
    vram_by_kind: dict[str, int] = {}
    """The same on the device in use."""
    link_bytes: int = 0
    """Copied to the device."""
    ram_bytes_read: int = 0
    """Weights that the processor read from RAM."""
    limits: RateLimits = RateLimits()
    energy: list[EnergyPart] = []
    """Joules of this interval by source."""
    hints: HintCount = HintCount()
    strain: MachineStrain = MachineStrain()
    experts: ExpertMap | None = None
    notes: list[RuntimeNote] = []

    @property
    def is_working(self) -> bool:
        """Whether something was written, read or copied."""
        return bool(
            self.num_tokens or self.ram_bytes_read or self.drive_bytes_read or self.link_bytes
        )
