"""The whole report: processors, cards, drives and profiles in made-up systems."""

import json
import os
import sys
import types
from pathlib import Path

import pytest

from runtime.errors import LarderError, report_of
from runtime.hardware import processor
from runtime.hardware.drives import drive_of
from runtime.hardware.machine import describe_machine
from runtime.hardware.processor import last_cache_bytes, read_processor
from runtime.hardware.profile import MACHINE_VARIABLE, load_profile, profile_of
from runtime.hardware.rates import RAM, RateCache, drive_key
from runtime.hardware.system_files import SystemFiles
from runtime.protocol.errors import ErrorCode
from runtime.protocol.machine import Measured
from runtime.protocol.sentences import sentence
from tests.support.fake_nvml import fake_nvml
from tests.support.fake_systems import GIB, mount_line, system

PROFILE = {
    "ram": {"total_gib": 16, "available_gib": 10.5, "limit_gib": 12, "read_gb_per_s": 40},
    "drive": {"total_gib": 500, "free_gib": 100, "read_gb_per_s": 3.5},
    "num_physical_cores": 6,
    "devices": [{"name": "Pretended card", "total_gib": 8, "free_gib": 7, "link_gb_per_s": 12}],
}


def write_profile(folder: Path, content: object) -> str:
    path = folder / "profile.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return str(path)


def parameters_of(folder: Path, content: object) -> dict[str, str | int | float]:
    with pytest.raises(LarderError) as caught:
        load_profile(write_profile(folder, content))
    assert caught.value.code is ErrorCode.MACHINE_FILE_INVALID
    assert caught.value.parameters["file"] == str(folder / "profile.json")
    return caught.value.parameters


def test_describe_machine_here_is_plausible(tmp_path: Path) -> None:
    report = describe_machine([tmp_path, tmp_path / "not" / "there"], {}, kernels="reference")
    assert 1 <= report.num_physical_cores <= report.num_logical_cores
    assert 0 < report.ram_available.value <= report.ram_total.value
    assert report.ram_available.method
    assert report.kernels == "reference"
    assert report.profile == ""
    assert [drive.folder for drive in report.drives] == [
        str(tmp_path),
        str(tmp_path / "not" / "there"),
    ]
    for drive in report.drives:
        assert 0 < drive.free_bytes <= drive.total_bytes
        assert drive.read_bytes_per_s is None


def test_describe_machine_measured_rates_are_told(tmp_path: Path) -> None:
    cache = RateCache(tmp_path / "rates.json")
    drive = drive_of(tmp_path)
    assert drive is not None
    cache.record(RAM, 2e10, "measured 0.2 s")
    cache.record(drive_key(drive.mount_point), 3e9, "uncached reads")
    report = describe_machine([tmp_path], {}, rates_path=cache.path)
    assert report.ram_read_bytes_per_s is not None
    assert report.ram_read_bytes_per_s.method == "measured 0.2 s"
    assert report.drives[0].read_bytes_per_s is not None
    assert report.drives[0].read_bytes_per_s.value == 3e9


def test_describe_machine_profile_replaces_what_it_states(tmp_path: Path) -> None:
    path = write_profile(tmp_path, PROFILE)
    report = describe_machine([tmp_path], {MACHINE_VARIABLE: path})
    assert report.profile == path
    assert report.ram_total.value == 16 * GIB
    assert report.ram_total.method == "profile"
    assert report.ram_available.value == int(10.5 * GIB)
    assert report.ram_limit is not None
    assert report.ram_limit.value == 12 * GIB
    assert report.ram_read_bytes_per_s is not None
    assert report.ram_read_bytes_per_s.value == 40e9
    assert report.num_physical_cores == report.num_logical_cores == 6
    (drive,) = report.drives
    assert (drive.total_bytes, drive.free_bytes) == (500 * GIB, 100 * GIB)
    assert drive.read_bytes_per_s is not None
    assert drive.read_bytes_per_s.value == 3.5e9
    (device,) = report.devices
    assert device.device == "simulated:0"
    assert device.is_simulated
    assert (device.total_bytes, device.free_bytes) == (8 * GIB, 7 * GIB)
    assert device.note == ""
    assert device.is_used
    assert device.link_bytes_per_s is not None
    assert device.link_bytes_per_s.value == 12e9
    assert device.link_bytes_per_s.method == "profile"


