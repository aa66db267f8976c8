"""One report of everything that this PC has, with the method of each figure."""

import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from runtime.hardware.cards import cards_path, kept_cards, with_seen
from runtime.hardware.drives import drive_of
from runtime.hardware.engine_build import torch_kinds
from runtime.hardware.gpus import mark_used, noted, read_gpus
from runtime.hardware.memory import host_memory, read_memory
from runtime.hardware.processor import read_processor
from runtime.hardware.profile import MachineProfile, StatedCard, profile_of
from runtime.hardware.rates import RAM, RateCache, drive_key, link_back_key, link_key
from runtime.hardware.system_files import SystemFiles
from runtime.protocol.machine import DeviceReport, DriveReport, MachineReport, Measured

_METHOD = "profile"


def describe_machine(
    folders: Sequence[str | os.PathLike[str]] = (),
    env: Mapping[str, str] | None = None,
    *,
    kernels: str = "",
    rates_path: Path | None = None,
    files: SystemFiles | None = None,
) -> MachineReport:
    """Return what this PC has, and the drives of the folders; nothing is measured here.

    ``kernels`` is the name of the kernels in use. ``rates_path`` is where measured rates are kept;
    without it none are known. Raises ``LarderError`` with ``MACHINE_FILE_INVALID`` if the profile
    that the environment names cannot be used.
    """
    env = os.environ if env is None else env
    profile = profile_of(env)
    files = files or SystemFiles()
    memory = read_memory(host_memory(), files)
    processor = read_processor(files)
    rates = RateCache(rates_path) if rates_path is not None else None
    report = MachineReport(
        operating_system=_operating_system(files),
        cpu_name=processor.name,
        num_physical_cores=processor.num_physical_cores,
        num_logical_cores=processor.num_logical_cores,
        instruction_set=processor.instruction_set,
        ram_total=memory.total,
        ram_available=memory.available,
        ram_limit=memory.limit,
        ram_reclaimable=memory.reclaimable,
        ram_limits=list(memory.limits),
        ram_read_bytes_per_s=rates.rate(RAM) if rates else None,
        devices=_gpus(files, env, rates),
        drives=[drive for folder in folders if (drive := _drive_report(folder, rates))],
        kernels=kernels,
    )
    return report if profile is None else apply_profile(report, profile, rates)


def apply_profile(
    report: MachineReport, profile: MachineProfile, rates: RateCache | None = None
) -> MachineReport:
    """Return the report with what the profile states in place of this PC's own figures.

    Where it states the RAM, this PC's limits do not count; where it states devices, its cards
    do not. ``rates`` are for simulated cards whose link counts as it was measured.
    """
    total, available, limit = report.ram_total, report.ram_available, report.ram_limit
    limits = report.ram_limits
    if profile.ram_total_bytes is not None:
        total = _stated(profile.ram_total_bytes)
        limit, limits = None, []
        available = min(available, total, key=lambda measured: measured.value)
    if profile.ram_limit_bytes is not None:
        limit = _stated(profile.ram_limit_bytes)
        limits = [limit]
        available = min(available, limit, key=lambda measured: measured.value)
    if profile.ram_available_bytes is not None:
        available = _stated(profile.ram_available_bytes)
    elif profile.devices:
        available = _beside_simulated(available, profile)
    cores = _cores(report, profile)
    return msgspec.structs.replace(
        report,
        ram_total=total,
        ram_available=available,
        ram_limit=limit,
        ram_limits=limits,
        ram_read_bytes_per_s=_stated_or(profile.ram_read_bytes_per_s, report.ram_read_bytes_per_s),
        num_physical_cores=report.num_physical_cores if cores is None else cores,
        num_logical_cores=report.num_logical_cores if cores is None else cores,
        pc_watts=_stated_or(profile.pc_watts, report.pc_watts),
        rest_watts=_stated_or(profile.rest_watts, report.rest_watts),
        processor_method="" if cores is None and not profile.instruction_set else _METHOD,
        energy_method="" if profile.energy_sources is None else _METHOD,
        instruction_set=profile.instruction_set or report.instruction_set,
        devices=mark_used(_simulated(profile, rates)) or _with_cards(report.devices, profile),
        drives=[_profiled_drive(drive, profile) for drive in report.drives],
        profile=profile.path,
    )


def _cores(report: MachineReport, profile: MachineProfile) -> int | None:
    """Return the cores that compute, where the profile says so: no more than threads."""
    threads = profile.num_threads
    if threads is None:
        return profile.num_physical_cores
    return min(profile.num_physical_cores or report.num_physical_cores, threads)


