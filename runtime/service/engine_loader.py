"""The one lazy door to the half of the runtime that needs torch."""

import enum
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.engine.base import CancelToken, Engine
from runtime.engine.script import Script
from runtime.engine.scripted import ScriptedEngine
from runtime.errors import LarderError
from runtime.hardware.past_runs import PastRuns
from runtime.protocol.errors import ErrorCode
from runtime.protocol.plan import PlacementPlan

if TYPE_CHECKING:  # They bring numpy and more.
    from runtime.hardware.card_findings import CardFindings
    from runtime.prepare.calibration import Calibration, CalibrationReport


class EngineKind(enum.StrEnum):
    """The engines there are."""

    TIERED = "tiered"
    SCRIPTED = "scripted"


def make_engine(
    kind: EngineKind,
    script: Script | None = None,
    rates_path: Path | None = None,
    routing_folder: Path | None = None,
    last_use_folder: Path | None = None,
    past_runs_folder: Path | None = None,
) -> Engine:
    """Return an engine without a model; raise ``ENGINE_MISSING`` if its libraries are not there.

    ``rates_path`` is where measured rates are kept, ``routing_folder`` where the routing of what
    is computed is recorded, if anybody asked for that, ``last_use_folder`` where it is kept which
    experts a model used last, ``past_runs_folder`` what its answers took.
    """
    if kind is EngineKind.SCRIPTED:
        return ScriptedEngine(script or Script())
    try:
        from runtime.generate.engine import TieredEngine
        from runtime.generate.last_use import LastUses
    except (ImportError, OSError) as error:  # OSError: a library that torch loads is not there
        raise LarderError(ErrorCode.ENGINE_MISSING, reason=str(error)) from error
    last_uses = None if last_use_folder is None else LastUses(last_use_folder)
    engine = TieredEngine(rates_path=rates_path, routing_folder=routing_folder, last_uses=last_uses)
    engine.past_runs = None if past_runs_folder is None else PastRuns(past_runs_folder)
    return engine


def look_at_cards(known: Collection[str]) -> "CardFindings":
    """Look at cards and links as ``learning.look_at_cards`` does; raises as ``make_engine``."""
    try:
        from runtime.generate.learning import look_at_cards as look
    except (ImportError, OSError) as error:
        raise LarderError(ErrorCode.ENGINE_MISSING, reason=str(error)) from error
    return look(known)


def calibrate(
    plan: PlacementPlan,
    text: str,
    max_tokens: int,
    path: Path,
    progress: "CalibrationReport",
    cancel: CancelToken,
    text_file: Path,
) -> "Calibration":
    """Read a text with a model; raises as ``make_engine`` and ``calibrating.calibrate`` do."""
    try:
        from runtime.generate import calibrating
    except (ImportError, OSError) as error:
        raise LarderError(ErrorCode.ENGINE_MISSING, reason=str(error)) from error
    return calibrating.calibrate(plan, text, max_tokens, path, progress, cancel, text_file)
