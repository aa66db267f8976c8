"""The only place that decides what a service is made of."""

import dataclasses
import functools
from pathlib import Path

from runtime.engine.script import Script, read_script
from runtime.errors import LarderError
from runtime.protocol.errors import ErrorCode
from runtime.service.engine_loader import EngineKind, make_engine
from runtime.service.log import ErrorLog
from runtime.service.requests import Sink
from runtime.service.scripted import ScriptedPlanning
from runtime.service.service import Service


def make_service(
    kind: EngineKind,
    script_path: Path | None,
    tokens_per_s: float | None,
    error_log: ErrorLog,
    sink: Sink,
) -> Service:
    """Return the service of a background process or of ``larderctl``."""
    if kind is EngineKind.SCRIPTED:
        script = Script() if script_path is None else read_script(script_path)
        if tokens_per_s is not None:
            script = dataclasses.replace(script, decode_tokens_per_s=tokens_per_s)
        planning = ScriptedPlanning(script)
        factory = functools.partial(make_engine, kind, script)
        return Service(factory, sink, planning, planning.prepare, error_log)
    raise LarderError(ErrorCode.ENGINE_MISSING, reason="it is not part of this version")