@pytest.mark.parametrize(
    ("stated", "measured", "told"), [(0.2, None, 0.2), (0.2, 3.0, 0.2), (5.0, 3.0, 3.0)]
)
def test_describe_machine_drive_reads_no_faster_than_it_is_let(
    tmp_path: Path, stated: float, measured: float | None, told: float
) -> None:
    path = write_profile(tmp_path, {"drive": {"most_gb_per_s": stated}})
    cache = RateCache(tmp_path / "rates.json")
    drive = drive_of(tmp_path)
    assert drive is not None
    if measured is not None:
        cache.record(drive_key(drive.mount_point), measured * 1e9, "uncached reads")
    report = describe_machine([tmp_path], {MACHINE_VARIABLE: path}, rates_path=cache.path)
    assert report.drives[0].read_bytes_per_s is not None
    assert report.drives[0].read_bytes_per_s.value == told * 1e9


def test_describe_machine_simulated_card_lies_in_ram(tmp_path: Path) -> None:
    card = {"total_gib": 2, "free_gib": 1.5}
    path = write_profile(tmp_path, {"ram": {"total_gib": 2}, "devices": [card]})
    available = describe_machine([], {MACHINE_VARIABLE: path}).ram_available
    assert available.value == GIB // 2
    assert available.method == "profile"
    large = write_profile(tmp_path, {"devices": [{"total_gib": 999_999}]})
    available = describe_machine([], {MACHINE_VARIABLE: large}).ram_available
    assert available.value == 0
    assert available.method.endswith(", less the simulated cards")


def test_describe_machine_empty_profile_changes_nothing_else(tmp_path: Path) -> None:
    path = write_profile(tmp_path, {})
    report = describe_machine([tmp_path], {MACHINE_VARIABLE: path})
    assert report.profile == path
    assert report.ram_total.method == "psutil total"
    assert all(not device.is_simulated for device in report.devices)


def test_describe_machine_profile_of_a_small_pc_has_no_more_free(tmp_path: Path) -> None:
    small = write_profile(tmp_path, {"ram": {"total_gib": 0.25}, "drive": {"total_gib": 0.001}})
    report = describe_machine([tmp_path], {MACHINE_VARIABLE: small})
    assert report.ram_available.value == report.ram_total.value == GIB // 4
    assert report.ram_limit is None
    assert report.drives[0].free_bytes == report.drives[0].total_bytes
    limited = write_profile(tmp_path, {"ram": {"limit_gib": 0.125}})
    report = describe_machine([], {MACHINE_VARIABLE: limited})
    assert report.ram_available.value == GIB // 8


def test_describe_machine_folder_that_cannot_be_looked_at_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise PermissionError

    monkeypatch.setattr("runtime.hardware.drives.shutil.disk_usage", fail)
    assert describe_machine([tmp_path], {}).drives == []


def test_drive_of_innermost_mount_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def partition(place: Path, kind: str) -> types.SimpleNamespace:
        return types.SimpleNamespace(mountpoint=str(place), fstype=kind)

    inner = (tmp_path / "inner").resolve()
    parts = [partition(Path("/"), "ext4"), partition(inner, "btrfs"), partition(inner, "xfs")]
    monkeypatch.setattr("runtime.hardware.drives.psutil.disk_partitions", lambda **_: parts)
    inner.mkdir()
    inside, outside = drive_of(inner / "model"), drive_of(tmp_path / "innermost")
    assert inside is not None
    assert outside is not None
    assert (inside.mount_point, inside.file_system) == (str(inner), "xfs")
    assert (outside.mount_point, outside.file_system) == ("/", "ext4")
    parts.clear()
    unknown = drive_of(tmp_path)
    assert unknown is not None
    assert unknown.file_system == ""


def test_operating_system_has_its_usual_name(tmp_path: Path) -> None:
    files = system(tmp_path, {"/etc/os-release": 'ID=debian\nPRETTY_NAME="Debian GNU/Linux 12"'})
    assert describe_machine((), {}, files=files).operating_system == "Debian GNU/Linux 12"
    assert describe_machine((), {}, files=SystemFiles(tmp_path / "no")).operating_system


@pytest.mark.parametrize(
    ("info", "instruction_set"),
    [
        ("flags\t\t: fpu avx2 fma f16c avx", "avx2"),
        ("flags : avx512f avx512bw avx512vl avx2 fma f16c", "avx512"),
        ("flags : avx512f avx512bw avx512vl avx512_vnni", "avx512-vnni"),
        ("flags : avx avx2", "avx"),
        ("flags : sse2", "x86-64"),
        ("Features : fp asimd asimddp", "neon-dotprod"),
        ("Features : fp asimd", "neon"),
        ("Features : fp", "arm"),
    ],
)
def test_read_processor_instruction_set(tmp_path: Path, info: str, instruction_set: str) -> None:
    files = system(tmp_path, {"/proc/cpuinfo": f"model name : Some CPU\n{info}"})
    facts = read_processor(files)
    assert facts.instruction_set == instruction_set
    assert facts.name == "Some CPU"


