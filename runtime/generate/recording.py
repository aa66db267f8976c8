"""Recording the routing of a loaded model, where a person asked for it."""

import logging
from collections.abc import Iterator
from pathlib import Path

from runtime.engine.base import EngineEvent
from runtime.errors import LarderError
from runtime.generate.loading import LoadedParts
from runtime.protocol.messages import GenerationCancelled, GenerationFinished
from runtime.simulate.recorder import RoutingRecorder

_LOG = logging.getLogger(__name__)


def record_routing(parts: LoadedParts, folder: Path) -> None:
    """Let a folder take which experts are chosen from now on; close the model if it cannot.

    A model without experts has nothing to record.
    """
    spec = parts.spec
    if not spec.moe_layers:
        return
    try:
        parts.experts.recorder = RoutingRecorder(
            folder, parts.name, spec.num_experts, spec.moe_layers, spec.top_k
        )
    except LarderError:
        parts.close()
        raise


def recorded(parts: LoadedParts, events: Iterator[EngineEvent]) -> Iterator[EngineEvent]:
    """Pass on the events of an answer; what it chose is written before the last of them.

    Raises ``DISK_NOT_WRITABLE`` there, so that nobody takes a recording for whole that is not.
    """
    recorder = parts.experts.recorder
    for event in events:
        if recorder is not None and isinstance(event, GenerationFinished | GenerationCancelled):
            recorder.end_sequence()
        yield event


def end_recording(parts: LoadedParts) -> None:
    """Write what waits; what cannot be written any more is told in the log."""
    if parts.experts.recorder is None:
        return
    try:
        parts.experts.recorder.end_sequence()
    except LarderError as error:
        _LOG.warning("the end of the recorded routing is lost: %s", error.detail or error.code)
