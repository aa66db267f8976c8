"""What this PC has, as far as running a model is concerned."""

import enum

from runtime.protocol.values import Value


class Measured(Value):
    """A number with where it comes from, so that a person can judge it."""

    value: float
    method: str
    """For example ``cgroup memory.max``, ``psutil``, ``profile``, ``measured 0.2 s``."""
    age_s: float | None = None
    """How long ago it was measured, where it was kept since; None: found just now."""


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


class DepthRate(Value):
    """How fast a drive reads with so many reads in flight."""

    num_at_once: int
    bytes_per_s: float


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
    depth_rates: list[DepthRate] = []
    """Reads of the size that ``read_bytes_per_s`` is told for; empty if not measured."""
    temperature_c: float | None = None
    """Degrees Celsius, where the system tells."""
    num_readers: Measured | None = None
    """Readers of what a computation waits for, as a person states it; None: chosen while loading
    by what the drive likes best."""
    joules_per_gb: Measured | None = None
    """Energy of reading 10^9 bytes, as a person states it; None: assumed."""


class MemoryHolder(Value):
    """A program that holds RAM, or memory of an accelerator."""

    name: str
    process_id: int
    held_bytes: int | None
    """None where the driver does not tell."""


class DeviceReport(Value):
    """One accelerator."""

    device: str
    name: str
    total_bytes: int
    free_bytes: int
    is_simulated: bool = False
    link_bytes_per_s: Measured | None = None
    """Host to device."""
    link_back_bytes_per_s: Measured | None = None
    """Device to host; None where it was not measured."""
    link_problem: str = ""
    """Why the link could not be measured, technically; empty if it was, or nobody tried yet."""
    read_bytes_per_s: Measured | None = None
    """The device from its own memory."""
    work_watts: Measured | None = None
    """Power while it computes, as a person states it; None: assumed."""
    is_used: bool = False
    """Whether plans use it: of the devices that the installed engine can drive, the first."""
    note: str = ""
    held_by: list[MemoryHolder] = []
    """Other programs on the device, the largest first, as far as the driver tells."""
    shared_bytes: int = 0
    """RAM that the device may use beside its own memory. It is RAM: never part of the total."""
    reserve_bytes: int = 0
    """What the planner leaves free of it for other programs."""


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
    """The tightest limit below the total that really applies, if there is one."""
    ram_read_bytes_per_s: Measured | None
    devices: list[DeviceReport]
    drives: list[DriveReport]
    kernels: str
    energy_sources: list[str] = []
    """What can be measured here, for example ``rapl:package-0``; nothing: energy is estimated."""
    profile: str = ""
    """Path of the machine profile in force, empty if the figures are this machine's own."""
    ram_reclaimable: Measured | None = None
    """Cache of files in ``ram_available``, which the system gives up when memory is wanted."""
    ram_limits: list[Measured] = []
    """All limits found, the tightest first: control group, WSL, job, address space, commit."""
    ram_reserve_bytes: int = 0
    """What the planner leaves free of RAM for the system and other programs."""
    pc_watts: Measured | None = None
    """Power of the whole PC at work without its card, as a person states it; None: assumed."""
    rest_watts: Measured | None = None
    """Power of what is beside processor and memory, as a person states it; None: assumed."""
    energy_method: str = ""
    """Who says which of the energy sources count; empty where all do."""
    processor_method: str = ""
    """Who says how many cores compute, or with which instructions; empty where nobody does."""
    ram_held_by: list[MemoryHolder] = []
    """Other programs with much of the RAM, the largest first."""