@pytest.mark.parametrize(
    ("machine", "instruction_set"), [("arm64", "neon"), ("riscv64", "riscv64"), ("", "unknown")]
)
def test_read_processor_without_cpuinfo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: str, instruction_set: str
) -> None:
    monkeypatch.setattr("runtime.hardware.processor.platform.machine", lambda: machine)
    facts = read_processor(SystemFiles(tmp_path))
    assert facts.instruction_set == instruction_set


def test_read_processor_counts_cores_not_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processor, "_allowed_processors", lambda: [0, 1, 2, 3])
    names = {
        f"/sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list": siblings
        for number, siblings in enumerate(("0,2", "1,3", "0,2", "1,3"))
    }
    facts = read_processor(system(tmp_path, {**names}))
    assert (facts.num_physical_cores, facts.num_logical_cores) == (2, 4)


def test_read_processor_time_limit_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "_allowed_processors", lambda: range(8))
    files = system(
        tmp_path,
        {
            "/proc/self/cgroup": "0::/",
            "/proc/self/mountinfo": mount_line("/sys/fs/cgroup", "cgroup2"),
            "/sys/fs/cgroup/cpu.max": "150000 100000",
        },
    )
    facts = read_processor(files)
    assert facts.num_logical_cores == 2


def test_allowed_processors_without_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("os.sched_getaffinity")
    assert len(processor._allowed_processors()) >= 1


def test_profile_of_environment_without_one_is_none() -> None:
    assert profile_of({}) is None
    assert profile_of({MACHINE_VARIABLE: ""}) is None


def test_load_profile_devices_have_defaults(tmp_path: Path) -> None:
    profile = load_profile(write_profile(tmp_path, {"devices": [{"total_gib": 4}]}))
    (device,) = profile.devices
    assert device.name == "Simulated card 0"
    assert device.free_bytes == device.total_bytes == 4 * GIB
    assert device.link_bytes_per_s == 16e9


@pytest.mark.parametrize(
    ("content", "field", "found"),
    [
        ([], "its start", "[]"),
        ({"pc_watts": 10**400}, "pc_watts", str(10**400)[:300]),
        ({"ram": 5}, "ram", "5"),
        ({"ram": {"total_gib": "16"}}, "ram.total_gib", '"16"'),
        ({"ram": {"total_gib": True}}, "ram.total_gib", "true"),
        ({"ram": {"total_gib": -1}}, "ram.total_gib", "-1"),
        ({"ram": {"read_gb_per_s": 0}}, "ram.read_gb_per_s", "0"),
        ({"drive": {"read_gb_per_s": 2, "most_gb_per_s": 1}}, "drive.read_gb_per_s", "2 GB/s"),
        ({"ram": {"total_gib": 1e9}}, "ram.total_gib", "1e+09"),
        ({"ram": {"total_gib": float("nan")}}, "ram.total_gib", "nan"),
        ({"num_physical_cores": 1.5}, "num_physical_cores", "1.5"),
        ({"drive": {"num_readers": 9}}, "drive.num_readers", "9"),
        ({"drive": {"joules_per_gb": -1}}, "drive.joules_per_gb", "-1"),
        ({"energy_sources": "socket, none, battery"}, "energy_sources", "none, socket"),
        ({"ram": {"total_gib": 4, "available_gib": 5}}, "ram.available_gib", "5 GiB"),
        ({"ram": {"total_gib": 4, "limit_gib": 5}}, "ram.limit_gib", "5 GiB"),
        ({"drive": {"total_gib": 4, "free_gib": 5}}, "drive.free_gib", "5 GiB"),
        ({"devices": {}}, "devices", "{}"),
        ({"devices": [{}] * 17}, "devices", "[{"),
        ({"devices": [{}]}, "devices[0].total_gib", "nothing"),
        ({"devices": [5]}, "devices[0]", "5"),
        ({"devices": [{"total_gib": 4, "name": 5}]}, "devices[0].name", "5"),
        ({"devices": [{"total_gib": 4, "free_gib": 5}]}, "devices[0].free_gib", "5 GiB"),
        (
            {"devices": [{"total_gib": 4, "is_link_measured": 1}]},
            "devices[0].is_link_measured",
            "1",
        ),
    ],
)
def test_load_profile_wrong_field_is_named(
    tmp_path: Path, content: object, field: str, found: str
) -> None:
    parameters = parameters_of(tmp_path, content)
    assert parameters["place"] == field
    assert str(parameters["found"]).startswith(found)
    assert parameters["expected"]


