"""``larderctl chat`` as a process: a conversation, the interrupt, the closed pipe."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from runtime.engine.script import Script
from tests.support.runtime_process import ROOT, TIMEOUT_S


def start(*arguments: str, script: Path | None = None) -> "subprocess.Popen[str]":
    scripted = ["--engine", "scripted", *(["--script", str(script)] if script else [])]
    return subprocess.Popen(
        [sys.executable, "-m", "runtime.cli", *arguments, *scripted],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    """A script whose answer has a line for each token and does not end."""
    path = tmp_path / "script.json"
    script = Script(answers=("word\n " * 100_000,), load_s=0, context_tokens=1_000_000)
    path.write_bytes(msgspec.json.encode(script))
    return path


def read_line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def write(process: "subprocess.Popen[str]", text: str) -> None:
    assert process.stdin is not None
    process.stdin.write(text)
    process.stdin.flush()


def test_conversation_answers_each_line_until_told_to_quit(tmp_path: Path) -> None:
    with start("chat", str(tmp_path)) as process:
        output, errors = process.communicate(
            "script: say one\n\n/help\n/new\nscript: say two\n/quit\nscript: say three\n", TIMEOUT_S
        )
    assert process.returncode == 0
    assert [line for line in output.splitlines() if not line.startswith("Type")] == ["one", "two"]
    assert "/quit" in output
    assert errors.count("tokens/s") == 2


@pytest.mark.parametrize(
    ("options", "text", "said"),
    [
        ((), "", "The model ended without an answer. Ask again, or in other words."),
        (("--max-tokens", "1"), "\n \n", "Raise --max-tokens and ask again."),
        ((), "yes", None),
    ],
)
def test_answer_without_words_says_so_and_what_to_do(
    tmp_path: Path, options: tuple[str, ...], text: str, said: str | None
) -> None:
    path = tmp_path / "script.json"
    path.write_bytes(msgspec.json.encode(Script(answers=(text,), load_s=0)))
    with start("chat", str(tmp_path), *options, "--prompt", "hello", script=path) as process:
        _, errors = process.communicate("", TIMEOUT_S)
    assert process.returncode == 0
    assert "tokens/s" in errors
    told = [line for line in errors.splitlines() if "sk again" in line]
    assert len(told) == (said is not None)
    assert said is None or told[0].endswith(said)


def test_conversation_with_a_failing_answer_goes_on(tmp_path: Path) -> None:
    with start("chat", str(tmp_path)) as process:
        output, errors = process.communicate("script: fail\nscript: say two\n", TIMEOUT_S)
    assert process.returncode == 0
    assert output.endswith("two\n")
    assert "scripted.safetensors" in errors


def test_conversation_interrupted_stops_the_answer_and_not_the_program(
    tmp_path: Path, endless: Path
) -> None:
    with start("chat", str(tmp_path), script=endless) as process:
        write(process, "hello\n")
        assert read_line(process) == "word\n"
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate("script: say still here\n/quit\n", TIMEOUT_S)
    assert process.returncode == 0
    assert output.endswith("still here\n")
    assert "stopped" in errors
    assert "Traceback" not in errors


def test_single_prompt_interrupted_ends_with_its_status_and_no_stack(
    tmp_path: Path, endless: Path
) -> None:
    with start("chat", str(tmp_path), "--prompt", "hello", script=endless) as process:
        assert read_line(process) == "word\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130
    assert "Traceback" not in errors


def test_output_closed_early_ends_the_program_in_silence(tmp_path: Path, endless: Path) -> None:
    with start("chat", str(tmp_path), "--prompt", "hello", script=endless) as process:
        assert read_line(process) == "word\n"
        assert process.stdout is not None
        process.stdout.close()
        process.wait(TIMEOUT_S)
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert process.returncode == 141


def test_prepare_terminated_stops_and_tells_what_is_kept(tmp_path: Path, endless: Path) -> None:
    script = tmp_path / "slow.json"
    script.write_bytes(msgspec.json.encode(Script(prepare_s=600)))
    with start("prepare", str(tmp_path), "--progress-json", script=script) as process:
        assert "PrepareProgressed" in read_line(process)
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=TIMEOUT_S)
    assert '"PrepareCancelled"' in output
    assert "kept" in errors
    assert process.returncode == 130


def test_prepare_bound_to_its_input_ends_with_it(tmp_path: Path) -> None:
    script = tmp_path / "slow.json"
    script.write_bytes(msgspec.json.encode(Script(prepare_s=600)))
    with start("prepare", str(tmp_path), "--progress-json", "--bound", script=script) as process:
        assert "PrepareProgressed" in read_line(process)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(TIMEOUT_S) == 0


def test_engine_missing_is_a_sentence(tmp_path: Path) -> None:
    environment = {**os.environ, "LARDER_HOME": str(tmp_path)}
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from runtime.errors import LarderError\n"
        "from runtime.service.engine_loader import EngineKind, make_engine\n"
        "try: make_engine(EngineKind.TIERED)\n"
        "except LarderError as error: print(error.code, error.parameters['reason'])\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment,
        check=True,
    )
    assert result.stdout.startswith("engine_missing ")
    assert "torch" in result.stdout
