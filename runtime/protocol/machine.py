"""What this PC has, as far as running a model is concerned."""

import enum

from runtime.protocol.values import Value


class Measured(Value):
    """A number with where it comes from, so that a person can judge it."""

    value: float
    method: str
    """For example ``cgroup memory.max``, ``psutil``, ``profile``, ``measured 0.2 s``."""


class DriveKind(enum.StrEnum):
    """What a drive is, as far as the system tells."""

    NVME = "nvme"
    SSD = "ssd"
    DISK = "disk"
    """Turning."""
    VIRTUAL = "virtual"
    """Of a virtual machine; what it really is, is not told."""
    NETWORK = "network"
    UNKNOWN = "unknown"


class DriveReport(Value):
    """The drive that holds a folder."""

    folder: str
    file_system: str
    free_bytes: int
    total_bytes: int
    read_bytes_per_s: Measured | None = None
    kind: DriveKind = DriveKind.UNKNOWN
    is_direct: bool | None = None
    """Whether files of the folder can be read past the system's cache; None without a file."""


class DeviceReport(Value):
    """One accelerator."""

    device: str
    name: str
    total_bytes: int
    free_bytes: int
    is_simulated: bool = False
    link_bytes_per_s: Measured | None = None
    """Host to device."""
    read_bytes_per_s: Measured | None = None
    """The device from its own memory."""
    is_used: bool = False
    """Whether plans use it: of the devices that the installed engine can drive, the first."""
    note: str = ""


class MachineReport(Value):
    """Totals, free amounts, limits and rates of this PC; the profile's where one is set."""

    operating_system: str
    cpu_name: str
    num_physical_cores: int
    num_logical_cores: int
    instruction_set: str
    ram_total: Measured
    ram_available: Measured
    """What can be taken now without swapping; reclaimable cache counts as free."""
    ram_limit: Measured | None
    """A limit below the total that really applies (control group, job), if there is one."""
    ram_read_bytes_per_s: Measured | None
    devices: list[DeviceReport]
    drives: list[DriveReport]
    kernels: str
    energy_sources: list[str] = []
    """What can be measured here, for example ``rapl:package-0``; nothing: energy is estimated."""
    profile: str = ""
    """Path of the machine profile in force, empty if the figures are this machine's own."""
