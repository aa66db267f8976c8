"""The protocol over a real pipe: the scripted engine, and children that misbehave."""

import json
from pathlib import Path

import psutil
import pytest
from pytestqt.qtbot import QtBot

from app.link.client import MAX_SILENCE_S, MAX_START_S, RuntimeClient, RuntimeEnd
from app.link.process import RuntimeCommand, RuntimeProcess, RuntimeState
from runtime.protocol.chat import ChatMessage, FinishReason, Role
from runtime.protocol.errors import ErrorCode
from runtime.protocol.framing import FrameError
from runtime.protocol.messages import (
    AnyEvent,
    DescribeMachine,
    GenerationFinished,
    InspectModel,
    LoadModel,
    MachineDescribed,
    ModelInspected,
    ModelLoaded,
    ModelPlanned,
    PlanModel,
    Reply,
    StartGeneration,
    TokensGenerated,
)
from tests.gui.link.conftest import MakeProcess

WAIT_MS = 30_000


class Clock:
    """A monotonic time that the test moves."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def end_of(client: RuntimeClient, qtbot: QtBot) -> RuntimeEnd:
    """Start and wait for the end."""
    with qtbot.waitSignal(client.ended, timeout=WAIT_MS) as ended:
        client.start()
    assert ended.args is not None
    end = ended.args[0]
    assert isinstance(end, RuntimeEnd)
    return end


def code_of(end: RuntimeEnd) -> ErrorCode:
    assert end.error is not None
    return end.error.code


def open_client(client: RuntimeClient, qtbot: QtBot) -> None:
    with qtbot.waitSignal(client.opened, timeout=WAIT_MS):
        client.start()
    assert client.is_open


class TestScripted:
    def test_model_is_inspected_planned_loaded_and_asked(
        self, make_scripted: MakeProcess, qtbot: QtBot, tmp_path: Path
    ) -> None:
        script = tmp_path / "script.json"
        script.write_text(
            json.dumps({"answers": ["one two three"], "load_s": 0, "decode_tokens_per_s": 0})
        )
        client = RuntimeClient(make_scripted("--script", str(script)))
        assert client.is_stopped
        open_client(client, qtbot)
        client.start()
        heard: list[Reply] = []
        everything: list[AnyEvent] = []
        client.event_received.connect(everything.append)
        folder = str(tmp_path)
        client.send(lambda i: InspectModel(request_id=i, folder=folder), heard.append)
        qtbot.waitUntil(lambda: len(heard) == 1, timeout=WAIT_MS)
        assert isinstance(heard[0], ModelInspected)
        client.send(lambda i: PlanModel(request_id=i, folder=folder), heard.append)
        qtbot.waitUntil(lambda: len(heard) == 2, timeout=WAIT_MS)
        planned = heard[1]
        assert isinstance(planned, ModelPlanned)
        client.send(lambda i: LoadModel(request_id=i, plan=planned.plans[0]), heard.append)
        qtbot.waitUntil(lambda: isinstance(heard[-1], ModelLoaded), timeout=WAIT_MS)
        question = [ChatMessage(role=Role.USER, text="count")]
        client.send(lambda i: StartGeneration(request_id=i, conversation=question), heard.append)
        qtbot.waitUntil(lambda: isinstance(heard[-1], GenerationFinished), timeout=WAIT_MS)
        last = heard[-1]
        assert isinstance(last, GenerationFinished)
        assert last.reason is FinishReason.STOP
        text = "".join(event.text for event in heard if isinstance(event, TokensGenerated))
        assert text == "one two three"
        assert [event for event in everything if isinstance(event, Reply)] == heard
        with qtbot.waitSignal(client.ended, timeout=WAIT_MS) as ended:
            client.stop()
        assert ended.args is not None
        assert ended.args[0].error is None
        assert client.is_stopped

    def test_crash_is_told_with_its_cause_and_the_next_start_works(
        self, make_scripted: MakeProcess, qtbot: QtBot, tmp_path: Path
    ) -> None:
        process = make_scripted()
        client = RuntimeClient(process)
        open_client(client, qtbot)
        with qtbot.waitSignal(client.ended, timeout=WAIT_MS) as ended:
            psutil.Process(process.process_id).kill()
        assert ended.args is not None
        error = ended.args[0].error
        assert error.code is ErrorCode.RUNTIME_ENDED
        assert error.parameters["reason"] == "signal 9"
        assert "runtime started" in error.detail
        open_client(client, qtbot)
        heard: list[Reply] = []
        client.send(lambda i: DescribeMachine(request_id=i), heard.append)
        qtbot.waitUntil(lambda: len(heard) == 1, timeout=WAIT_MS)
        assert isinstance(heard[0], MachineDescribed)
        client.end_now()

    def test_command_that_is_too_long_is_refused_and_nothing_is_sent(
        self, make_scripted: MakeProcess, qtbot: QtBot
    ) -> None:
        client = RuntimeClient(make_scripted())
        open_client(client, qtbot)
        long = "x" * (17 << 20)
        with pytest.raises(FrameError):
            client.send(lambda i: InspectModel(request_id=i, folder=long), lambda _: None)
        heard: list[Reply] = []
        client.send(lambda i: DescribeMachine(request_id=i), heard.append)
        qtbot.waitUntil(lambda: len(heard) == 1, timeout=WAIT_MS)
        client.end_now()

    def test_command_without_a_runtime_is_not_sent(self, make_scripted: MakeProcess) -> None:
        client = RuntimeClient(make_scripted())
        sent = client.send(lambda i: DescribeMachine(request_id=i), lambda _: None)
        assert sent is None

    def test_stop_by_force_is_a_wanted_end(self, make_fake: MakeProcess, qtbot: QtBot) -> None:
        client = RuntimeClient(make_fake("stubborn"))
        open_client(client, qtbot)
        with qtbot.waitSignal(client.ended, timeout=WAIT_MS) as ended:
            client.stop(at_once=True)
        assert ended.args is not None
        assert ended.args[0].error is None


class TestMisbehaving:
    @pytest.mark.parametrize(
        ("way", "code"),
        [
            ("garbage", ErrorCode.FRAME_INVALID),
            ("endless", ErrorCode.FRAME_INVALID),
            ("printing", ErrorCode.FRAME_INVALID),
            ("confused", ErrorCode.FRAME_INVALID),
            ("older", ErrorCode.PROTOCOL_MISMATCHED),
            ("refusing", ErrorCode.INTERNAL),
            ("failing", ErrorCode.INTERNAL),
            ("exiting", ErrorCode.RUNTIME_ENDED),
            ("killed", ErrorCode.RUNTIME_ENDED),
        ],
    )
    def test_child_that_misbehaves_ends_with_its_code(
        self, make_fake: MakeProcess, qtbot: QtBot, way: str, code: ErrorCode
    ) -> None:
        process = make_fake(way)
        client = RuntimeClient(process)
        end = end_of(client, qtbot)
        assert code_of(end) is code
        assert not client.is_open
        assert process.process_id == 0

    def test_program_that_is_not_there_is_not_started(self, qtbot: QtBot) -> None:
        client = RuntimeClient(RuntimeProcess(RuntimeCommand(program=("/no/such/program",))))
        end = end_of(client, qtbot)
        assert code_of(end) is ErrorCode.RUNTIME_NOT_STARTED

    def test_silent_child_is_given_up(self, make_fake: MakeProcess, qtbot: QtBot) -> None:
        clock = Clock()
        client = RuntimeClient(make_fake("silent"), clock=clock)
        open_client(client, qtbot)
        client._watch.stop()
        with qtbot.waitSignal(client.ended, timeout=WAIT_MS) as ended:
            for _ in range(round(MAX_SILENCE_S) + 1):
                assert client.is_open
                clock.now_s += 1.0
                client._on_tick()
        assert ended.args is not None
        error = ended.args[0].error
        assert error.code is ErrorCode.RUNTIME_SILENT
        assert error.parameters == {"seconds": 11}

    def test_child_that_never_speaks_is_given_more_time(
        self, make_fake: MakeProcess, qtbot: QtBot
    ) -> None:
        clock = Clock()
        process = make_fake("dumb")
        client = RuntimeClient(process, clock=clock)
        client.start()
        qtbot.waitUntil(lambda: process.state is RuntimeState.RUNNING)
        client._watch.stop()
        with qtbot.waitSignal(client.ended, timeout=WAIT_MS) as ended:
            for second in range(round(MAX_START_S) + 1):
                assert client._error is None, second
                clock.now_s += 1.0
                client._on_tick()
        assert ended.args is not None
        assert ended.args[0].error.code is ErrorCode.RUNTIME_SILENT

    def test_window_that_slept_does_not_blame_the_runtime(
        self, make_fake: MakeProcess, qtbot: QtBot
    ) -> None:
        clock = Clock()
        client = RuntimeClient(make_fake("silent"), clock=clock)
        open_client(client, qtbot)
        client._watch.stop()
        clock.now_s += 3600.0
        client._on_tick()
        clock.now_s += 1.0
        client._on_tick()
        assert client.is_open
        client.end_now()
