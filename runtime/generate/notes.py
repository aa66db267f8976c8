"""What an engine tells in words while a model is loaded."""

from runtime.inspect.files import shown
from runtime.protocol.plan import PlacementPlan, ReasonCode
from runtime.protocol.telemetry import NoteCode, RuntimeNote
from runtime.protocol.values import Tier
from runtime.residency.watch import StalledRead


def budget_note(tier: Tier, old_bytes: int, new_bytes: int) -> RuntimeNote:
    """Return the note that a budget has changed."""
    return RuntimeNote(
        code=NoteCode.BUDGET_CHANGED,
        parameters={"tier": tier.value, "old_bytes": old_bytes, "new_bytes": new_bytes},
    )


def card_unpacks_note() -> RuntimeNote:
    """Return the note that the card has no kernels for packed weights."""
    return RuntimeNote(code=NoteCode.CARD_UNPACKS)


def card_starts_pieces_note() -> RuntimeNote:
    """Return the note that layers are not started as one on the card."""
    return RuntimeNote(code=NoteCode.CARD_STARTS_PIECES)


def card_full_note(old_bytes: int, new_bytes: int) -> RuntimeNote:
    """Return the note that the card's budget was lowered, since the card was full."""
    return RuntimeNote(
        code=NoteCode.CARD_FULL, parameters={"old_bytes": old_bytes, "new_bytes": new_bytes}
    )


def pressure_note(before: PlacementPlan, after: PlacementPlan) -> RuntimeNote | None:
    """Return the note that RAM followed what other programs need, None if it did not."""
    codes = {reason.code for reason in after.reasons}
    if not codes & {ReasonCode.RAM_GIVEN_BACK, ReasonCode.RAM_TAKEN_AGAIN}:
        return None
    is_less = after.ram_bytes < before.ram_bytes
    return RuntimeNote(
        code=NoteCode.MEMORY_GIVEN_BACK if is_less else NoteCode.MEMORY_TAKEN_AGAIN,
        parameters={"old_bytes": before.ram_bytes, "new_bytes": after.ram_bytes},
    )


def loaded_note(num_experts: int, seconds: float) -> RuntimeNote:
    """Return the note that loading in the background has ended."""
    return RuntimeNote(
        code=NoteCode.EXPERTS_LOADED,
        parameters={"num_experts": num_experts, "seconds": seconds},
    )


def topic_note(num_experts: int) -> RuntimeNote:
    """Return the note that an answer needs other experts now."""
    return RuntimeNote(code=NoteCode.TOPIC_CHANGED, parameters={"num_experts": num_experts})


def stall_note(stalled: StalledRead) -> RuntimeNote:
    """Return the note that the drive does not answer a read."""
    return RuntimeNote(
        code=NoteCode.DRIVE_STALLED,
        parameters={
            "file": shown(stalled.file),
            "offset_bytes": stalled.offset_bytes,
            "layer": stalled.expert.layer,
            "expert": stalled.expert.expert,
            "seconds": stalled.seconds,
        },
    )
