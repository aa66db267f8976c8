"""The service: commands in, events out, exactly one closing event for each command."""

import math
import time
from pathlib import PurePath

from runtime.errors import LarderError, report_of
from runtime.protocol.engine_messages import FetchEngine
from runtime.protocol.errors import ErrorCode
from runtime.protocol.figure_messages import DescribeFigures, StateFigure
from runtime.protocol.hub_messages import (
    DescribeHubModel,
    DiscardDownload,
    DownloadModel,
    ForecastModels,
    ReadHubConfigs,
    SearchHub,
)
from runtime.protocol.messages import (
    AnyCommand,
    CancelAccepted,
    CancelRequest,
    CountTokens,
    DescribeMachine,
    FindModels,
    InspectModel,
    LoadModel,
    OpenSession,
    PlanBudgets,
    PlanModel,
    PrepareModel,
    RuntimeStopped,
    SetBudgets,
    StartGeneration,
    StopRuntime,
    TelemetryWatched,
    WatchTelemetry,
    WeighModel,
)
from runtime.protocol.update_messages import CheckForUpdate, FetchUpdate
from runtime.service.desk import Desk
from runtime.service.engine_room import EngineFactory, EngineRoom
from runtime.service.folders import find_folders
from runtime.service.guard import run_guarded
from runtime.service.hub_room import HubRoom
from runtime.service.log import ErrorLog
from runtime.service.memory_watch import Ground, MemoryGauge, MemoryWatch
from runtime.service.planning import Planning
from runtime.service.prepare_room import PrepareRoom
from runtime.service.preparing import Preparer
from runtime.service.requests import OpenRequests, Request, Sink
from runtime.service.sampler import Sampler
from runtime.service.search_room import SearchRoom
from runtime.service.stages import Stage, StageHolder

STOP_TIMEOUT_S = 3.0
"""How long the engine may take to notice that it has to end."""


class Service:
    """Carries out commands on an engine, a planner and a preparer; knows nothing of the channel.

    Threads: ``handle`` and ``close`` belong to one thread, the command thread. The sink is called
    by all threads of the service and must return at once.
    """

    def __init__(
        self,
        engine_factory: EngineFactory,
        sink: Sink,
        planning: Planning,
        prepare: Preparer,
        error_log: ErrorLog | None = None,
        gauge: MemoryGauge | None = None,
    ) -> None:
        """``gauge`` says how much memory the PC has left; without one nothing is looked at."""
        self._error_log = error_log or ErrorLog()
        self._requests = OpenRequests(sink)
        self._stages = StageHolder()
        self._engine_room = EngineRoom(engine_factory, self._stages, self._error_log)
        self._prepare_room = PrepareRoom(prepare, self._error_log)
        self._search_room = SearchRoom(planning, self._error_log)
        self._hub_room = HubRoom(find_folders().cache, self._error_log)
        self._desk = Desk(planning, self._engine_room, self._error_log)
        self._sampler = Sampler(
            self._engine_room.sample, sink, self._error_log, self._stages.is_busy
        )
        ground = Ground(
            planning=planning,
            room=self._engine_room,
            submit=self._desk.submit,
            sink=sink,
            error_log=self._error_log,
        )
        self._memory_watch = None if gauge is None else MemoryWatch(gauge, ground)

    def stage(self) -> Stage:
        """Return what the service is doing."""
        return self._stages.now()

    def handle(self, command: AnyCommand) -> bool:
        """Begin a command; return False after the one that was the last.

        Raises ``LarderError`` with ``FRAME_INVALID`` if the command's id belongs to an open one:
        no answer to it could be told apart.
        """
        request = self._requests.open(command.request_id)
        if request is None:
            raise LarderError(
                ErrorCode.FRAME_INVALID, reason=f"request id {command.request_id} is in use"
            )
        if isinstance(command, StopRuntime):
            self._end([other for other in self._requests.all() if other is not request])
            request.close(RuntimeStopped(request_id=request.request_id))
            return False
        run_guarded(lambda: self._begin(request, command), request.fail, self._error_log)
        return True

    def close(self, timeout_s: float = STOP_TIMEOUT_S) -> bool:
        """Cancel everything and give back the engine; return whether all threads have ended.

        Commands that are still open after that time are closed as failed. May be called twice.
        """
        return self._end(self._requests.all(), timeout_s)

    def _end(self, requests: list[Request], timeout_s: float = STOP_TIMEOUT_S) -> bool:
        self._stages.become(Stage.STOPPING)
        for request in requests:
            request.cancel.cancel()
        deadline = time.monotonic() + timeout_s
        parts = (
            *(() if self._memory_watch is None else (self._memory_watch,)),
            self._sampler,
            self._engine_room,
            self._prepare_room,
            self._desk,
            self._search_room,
            self._hub_room,
        )
        are_ended = [part.finish(max(deadline - time.monotonic(), 0.0)) for part in parts]
        stopped = LarderError(ErrorCode.RUNTIME_ENDED, exit_status=0, reason="stopped")
        for request in requests:
            request.fail(report_of(stopped))
        return all(are_ended)

    def _begin(self, request: Request, command: AnyCommand) -> None:
        match command:
            case CancelRequest():
                self._cancel(request, command)
            case WatchTelemetry():
                self._watch(request, command)
            case LoadModel():
                self._load(request, command)
            case StartGeneration():
                self._stages.begin_generating()
                request.is_cancellable = True
                self._sampler.wake()
                self._engine_room.generate(request, command)
            case PrepareModel():
                self._prepare_room.start(request, command)
            case FindModels():
                self._search_room.start(request, command)
            case (
                SearchHub()
                | DescribeHubModel()
                | ReadHubConfigs()
                | DownloadModel()
                | DiscardDownload()
            ):
                self._hub_room.start(request, command)
            case CheckForUpdate() | FetchUpdate() | FetchEngine():
                self._hub_room.start_update(request, command)
            case SetBudgets():
                self._stages.check_loaded()
                self._sampler.wake()
                self._desk.ask(request, command)
            case (
                InspectModel()
                | WeighModel()
                | PlanModel()
                | PlanBudgets()
                | ForecastModels()
                | DescribeMachine()
                | CountTokens()
                | DescribeFigures()
                | StateFigure()
            ):
                self._desk.ask(request, command)
            case OpenSession() | StopRuntime():
                raise LarderError(
                    ErrorCode.FRAME_INVALID, reason=f"{type(command).__name__} has no place here"
                )

    def _load(self, request: Request, command: LoadModel) -> None:
        """Begin to load, and to look at the PC's memory."""
        self._stages.begin_loading(PurePath(command.plan.model_folder).name)
        request.is_cancellable = True
        self._sampler.wake()
        self._engine_room.load(request, command)
        if self._memory_watch is not None:
            self._memory_watch.start()

    def _cancel(self, request: Request, command: CancelRequest) -> None:
        """Pass the wish on; an unknown, ended or uncancellable target changes nothing."""
        target = self._requests.find(command.target_request_id)
        was_running = target is not None and target.is_cancellable
        if target is not None and was_running:
            target.cancel.cancel()
        request.close(CancelAccepted(request_id=request.request_id, was_running=was_running))

    def _watch(self, request: Request, command: WatchTelemetry) -> None:
        if not (math.isfinite(command.interval_s) and command.interval_s >= 0):
            raise LarderError(
                ErrorCode.SETTING_INVALID,
                name="interval_s",
                found=str(command.interval_s),
                expected="0 or more seconds",
            )
        interval_s = self._sampler.watch(command.interval_s)
        request.close(TelemetryWatched(request_id=request.request_id, interval_s=interval_s))
