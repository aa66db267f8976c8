"""The only place that decides what a service is made of."""

import dataclasses
import functools
from pathlib import Path

from runtime.engine.script import Script, read_script
from runtime.service.engine_loader import EngineKind, make_engine
from runtime.service.folders import find_folders
from runtime.service.log import ErrorLog
from runtime.service.prepare_child import ChildPreparer
from runtime.service.requests import Sink
from runtime.service.scripted import ScriptedPlanning
from runtime.service.service import Service


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WorkshopOptions:
    """What a service is made of."""

    engine: EngineKind = EngineKind.TIERED
    script: Path | None = None
    """File with what the scripted engine does."""
    tokens_per_s: float | None = None
    """Rate of the scripted engine in place of its script's."""
    is_in_terminal: bool = False
    """Whether preparing happens in this process: true for ``larderctl``, which is the child."""
    routing_folder: Path | None = None
    """Where the tiered engine records which experts are chosen; None records nothing."""


def make_service(options: WorkshopOptions, error_log: ErrorLog, sink: Sink) -> Service:
    """Return the service of a background process or of ``larderctl``."""
    if options.engine is EngineKind.SCRIPTED:
        script = _read_script(options)
        factory = functools.partial(make_engine, options.engine, script)
        scripted = ScriptedPlanning(script)
        return Service(factory, sink, scripted, scripted.prepare, error_log)
    # Late, so that the channel is open before the first model is looked at.
    from runtime.service.local_planning import PAST_RUNS, LocalPlanning
    from runtime.service.local_preparing import LocalPreparer
    from runtime.service.memory_gauge import LocalGauge
    from runtime.service.prepared_places import PreparedPlaces

    folders = find_folders()
    data_folder = folders.data
    places = PreparedPlaces(data_folder)
    prepare = LocalPreparer(data_folder, places) if options.is_in_terminal else ChildPreparer()
    rates_path = folders.cache / "rates.json"
    factory = functools.partial(
        make_engine,
        options.engine,
        rates_path=rates_path,
        routing_folder=options.routing_folder,
        last_use_folder=folders.cache / "last-use",
        past_runs_folder=folders.cache / PAST_RUNS,
    )
    planning = LocalPlanning(places, rates_path)
    return Service(factory, sink, planning, prepare, error_log, LocalGauge())


def _read_script(options: WorkshopOptions) -> Script:
    script = Script() if options.script is None else read_script(options.script)
    if options.tokens_per_s is None:
        return script
    return dataclasses.replace(script, decode_tokens_per_s=options.tokens_per_s)
