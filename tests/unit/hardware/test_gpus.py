"""Graphics cards: what their drivers tell, how CUDA numbers them, which one plans use."""

import os
import subprocess
import sys
import types
from pathlib import Path

import msgspec
import psutil
import pytest

from runtime.hardware.engine_build import kinds_in, torch_kinds
from runtime.hardware.gpus import AMD_NOTE, mark_used, read_gpus
from runtime.hardware.machine import describe_machine
from runtime.hardware.rates import RateCache, link_key
from runtime.hardware.system_files import SystemFiles
from tests.support.fake_nvml import fake_nvml
from tests.support.fake_systems import GIB, system


def test_read_gpus_by_nvml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml())
    cards = read_gpus(SystemFiles(tmp_path), {})
    assert [(card.device, card.name, card.total_bytes) for card in cards] == [
        ("cuda:0", "New Card", 8 * GIB),
        ("cuda:1", "Old Card", 9 * GIB),
    ]


def test_read_gpus_nvml_tells_the_rate_of_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = fake_nvml()
    monkeypatch.setitem(sys.modules, "pynvml", module)
    rate = read_gpus(SystemFiles(tmp_path), {})[0].read_bytes_per_s
    assert rate is not None
    assert rate.value == pytest.approx(936e9, rel=0.001)

    def fail(*_: object) -> int:
        raise module.NVMLError

    monkeypatch.setattr(module, "nvmlDeviceGetMemoryBusWidth", fail)
    assert read_gpus(SystemFiles(tmp_path), {})[0].read_bytes_per_s is None
    monkeypatch.setattr(module, "nvmlDeviceGetMemoryBusWidth", lambda handle: 0)
    assert read_gpus(SystemFiles(tmp_path), {})[0].read_bytes_per_s is None


@pytest.mark.parametrize(
    ("listed", "names"),
    [
        ("1", ["Old Card"]),
        ("1,0", ["Old Card", "New Card"]),
        ("0,7,1", ["New Card"]),
        ("GPU-bb", ["Old Card"]),
        ("", []),
        ("-1", []),
    ],
)
def test_read_gpus_are_numbered_as_cuda_shows_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listed: str, names: list[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml())
    cards = read_gpus(SystemFiles(tmp_path), {"CUDA_VISIBLE_DEVICES": listed})
    assert [card.name for card in cards] == names
    assert [card.device for card in cards] == [f"cuda:{index}" for index in range(len(names))]


def test_mark_used_takes_the_first_that_the_engine_drives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml())
    cards = read_gpus(SystemFiles(tmp_path), {})
    amd = msgspec.structs.replace(cards[0], device="amd:0", note="")
    intel = msgspec.structs.replace(cards[0], device="xpu:0", note="")
    marked = mark_used([amd, *cards, intel], frozenset({"cuda"}))
    assert [card.is_used for card in marked] == [False, True, False, False]
    assert [card.note for card in marked] == [
        AMD_NOTE,
        "NVML",
        "NVML; another device is used",
        "the installed engine was built without XPU",
    ]
    without = mark_used([*cards, amd])
    assert not any(card.is_used for card in without)
    assert "built without CUDA" in without[0].note
    assert "needs an engine built for ROCm" in without[2].note
    (alone,) = mark_used([intel], frozenset({"xpu"}))
    assert alone.is_used


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("cuda: Optional[str] = '12.8'\nhip = None\n", {"cuda"}),
        ('debug = False\ncuda = "13.0"\n', {"cuda"}),
        ("cuda: Optional[str] = None\nhip: Optional[str] = '6.4.43483-a187df25c'\n", {"cuda"}),
        ("cuda: Optional[str] = None\nxpu: Optional[str] = '20250201'\n", {"xpu"}),
        ("cuda: Optional[str] = None\nhip: Optional[str] = None\n", set()),
        ("cudart = '1'\n", set()),
    ],
)
def test_kinds_of_cards_are_what_the_file_states(
    tmp_path: Path, text: str, kinds: set[str]
) -> None:
    (tmp_path / "version.py").write_text(text, encoding="utf-8")
    assert kinds_in(tmp_path / "version.py") == kinds