def test_load_profile_unknown_field_suggests_the_near_one(tmp_path: Path) -> None:
    parameters = parameters_of(tmp_path, {"ram": {"totl_gib": 4}})
    assert parameters["place"] == "ram.totl_gib"
    assert parameters["expected"] == "total_gib"
    parameters = parameters_of(tmp_path, {"colour": 4})
    assert parameters["expected"] == (
        "one of cards, devices, drive, energy_sources, instruction_set, num_physical_cores, "
        "num_threads, pc_watts, ram, rest_watts"
    )


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_load_profile_never_waits_for_a_pipe_nor_reads_a_device(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "machine.json"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/tty")
    with pytest.raises(LarderError) as caught:
        load_profile(str(path))
    assert caught.value.parameters["found"] == "a pipe or a device"


@pytest.mark.parametrize(
    ("content", "place", "found", "expected"),
    [
        (None, "this place", "nothing that can be read (No such file", "a JSON file"),
        (b'{"ram":\n 5 x}', "line 2, column 4", "a mistake (", "correct JSON"),
        (b'{"ram": "\xff"}', "byte 10", "what is not UTF-8", "text in UTF-8"),
        (b" " * (1024 * 1024 + 1), "its end", "more than 1 MiB", "a small JSON file"),
        (b"[" * 100_000, "its start", "what cannot be taken in", "a small JSON file"),
    ],
    ids=["missing", "no JSON", "no text", "large", "deep"],
)
def test_load_profile_file_that_cannot_be_used_is_named_with_the_place_in_it(
    tmp_path: Path, content: bytes | None, place: str, found: str, expected: str
) -> None:
    path = tmp_path / "machine.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(LarderError) as caught:
        load_profile(str(path))
    told = caught.value.parameters
    assert (told["file"], told["place"], told["expected"]) == (str(path), place, expected)
    assert str(told["found"]).startswith(found)
    text = sentence(report_of(caught.value))
    assert text.startswith(f"{path}, which states figures of this PC, cannot be used: at {place}, ")
    assert "take the file away" in text


def test_profile_states_other_figures_of_a_card_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml())
    stated = {"device": "cuda:0", "total_gib": 6, "link_gb_per_s": 3, "read_gb_per_s": 200}
    path = write_profile(tmp_path, {"cards": [stated], "instruction_set": "avx2"})
    report = describe_machine([], {MACHINE_VARIABLE: path})
    assert report.instruction_set == "avx2"
    card, other = report.devices
    assert (card.total_bytes, card.free_bytes) == (6 * GIB, 6 * GIB)
    assert card.link_bytes_per_s == Measured(value=3e9, method="profile")
    assert card.read_bytes_per_s == Measured(value=2e11, method="profile")
    assert card.note.endswith("; profile")
    assert (other.total_bytes, other.link_bytes_per_s) == (9 * GIB, None)


@pytest.mark.parametrize(
    ("card", "place"),
    [
        ({"total_gib": 6}, "cards[0].device"),
        ({"device": "cuda:0", "totl_gib": 6}, "cards[0].totl_gib"),
        ({"device": "cuda:0", "total_gib": 6, "free_gib": 7}, "cards[0].free_gib"),
    ],
)
def test_profile_of_a_card_is_checked(tmp_path: Path, card: dict[str, object], place: str) -> None:
    assert parameters_of(tmp_path, {"cards": [card]})["place"] == place


def test_profile_states_a_card_once(tmp_path: Path) -> None:
    cards = [{"device": "cuda:0", "free_gib": 1}, {"device": "cuda:0", "total_gib": 6}]
    parameters = parameters_of(tmp_path, {"cards": cards})
    assert (parameters["place"], parameters["found"]) == ("cards[1].device", "cuda:0")
    parameters_of_others = [cards[0], {"device": "cuda:1", "free_gib": 1}]
    path = write_profile(tmp_path, {"cards": parameters_of_others})
    assert describe_machine([], {MACHINE_VARIABLE: path}).devices == []


def test_last_cache_is_the_largest_that_is_told(tmp_path: Path) -> None:
    folder = "/sys/devices/system/cpu/cpu0/cache"
    sizes = {"index0": "32K", "index2": "1024K", "index3": "96M", "index4": "many"}
    files = system(tmp_path, {f"{folder}/{name}/size": size for name, size in sizes.items()})
    assert last_cache_bytes(files) == 96 << 20
    assert last_cache_bytes(SystemFiles(tmp_path / "none")) == 0