def _gpus(
    files: SystemFiles, env: Mapping[str, str], rates: RateCache | None
) -> list[DeviceReport]:
    """Return the graphics cards with the rates of their links, as far as they were measured."""
    told = read_gpus(files, env)
    if rates is None:
        return mark_used(told, torch_kinds())
    cards = mark_used(with_seen(told, kept_cards(cards_path(rates.path))), torch_kinds())
    return [_with_link(card, rates) for card in cards]


def _with_link(card: DeviceReport, rates: RateCache) -> DeviceReport:
    """Return a card with what was measured of its link, or why that could not be."""
    rate = rates.rate(link_key(card.device))
    failure = None if rate is not None else rates.failure(link_key(card.device))
    return msgspec.structs.replace(
        card,
        link_bytes_per_s=rate,
        link_back_bytes_per_s=rates.rate(link_back_key(card.device)),
        link_problem="" if failure is None else failure.reason,
    )


def _beside_simulated(available: Measured, profile: MachineProfile) -> Measured:
    """Return what is left beside the simulated cards, whose memory is RAM of this PC."""
    left = max(0, int(available.value) - sum(device.free_bytes for device in profile.devices))
    if available.method == _METHOD:
        return _stated(left)
    return Measured(value=left, method=f"{available.method}, less the simulated cards")


def _stated(value: float) -> Measured:
    return Measured(value=value, method=_METHOD)


def _stated_or(value: float | None, other: Measured | None) -> Measured | None:
    return other if value is None else _stated(value)


def _simulated(profile: MachineProfile, rates: RateCache | None) -> list[DeviceReport]:
    cards: list[DeviceReport] = []
    for item in profile.devices:
        card = DeviceReport(
            device=item.device,
            name=item.name,
            total_bytes=item.total_bytes,
            free_bytes=item.free_bytes,
            is_simulated=True,
        )
        if not item.is_link_measured:
            stated = _stated(item.link_bytes_per_s)
            card = msgspec.structs.replace(card, link_bytes_per_s=stated)
        elif rates is not None:
            card = _with_link(card, rates)
        cards.append(card)
    return cards


def _with_cards(devices: list[DeviceReport], profile: MachineProfile) -> list[DeviceReport]:
    """Return this PC's own cards with what the profile states of them."""
    stated = {card.device: card for card in profile.cards}
    return [_with_card(device, stated.get(device.device)) for device in devices]


def _with_card(device: DeviceReport, card: StatedCard | None) -> DeviceReport:
    if card is None:
        return device
    total = device.total_bytes if card.total_bytes is None else card.total_bytes
    free = device.free_bytes if card.free_bytes is None else card.free_bytes
    return noted(
        msgspec.structs.replace(
            device,
            total_bytes=total,
            free_bytes=min(free, total),
            link_bytes_per_s=_stated_or(card.link_bytes_per_s, device.link_bytes_per_s),
            link_back_bytes_per_s=_stated_or(
                card.link_back_bytes_per_s, device.link_back_bytes_per_s
            ),
            read_bytes_per_s=_stated_or(card.read_bytes_per_s, device.read_bytes_per_s),
            work_watts=_stated_or(card.work_watts, device.work_watts),
        ),
        _METHOD,
    )


def _profiled_drive(drive: DriveReport, profile: MachineProfile) -> DriveReport:
    total, free = profile.drive_total_bytes, profile.drive_free_bytes
    total = drive.total_bytes if total is None else total
    return msgspec.structs.replace(
        drive,
        total_bytes=total,
        free_bytes=min(drive.free_bytes, total) if free is None else free,
        read_bytes_per_s=_profiled_rate(drive.read_bytes_per_s, profile),
        num_readers=_stated_or(profile.num_drive_readers, drive.num_readers),
        joules_per_gb=_stated_or(profile.drive_j_per_gb, drive.joules_per_gb),
    )


def _profiled_rate(measured: Measured | None, profile: MachineProfile) -> Measured | None:
    """Return the stated rate; without one what was measured, or less where reads are held back."""
    stated, most = profile.drive_read_bytes_per_s, profile.drive_most_bytes_per_s
    if stated is None and most is not None and (measured is None or measured.value > most):
        stated = most
    return _stated_or(stated, measured)


def _drive_report(folder: str | os.PathLike[str], rates: RateCache | None) -> DriveReport | None:
    drive = drive_of(folder)
    if drive is None:
        return None
    return DriveReport(
        folder=drive.folder,
        file_system=drive.file_system,
        free_bytes=drive.free_bytes,
        total_bytes=drive.total_bytes,
        read_bytes_per_s=rates.rate(drive_key(drive.mount_point)) if rates else None,
    )


def _operating_system(files: SystemFiles) -> str:
    """Return the system's name as people know it."""
    for line in files.text("/etc/os-release").splitlines():
        key, _, value = line.partition("=")
        if key == "PRETTY_NAME":
            return value.strip().strip('"')
    return f"{platform.system()} {platform.release()}".strip()
