"""``larderctl chat`` given text that is not UTF-8, by every way that text can come."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from runtime.cli.arguments import build_parser
from runtime.cli.chat import opening_of
from runtime.cli.loading import read_sampling
from runtime.cli.screen import readable_text
from runtime.protocol.chat import SamplingSettings
from tests.support.runtime_process import ROOT, TIMEOUT_S


@pytest.mark.skipif(sys.platform == "win32", reason="arguments are Unicode there")
@pytest.mark.parametrize("locale", ["C.UTF-8", "C", "POSIX"])
@pytest.mark.parametrize(
    ("arguments", "typed"),
    [
        ([b"--prompt", b"script: say one \xff two"], b""),
        ([b"--system", b"\xff", b"--stop", b"\xff", b"--prompt", b"script: say one ? two"], b""),
        ([], b"script: say one \xff two\n/quit\n"),
        ([b"--json"], b"script: say one \xff two"),
        ([b"--json", b"--prompt", b"script: say one \xff two"], b""),
    ],
    ids=["prompt", "system", "line", "input", "json"],
)
def test_chat_given_text_that_is_not_utf8_answers_all_the_same(
    tmp_path: Path, arguments: list[bytes], typed: bytes, locale: str
) -> None:
    scripted = [b"--engine", b"scripted", b"--rate", b"0"]
    done = subprocess.run(
        [sys.executable, "-m", "runtime.cli", "chat", str(tmp_path), *scripted, *arguments],
        input=typed,
        capture_output=True,
        cwd=ROOT,
        env={**os.environ, "LC_ALL": locale},
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    output = done.stdout.decode("utf-8" if locale == "C.UTF-8" else "latin-1")
    assert re.search("one (\N{REPLACEMENT CHARACTER}|\\?|\xef\xbf\xbd) two", output)


def test_texts_of_the_command_line_reach_the_model_as_unicode() -> None:
    options = build_parser("1").parse_args(["chat", "x", "--stop", "\udcff", "--system", "\udcff"])
    assert read_sampling(options, SamplingSettings()).stop == ["\ufffd"]
    assert [message.text for message in opening_of(options)] == ["\ufffd"]


@pytest.mark.parametrize(
    ("text", "readable"),
    [("plain é 🙂", "plain é 🙂"), ("\udcff and \ud83d", "\ufffd and \ufffd"), ("", "")],
)
def test_readable_text_has_a_sign_for_what_is_not_unicode(text: str, readable: str) -> None:
    assert readable_text(text) == readable
