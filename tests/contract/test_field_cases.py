"""Complaints about programs like this one, tried on ours: names (H08) and full drives (H09).

``docs/reliability.md`` says for each step of each case which test holds it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from runtime.inspect.folder import inspect_folder
from runtime.prepare.prepare import prepare_model
from runtime.protocol.values import WeightFormat
from tests.support.checkpoint_folders import TinyModel, write_checkpoint
from tests.support.fake_hub import COMMIT, fake_hub, moe_facts
from tests.support.larderctl import larderctl
from tests.support.read_only import where_full
from tests.support.runtime_process import ROOT, TIMEOUT_S

NAMES = ("Модели", "日本語\u3000モデル", "Übergrößen", "🦙 🍞", "ends in a dot.", "long " * 40)
MODEL = "maker/tiny-moe"

_FILLS_UP = """
import os, sys
from pathlib import Path
from runtime.engine.base import CancelToken
from runtime.errors import LarderError
from runtime.hub import download
from runtime.hub.desk import HubDesk

model, commit, address, drive, cache, needed = sys.argv[1:]
root, filler = Path(drive, "models"), Path(drive, "other program")
download.SPARE_BYTES = download.TELL_INTERVAL_S = 0

def fill(fetched):
    '''Another program takes all that is left once a half has come.'''
    if 2 * fetched.done_bytes >= int(needed) and not filler.exists():
        with filler.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass

def fetch():
    return HubDesk(Path(cache)).download(model, commit, address, str(root), CancelToken(), fill)

try:
    fetch()
except LarderError as error:
    print(error.code, error.parameters.get("folder", ""))
kept = sum(path.stat().st_size for path in root.rglob("*") if path.is_file())
print(kept)
filler.write_bytes(b"")
print(fetch()[0])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a name may not end in a dot there")
def test_h08_names_that_are_not_ascii_work_for_models_homes_and_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path.joinpath(*NAMES)
    home, temporary = place / "home", place / "tmp"
    for folder in (home, temporary):
        folder.mkdir(parents=True)
    assert len(str(place)) > 250
    monkeypatch.setenv("LARDER_HOME", str(home))
    monkeypatch.setenv("TMPDIR", str(temporary))
    model = write_checkpoint(place / NAMES[1], TinyModel(num_layers=2))
    copy = place / "copy"
    made = prepare_model(inspect_folder(str(model)), WeightFormat.Q8_G32, str(copy))
    assert made.folder == str(copy)
    answer = larderctl("chat", str(model), "--prompt", "何？", "--max-tokens", "4")
    assert answer["generated_tokens"] > 0
    for log in home.rglob("*.log"):
        log.read_text(encoding="utf-8")


def test_h09_download_onto_a_drive_that_another_program_fills_pauses_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    published = write_checkpoint(tmp_path / "published", TinyModel(num_shards=2))
    needed = sum(path.stat().st_size for path in published.iterdir())
    drive = tmp_path / "drive"
    script = tmp_path / "fills_up.py"
    script.write_text(_FILLS_UP, encoding="utf-8")
    with fake_hub(monkeypatch) as hub:
        hub.add(MODEL, published, **moe_facts())
        arguments = [MODEL, COMMIT, hub.address, str(drive), str(tmp_path / "cache"), str(needed)]
        # The last thing that is done there: what was mounted is gone with the process.
        command = where_full(drive, [sys.executable, str(script), *arguments], f"{2 * needed}")
        ended = subprocess.run(
            command,
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            timeout=TIMEOUT_S,
            check=False,
        )
    assert ended.returncode == 0, ended.stderr
    refused, kept, folder = ended.stdout.splitlines()
    assert refused.startswith(f"disk_full {drive / 'models'}")
    assert needed // 2 <= int(kept) < needed
    assert folder.startswith(str(drive / "models"))


def test_h09_download_onto_a_drive_that_is_too_small_is_refused_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    published = write_checkpoint(tmp_path / "published", TinyModel(num_shards=2))
    drive = tmp_path / "drive"
    monkeypatch.setenv("LARDER_HOME", str(tmp_path / "home"))
    with fake_hub(monkeypatch) as hub:
        hub.add(MODEL, published, **moe_facts())
        line = [sys.executable, "-m", "runtime.cli", "download", MODEL, "--json"]
        line += ["--hub", hub.address, "--to", str(drive)]
        ended = subprocess.run(
            where_full(drive, line, "64k"),
            capture_output=True,
            text=True,
            cwd=ROOT,
            timeout=TIMEOUT_S,
            check=False,
        )
        # Headers were looked at, and no file was begun.
        assert all(part for _, part, _ in hub.asked("-of-"))
    assert ended.returncode == 2, ended.stderr
    error = json.loads(ended.stdout)["error"]
    assert error["code"] == "disk_full"
    assert error["parameters"]["free_bytes"] <= 64 * 1024 < error["parameters"]["needed_bytes"]
