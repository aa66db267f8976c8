"""The commands that look at this PC and this program: doctor, demo."""

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from runtime.cli.client import Client
from runtime.cli.failure import EXIT_PROBLEM, print_json
from runtime.cli.models import absolute
from runtime.cli.output import tell
from runtime.cli.screen import ProgressLine, method_text, print_rows, safe_text, size_text
from runtime.errors import LarderError
from runtime.hardware.profile import MACHINE_FILE
from runtime.protocol.errors import ErrorCode
from runtime.protocol.machine import (
    DeviceReport,
    DriveKind,
    DriveReport,
    MachineReport,
    Measured,
    MemoryHolder,
)
from runtime.protocol.messages import DescribeMachine, MachineDescribed
from runtime.service.folders import Folders, find_folders
from runtime.service.version import runtime_version

DEMO_VARIABLE = "LARDER_DEMO_DIR"
_DEMO_NAME = "larder-demo"
_DRIVE_WORDS = {
    DriveKind.NVME: "NVMe, ",
    DriveKind.SSD: "SSD, ",
    DriveKind.DISK: "turning disk, ",
    DriveKind.VIRTUAL: "virtual drive, ",
    DriveKind.NETWORK: "network, ",
    DriveKind.UNKNOWN: "",
}
_LINK_AGAIN = "tried again after a day, and when a model is loaded there"
_ROOT = Path(__file__).resolve().parents[2]


def doctor(client: Client, options: argparse.Namespace) -> int:
    """Print what this PC has, each figure with how it was found."""
    kept = find_folders()
    line = ProgressLine("measuring memory, drives and cards, a few seconds at the first time")
    line.tell()
    try:
        machine = client.ask(
            DescribeMachine(
                request_id=client.new_id(),
                folders=_doctor_folders(options, kept),
                is_thorough=True,
            ),
            MachineDescribed,
        ).machine
    finally:
        line.clear()
    if options.json:
        places = {name: str(getattr(kept, name)) for name in ("settings", "data", "cache", "logs")}
        print_json({"version": runtime_version(), "machine": machine, "folders": places})
        return 0
    print_rows(
        [
            ("larder", runtime_version(), ""),
            *_machine_rows(machine),
            ("prepared models", str(kept.data), ""),
            ("logs", str(kept.logs), ""),
        ]
    )
    return 0


def _doctor_folders(options: argparse.Namespace, kept: Folders) -> list[str]:
    """Return the folders that were named; else where models usually lie.

    Raises ``LarderError`` for one that is not there.
    """
    if options.folders:
        folders = [absolute(folder) for folder in options.folders]
        for folder in folders:
            if not Path(folder).exists():
                raise LarderError(ErrorCode.FOLDER_NOT_FOUND, folder=folder)
        return folders
    demo_folder = find_demo()
    return [str(kept.data), *([str(demo_folder)] if demo_folder is not None else [])]


def demo(options: argparse.Namespace) -> int:
    """Print the folder of the demo model, or how it is made."""
    folder = find_demo()
    if folder is not None:
        if options.json:
            print_json({"folder": str(folder)})
        else:
            print(folder)
        return 0
    text = f"The demo model is not on this PC. Run make setup in {_ROOT} to build it."
    if options.json:
        print_json({"error": {"code": "folder_not_found", "sentence": text}})
    tell(f"larderctl: {safe_text(text)}")
    return EXIT_PROBLEM


def find_demo() -> Path | None:
    """Return where the demo model lies: as the environment says, built here, or installed."""
    named = os.environ.get(DEMO_VARIABLE, "")
    places = (
        [Path(named)]
        if named
        else [
            _ROOT / "build" / "demo" / _DEMO_NAME,
            _ROOT / "resources" / "demo" / _DEMO_NAME,
            Path(sys.prefix) / "share" / "larder" / _DEMO_NAME,
        ]
    )
    return next((place for place in places if (place / "config.json").is_file()), None)


