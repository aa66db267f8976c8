"""Examples of messages about this PC and its figures."""

from runtime.protocol.figure_messages import (
    DescribeFigures,
    Figure,
    FiguresDescribed,
    FigureUnit,
    StateFigure,
)
from runtime.protocol.machine import (
    DepthRate,
    DeviceReport,
    DriveKind,
    DriveReport,
    MachineReport,
    Measured,
    MemoryHolder,
)

MACHINE = MachineReport(
    operating_system="Linux",
    cpu_name="CPU",
    num_physical_cores=2,
    num_logical_cores=4,
    instruction_set="avx2",
    ram_total=Measured(value=1.0, method="psutil"),
    ram_available=Measured(value=0.5, method="psutil"),
    ram_limit=Measured(value=0.75, method="cgroup memory.max"),
    ram_read_bytes_per_s=None,
    devices=[
        DeviceReport(
            device="cuda:0",
            name="GPU",
            total_bytes=2,
            free_bytes=1,
            held_by=[MemoryHolder(name="game", process_id=7, held_bytes=1)],
            shared_bytes=3,
            link_back_bytes_per_s=Measured(value=0.5, method="measured"),
            link_problem="no answer in 6 s",
            work_watts=Measured(value=70.0, method="profile"),
        )
    ],
    drives=[
        DriveReport(
            folder="/",
            file_system="ext4",
            free_bytes=1,
            total_bytes=2,
            kind=DriveKind.NVME,
            is_direct=True,
            depth_rates=[DepthRate(num_at_once=4, bytes_per_s=3e9)],
            temperature_c=41.0,
            num_readers=Measured(value=2.0, method="profile"),
            joules_per_gb=Measured(value=0.7, method="profile"),
        )
    ],
    kernels="reference",
    energy_sources=["rapl:package-0"],
    profile="/profile.json",
    ram_reclaimable=Measured(value=0.25, method="meminfo", age_s=60.0),
    ram_limits=[Measured(value=0.75, method="cgroup memory.max")],
    pc_watts=Measured(value=80.0, method="profile"),
    rest_watts=Measured(value=30.0, method="profile"),
    energy_method="profile",
    processor_method="profile",
    ram_held_by=[MemoryHolder(name="browser", process_id=8, held_bytes=9)],
)
FIGURE_COMMANDS = (
    DescribeFigures(request_id=20, folder="/models", is_fresh=True),
    StateFigure(request_id=21, name="ram.read_gb_per_s", number=40.0),
)
FIGURES_DESCRIBED = FiguresDescribed(
    request_id=20,
    figures=[
        Figure(
            name="ram.read_gb_per_s",
            unit=FigureUnit.GB_PER_S,
            found=Measured(value=29.5, method="measured", age_s=60.0),
            stated=40.0,
        )
    ],
    file="/settings/machine.json",
)
