"""The channel's contract, kept by a real background process with the scripted engine."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from runtime.engine.script import Script
from runtime.protocol.errors import ErrorCode
from runtime.protocol.messages import (
    CancelAccepted,
    CancelRequest,
    GenerationCancelled,
    GenerationFinished,
    HeartbeatSent,
    InspectModel,
    ModelInspected,
    OpenSession,
    RuntimeFailed,
    RuntimeStopped,
    StopRuntime,
    TelemetrySampled,
    TokensGenerated,
    WatchTelemetry,
)
from runtime.protocol.version import PROTOCOL_VERSION
from runtime.service.channel import ExitStatus
from tests.support.runtime_process import (
    ROOT,
    RuntimeProcess,
    is_alive,
    running_runtime,
    service_command,
    wait_until_gone,
)
from tests.support.scripted import ask

UNREAD_S = 6.0
LEAVE_S = 5.0
"""The promise: the runtime is gone this soon after its window."""


def write_script(folder: Path, script: Script) -> str:
    path = folder / "script.json"
    path.write_bytes(msgspec.json.encode(script))
    return str(path)


def endless(folder: Path) -> tuple[str, str]:
    script = Script(answers=("word " * 100_000,), load_s=0, context_tokens=1_000_000)
    return "--script", write_script(folder, script)


def test_process_with_a_whole_session_answers_and_stops(tmp_path: Path) -> None:
    with running_runtime(tmp_path, "--rate", "500") as runtime:
        opened = runtime.open()
        assert opened.process_id == runtime.process.pid
        runtime.load_first(tmp_path)
        runtime.send(ask(4, "script: say The capital of France is Paris."))
        texts = []
        while not isinstance(event := runtime.next_event(), GenerationFinished):
            if isinstance(event, TokensGenerated):
                texts.append(event.text)
        assert "".join(texts) == "The capital of France is Paris."
        runtime.send(StopRuntime(request_id=5))
        assert runtime.rest()[-1] == RuntimeStopped(request_id=5)
        assert runtime.wait() == ExitStatus.ENDED


def test_process_cancel_ends_an_endless_answer(tmp_path: Path) -> None:
    with running_runtime(tmp_path, *endless(tmp_path)) as runtime:
        runtime.open()
        runtime.load_first(tmp_path)
        runtime.send(ask(4))
        runtime.wait_for(TokensGenerated)
        runtime.send(CancelRequest(request_id=5, target_request_id=4))
        assert runtime.wait_for(CancelAccepted).was_running
        assert runtime.wait_for(GenerationCancelled).stats.generated_tokens >= 1


def test_process_while_the_engine_works_still_answers_and_beats(tmp_path: Path) -> None:
    with running_runtime(tmp_path) as runtime:
        runtime.open()
        runtime.load_first(tmp_path)
        runtime.send(ask(4, "script: hang 1"))
        runtime.wait_for(TokensGenerated)
        runtime.send(InspectModel(request_id=5, folder=str(tmp_path)))
        assert runtime.wait_for(ModelInspected).request_id == 5
        assert runtime.wait_for(HeartbeatSent).uptime_s > 0


def test_process_with_the_channel_closed_leaves_although_the_engine_hangs(tmp_path: Path) -> None:
    with running_runtime(tmp_path) as runtime:
        runtime.open()
        runtime.load_first(tmp_path)
        runtime.send(ask(4, "script: hang 1"))
        runtime.wait_for(TokensGenerated)
        runtime.close_input()
        runtime.wait(LEAVE_S)


def test_process_with_the_channel_closed_while_answering_leaves_in_order(tmp_path: Path) -> None:
    with running_runtime(tmp_path, *endless(tmp_path)) as runtime:
        runtime.open()
        runtime.load_first(tmp_path)
        runtime.send(ask(4))
        runtime.wait_for(TokensGenerated)
        runtime.close_input()
        assert isinstance(runtime.rest()[-1], GenerationCancelled)
        assert runtime.wait(LEAVE_S) == ExitStatus.ENDED


def test_process_that_nobody_reads_leaves_when_its_output_is_closed(tmp_path: Path) -> None:
    with running_runtime(tmp_path) as runtime:
        runtime.open()
        assert runtime.process.stdout is not None
        runtime.process.stdout.close()
        runtime.wait(LEAVE_S + 2.0)


def parent_command(folder: Path, stdin: str, stdout: str) -> list[str]:
    """Return the command of a process that starts the runtime, tells its id, and waits."""
    code = (
        "import subprocess, sys\n"
        f"child = subprocess.Popen(sys.argv[1:], stdin={stdin}, stdout={stdout})\n"
        "print(child.pid, flush=True)\n"
        "child.wait()\n"
    )
    return [sys.executable, "-c", code, *service_command(folder / "runtime.log")]


def test_process_with_its_parent_killed_is_gone_in_time(tmp_path: Path) -> None:
    command = parent_command(tmp_path, "subprocess.PIPE", "subprocess.DEVNULL")
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as parent:
        assert parent.stdout is not None
        child_id = int(parent.stdout.readline())
        assert is_alive(child_id)
        parent.kill()
        wait_until_gone(child_id, LEAVE_S)


def test_process_with_its_parent_killed_is_gone_although_others_hold_the_pipe(
    tmp_path: Path,
) -> None:
    parent = RuntimeProcess(tmp_path, command=parent_command(tmp_path, "None", "None"))
    with parent.process:
        assert parent.process.stdout is not None
        child_id = int(parent.process.stdout.readline())
        parent.open()
        assert is_alive(child_id)
        parent.process.kill()
        wait_until_gone(child_id, LEAVE_S)


def test_process_with_a_full_pipe_keeps_generating_and_counts_lost_samples(tmp_path: Path) -> None:
    answer = "a rather long word, many times over, " * 20_000
    script = Script(
        answers=(answer,),
        load_s=0,
        decode_tokens_per_s=0,
        prompt_tokens_per_s=0,
        context_tokens=10_000_000,
    )
    with running_runtime(tmp_path, "--script", write_script(tmp_path, script)) as runtime:
        runtime.open()
        runtime.load_first(tmp_path)
        runtime.send(WatchTelemetry(request_id=4, interval_s=0.05))
        runtime.send(ask(5))
        with pytest.raises(subprocess.TimeoutExpired):
            runtime.process.wait(UNREAD_S)
        events = []
        while not isinstance(event := runtime.next_event(), GenerationFinished):
            events.append(event)
        samples = [event for event in events if isinstance(event, TelemetrySampled)]
        samples.append(runtime.wait_for(TelemetrySampled))
        texts = [event.text for event in events if isinstance(event, TokensGenerated)]
        assert "".join(texts) == answer, "no token is lost"
        assert len(texts) < 140_000, "tokens were joined while nobody read"
        assert max(sample.sample.num_dropped for sample in samples) >= 5
        assert event.stats.decode_s < UNREAD_S, "the engine did not wait for the pipe"


def test_process_output_of_the_engine_goes_to_the_log_and_not_to_the_channel(
    tmp_path: Path,
) -> None:
    code = (
        "import os, subprocess, sys\n"
        "from runtime.service.handles import claim_streams\n"
        "streams = claim_streams()\n"
        "from runtime.service.process import run_process\n"
        "from runtime.engine.scripted import ScriptedEngine\n"
        "load = ScriptedEngine.load\n"
        "def noisy(self, *arguments):\n"
        "    print('noise of Python')\n"
        "    os.write(1, b'noise of C\\n')\n"
        "    subprocess.run([sys.executable, '-c', 'print(\"noise of a child\")'])\n"
        "    assert sys.stdin.read() == ''\n"
        "    return load(self, *arguments)\n"
        "ScriptedEngine.load = noisy\n"
        "run_process(streams, sys.argv[1:])\n"
    )
    _, _, _, *arguments = service_command(tmp_path / "runtime.log")
    runtime = RuntimeProcess(tmp_path, command=[sys.executable, "-c", code, *arguments])
    with runtime.process:
        runtime.open()
        assert runtime.load_first(tmp_path).kernels == "scripted"
        runtime.close_input()
        assert runtime.rest() == []
    log = runtime.log()
    for noise in ("noise of Python", "noise of C", "noise of a child"):
        assert noise in log


def test_process_that_crashes_leaves_its_stack_in_the_log(tmp_path: Path) -> None:
    with running_runtime(tmp_path) as runtime:
        runtime.open()
        runtime.load_first(tmp_path)
        runtime.send(ask(4, "script: crash 2"))
        texts = [event.text for event in runtime.rest() if isinstance(event, TokensGenerated)]
        assert len(texts) in {1, 2}, "what was said before arrives, the last token perhaps not"
        assert runtime.wait() == -signal.SIGABRT
        assert "Fatal Python error: Aborted" in runtime.log()
        assert "scripted.py" in runtime.log()


@pytest.mark.parametrize(
    ("frame", "code", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", ErrorCode.FRAME_INVALID, ExitStatus.FRAME_INVALID),
        (b"\3\0\0\0abc", ErrorCode.FRAME_INVALID, ExitStatus.FRAME_INVALID),
    ],
)
def test_process_with_a_malformed_frame_says_so_and_ends(
    tmp_path: Path, frame: bytes, code: ErrorCode, status: ExitStatus
) -> None:
    with running_runtime(tmp_path) as runtime:
        runtime.open()
        runtime.send_bytes(frame)
        failed = runtime.rest()[-1]
        assert isinstance(failed, RuntimeFailed)
        assert failed.error.code is code
        assert runtime.wait() == status


def test_process_with_another_protocol_version_says_so_and_ends(tmp_path: Path) -> None:
    with running_runtime(tmp_path) as runtime:
        version = PROTOCOL_VERSION + 1
        runtime.send(OpenSession(request_id=1, protocol_version=version, client_name="newer"))
        (failed,) = runtime.rest()
        assert isinstance(failed, RuntimeFailed)
        assert failed.error.code is ErrorCode.PROTOCOL_MISMATCHED
        assert runtime.wait() == ExitStatus.PROTOCOL_MISMATCHED


def test_process_with_a_broken_script_says_so_and_ends(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text("{", encoding="utf-8")
    with running_runtime(tmp_path, "--script", str(script)) as runtime:
        runtime.open()
        failed = runtime.rest()[-1]
        assert isinstance(failed, RuntimeFailed)
        assert failed.error.code is ErrorCode.SETTING_INVALID


def test_process_steps_back_ignores_the_interrupt_and_imports_no_torch(tmp_path: Path) -> None:
    with running_runtime(tmp_path) as runtime:
        runtime.open()
        runtime.process.send_signal(signal.SIGINT)
        runtime.load_first(tmp_path)
        process_id = runtime.process.pid
        ours = os.getpriority(os.PRIO_PROCESS, 0)
        assert os.getpriority(os.PRIO_PROCESS, process_id) > ours or ours == 19
        maps = Path(f"/proc/{process_id}/maps").read_text(encoding="utf-8")
        assert "libtorch" not in maps
