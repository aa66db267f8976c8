"""What the hardware under a loaded model could move at most."""

from pathlib import Path

from runtime.hardware.drives import drive_of
from runtime.hardware.machine import describe_machine
from runtime.hardware.rates import RateCache, sized_drive_key
from runtime.protocol.machine import Measured
from runtime.protocol.plan import PlacementPlan
from runtime.protocol.telemetry import RateLimits


def rate_limits(plan: PlacementPlan, rates_path: Path | None) -> RateLimits:
    """Return the rates of RAM, of the plan's drive and of its device's link, 0 where unknown.

    ``rates_path`` is where measured rates are kept; a machine profile counts before them.
    """
    machine = describe_machine([plan.store_folder], rates_path=rates_path)
    links = {device.device: device.link_bytes_per_s for device in machine.devices}
    link = links.get(plan.device) or next(
        (device.link_bytes_per_s for device in machine.devices if device.is_used), None
    )
    drive = next((report.read_bytes_per_s for report in machine.drives), None)
    return RateLimits(
        ram_read=_value(machine.ram_read_bytes_per_s),
        link=_value(link),
        drive=_value(drive) or _kept_of_drive(plan.store_folder, rates_path),
    )


def _kept_of_drive(folder: str, rates_path: Path | None) -> float:
    """Return the highest rate that was measured of a drive, with reads of any size."""
    drive = drive_of(folder)
    if drive is None or rates_path is None:
        return 0.0
    return RateCache(rates_path).fastest(sized_drive_key(drive.mount_point, drive.total_bytes))


def _value(rate: Measured | None) -> float:
    return 0.0 if rate is None else rate.value
