"""The commands that look at this PC and this program: doctor, demo."""

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from runtime.cli.client import Client
from runtime.cli.failure import EXIT_PROBLEM, print_json
from runtime.cli.models import absolute
from runtime.cli.screen import print_rows, safe_text, size_text
from runtime.protocol.machine import MachineReport, Measured
from runtime.protocol.messages import DescribeMachine, MachineDescribed
from runtime.service.folders import find_folders
from runtime.service.version import runtime_version

DEMO_VARIABLE = "LARDER_DEMO_DIR"
_DEMO_NAME = "larder-demo"
_ROOT = Path(__file__).resolve().parents[2]


def doctor(client: Client, options: argparse.Namespace) -> int:
    """Print what this PC has, each figure with how it was found."""
    kept = find_folders()
    folders = [absolute(folder) for folder in options.folders] or [str(kept.data)]
    machine = client.ask(
        DescribeMachine(request_id=client.new_id(), folders=folders), MachineDescribed
    ).machine
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
    print(f"larderctl: {safe_text(text)}", file=sys.stderr)
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
            f"{machine.cpu_name}, {machine.num_physical_cores} cores, "
            f"{machine.num_logical_cores} threads"
        ),
        machine.instruction_set,
    )
    yield ("kernels", machine.kernels, "")
    yield ("RAM", *_size(machine.ram_total))
    yield ("RAM free", *_size(machine.ram_available))
    if machine.ram_limit is not None:
        yield ("RAM limit", *_size(machine.ram_limit))
    if machine.ram_read_bytes_per_s is not None:
        yield ("RAM reads", *_rate(machine.ram_read_bytes_per_s))
    for device in machine.devices:
        notes = (device.note, "simulated" if device.is_simulated else "")
        yield (
            device.device,
            (
                f"{device.name}, {size_text(device.free_bytes)} of {size_text(device.total_bytes)} "
                f"free{'' if device.is_used else ', not used'}"
            ),
            ", ".join(filter(None, notes)),
        )
    if not machine.devices:
        yield ("GPU", "none found", "")
    for drive in machine.drives:
        yield (
            "drive",
            (
                f"{size_text(drive.free_bytes)} of {size_text(drive.total_bytes)} free, "
                f"{drive.file_system}, holds {drive.folder}"
            ),
            "",
        )
        if drive.read_bytes_per_s is not None:
            yield ("drive reads", *_rate(drive.read_bytes_per_s))
    if machine.profile:
        yield ("profile", machine.profile, "figures above are this file's where it states them")


def _size(figure: Measured) -> tuple[str, str]:
    return size_text(figure.value), figure.method


def _rate(figure: Measured) -> tuple[str, str]:
    return f"{size_text(figure.value)}/s", figure.method