def test_kinds_of_cards_without_file_or_library_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert kinds_in(tmp_path / "version.py") == frozenset()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert torch_kinds() == frozenset()


def test_torch_kinds_does_not_import_torch() -> None:
    script = (
        "import sys; from runtime.hardware.engine_build import torch_kinds as v;"
        "v(); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_describe_machine_knows_the_measured_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml())
    cache = RateCache(tmp_path / "rates.json")
    cache.record(link_key("cuda:1"), 2.5e10, "copied 64 MiB")
    cache.fail(link_key("cuda:0"), "no answer")
    cache.fail(link_key("cuda:1"), "no answer, later than it was measured")
    first, second = describe_machine([], {}, rates_path=cache.path).devices[:2]
    assert first.link_bytes_per_s is None
    assert (first.link_problem, second.link_problem) == ("no answer", "")
    assert second.link_bytes_per_s is not None
    assert second.link_bytes_per_s.value == 2.5e10


@pytest.mark.parametrize("name", ["nvmlInit", "nvmlDeviceGetCount", "nvmlDeviceGetMemoryInfo"])
def test_read_gpus_nvml_fails_finds_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    module = fake_nvml()

    def fail(*_: object) -> None:
        raise module.NVMLError

    setattr(module, name, fail)
    monkeypatch.setitem(sys.modules, "pynvml", module)
    assert read_gpus(SystemFiles(tmp_path), {}) == []


def test_read_gpus_without_nvml_finds_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert read_gpus(SystemFiles(tmp_path), {}) == []


def test_read_gpus_of_amd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    folder = "/sys/class/drm/card1/device"
    files = system(
        tmp_path,
        {
            f"{folder}/vendor": "0x1002",
            f"{folder}/mem_info_vram_total": 16 * GIB,
            f"{folder}/mem_info_vram_used": GIB,
            "/sys/class/drm/card0/device/vendor": "0x8086",
            "/sys/class/drm/card1-HDMI-A-1/status": "connected",
        },
    )
    (card,) = read_gpus(files, {})
    assert (card.device, card.name) == ("amd:0", "AMD graphics")
    assert (card.total_bytes, card.free_bytes) == (16 * GIB, 15 * GIB)


def test_read_gpus_names_the_programs_that_hold_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def process(pid: int, held: int | None) -> types.SimpleNamespace:
        return types.SimpleNamespace(pid=pid, usedGpuMemory=held)

    module = fake_nvml(
        nvmlDeviceGetCount=lambda: 1,
        nvmlDeviceGetComputeRunningProcesses=lambda _: [process(os.getpid(), GIB), process(0, 5)],
        nvmlDeviceGetGraphicsRunningProcesses=lambda _: [
            process(os.getppid(), None),
            process(2**22 + 1, 7),
        ],
    )
    monkeypatch.setitem(sys.modules, "pynvml", module)
    (card,) = read_gpus(SystemFiles(tmp_path), {})
    parent = psutil.Process(os.getppid()).name()
    held = {holder.process_id: holder.held_bytes for holder in card.held_by}
    assert held == {2**22 + 1: 7, 0: 5, os.getppid(): None}
    assert [holder.held_bytes for holder in card.held_by] == [7, 5, None]
    assert (card.held_by[0].name, card.held_by[2].name) == (f"process {2**22 + 1}", parent)


def test_read_gpus_shared_memory_is_told_beside_the_cards_own(tmp_path: Path) -> None:
    folder = "/sys/class/drm/card0/device"
    files = system(
        tmp_path,
        {
            f"{folder}/vendor": "0x1002",
            f"{folder}/mem_info_vram_total": GIB // 2,
            f"{folder}/mem_info_gtt_total": 14 * GIB,
        },
    )
    (card,) = [card for card in read_gpus(files, {}) if card.device.startswith("amd")]
    assert (card.total_bytes, card.shared_bytes) == (GIB // 2, 14 * GIB)
