"""What an engine tells in words while a model is loaded."""

from runtime.inspect.files import shown
from runtime.protocol.telemetry import NoteCode, RuntimeNote
from runtime.protocol.values import Tier
from runtime.residency.watch import StalledRead


def budget_note(tier: Tier, old_bytes: int, new_bytes: int) -> RuntimeNote:
    """Return the note that a budget has changed."""
    return RuntimeNote(
        code=NoteCode.BUDGET_CHANGED,
        parameters={"tier": tier.value, "old_bytes": old_bytes, "new_bytes": new_bytes},
    )


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