def _machine_rows(machine: MachineReport) -> Iterator[tuple[str, ...]]:
    yield ("system", machine.operating_system, "")
    yield (
        "processor",
        (
            f"{machine.cpu_name}, {_counted(machine.num_physical_cores, 'core')}, "
            f"{_counted(machine.num_logical_cores, 'thread')}"
        ),
        ", ".join(filter(None, (machine.instruction_set, machine.processor_method))),
    )
    yield ("kernels", machine.kernels, "")
    yield ("RAM", *_size(machine.ram_total))
    yield ("RAM free", *_size(machine.ram_available))
    if machine.ram_reclaimable is not None:
        size, method = _size(machine.ram_reclaimable)
        yield ("RAM in cache", f"{size}, given up when memory is wanted", method)
    for holder in machine.ram_held_by:
        yield ("RAM held by", _held(holder), "psutil")
    if machine.ram_limit is not None:
        yield ("RAM limit", *_size(machine.ram_limit))
    for limit in machine.ram_limits:
        if limit != machine.ram_limit:
            yield ("RAM limit too", f"{size_text(limit.value)}, not the tightest", limit.method)
    if machine.ram_read_bytes_per_s is not None:
        yield ("RAM reads", *_rate(machine.ram_read_bytes_per_s))
    else:
        yield ("RAM reads", "not measured", "needs the native extension")
    for device in machine.devices:
        yield from device_rows(device)
    if not machine.devices:
        yield ("GPU", "none found", "NVML, amdgpu")
    for drive in machine.drives:
        yield from _drive_rows(drive)
    yield from _energy_rows(machine)
    if machine.profile:
        yield ("profile", machine.profile, "figures above are this file's where it states them")
    else:
        place = find_folders().settings / MACHINE_FILE
        yield ("profile", "none", f"{place} may state other figures")


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _energy_rows(machine: MachineReport) -> Iterator[tuple[str, ...]]:
    measured = ", ".join(machine.energy_sources)
    how = machine.energy_method or ("" if measured else "answers: estimated")
    yield ("energy", measured or "nothing measures it", how)
    for name, watts in (("PC", machine.pc_watts), ("beside processor", machine.rest_watts)):
        if watts is not None:
            yield (f"power, {name}", f"{watts.value:g} W", watts.method)


def device_rows(device: DeviceReport) -> Iterator[tuple[str, ...]]:
    """Yield what is told of a card, who holds it included."""
    notes = (device.note, "simulated" if device.is_simulated else "")
    yield (
        device.device,
        (
            f"{device.name}, {size_text(device.free_bytes)} of {size_text(device.total_bytes)} "
            f"free{'' if device.is_used else ', not used'}"
        ),
        ", ".join(filter(None, notes)),
    )
    for holder in device.held_by:
        yield (f"{device.device} held by", _held(holder), "NVML")
    if device.shared_bytes:
        shared = f"{size_text(device.shared_bytes)} of the RAM, counted as RAM alone"
        yield (f"{device.device} may use", shared, "amdgpu")
    if device.link_bytes_per_s is not None:
        yield (f"{device.device} link", *_rate(device.link_bytes_per_s))
        if device.link_back_bytes_per_s is not None:
            yield (f"{device.device} link back", *_rate(device.link_back_bytes_per_s))
    elif device.link_problem:
        yield (f"{device.device} link", "not measured", f"{device.link_problem}; {_LINK_AGAIN}")
    else:
        yield (f"{device.device} link", "not measured yet", "loading a model there measures it")
    if device.read_bytes_per_s is not None:
        yield (f"{device.device} reads", *_rate(device.read_bytes_per_s))
    if device.work_watts is not None:
        watts = device.work_watts
        yield (f"{device.device} power", f"{watts.value:g} W at work", watts.method)


def _held(holder: MemoryHolder) -> str:
    held = "size not told" if holder.held_bytes is None else size_text(holder.held_bytes)
    return f"{safe_text(holder.name)} ({holder.process_id}), {held}"


def _drive_rows(drive: DriveReport) -> Iterator[tuple[str, ...]]:
    yield (
        "drive",
        (
            f"{size_text(drive.free_bytes)} of {size_text(drive.total_bytes)} free, "
            f"{_DRIVE_WORDS[drive.kind]}{drive.file_system}, holds {drive.folder}"
        ),
        "file system",
    )
    if drive.read_bytes_per_s is not None:
        yield ("drive reads", *_rate(drive.read_bytes_per_s))
    else:
        yield ("drive reads", "not measured", "needs a folder with a large file")
    if drive.depth_rates:
        depths = ", ".join(
            f"{rate.num_at_once}: {size_text(rate.bytes_per_s)}/s" for rate in drive.depth_rates
        )
        yield ("drive at once", depths, "uncached reads, so many at once; the least ever measured")
    if drive.num_readers is not None:
        readers = drive.num_readers
        yield ("drive readers", f"{readers.value:.0f}", readers.method)
    if drive.joules_per_gb is not None:
        joules = drive.joules_per_gb
        yield ("drive energy", f"{joules.value:g} J for 1 GB read", joules.method)
    if drive.temperature_c is not None:
        yield ("drive is at", f"{drive.temperature_c:.0f} °C", "sensor of the drive")
    if drive.is_direct is not None:
        yield (
            "drive cache",
            "passed by" if drive.is_direct else "in the way: reads cannot go past it",
            "opening a file",
        )


def _size(figure: Measured) -> tuple[str, str]:
    return size_text(figure.value), method_text(figure)


def _rate(figure: Measured) -> tuple[str, str]:
    return f"{size_text(figure.value)}/s", method_text(figure)
