"""The window's state around a model in three tiers, and samples as an engine sends them."""

import dataclasses
import math
from pathlib import Path

import msgspec

from app.state.drive_watch import DriveWatch
from app.state.energy_book import EnergyBook
from app.state.library import LibraryState
from app.state.live_budgets import LiveBudgets
from app.state.monitor import Monitor
from app.state.session import Session
from app.state.settings import SettingsState
from app.state.telemetry import TelemetryState
from runtime.protocol.machine import DeviceReport, MachineReport
from runtime.protocol.messages import (
    DescribeMachine,
    LoadModel,
    MachineDescribed,
    ModelLoaded,
    TelemetrySampled,
)
from runtime.protocol.model import LoadedModel, TierShare
from runtime.protocol.plan import MemoryPart, PlacementPlan, Reason, ReasonCode
from runtime.protocol.telemetry import MachineStrain, RateLimits, TelemetrySample
from runtime.protocol.values import EnergyPart, Tier, TierCount
from tests.support.expert_maps import some_expert_map
from tests.support.fake_client import FakeClient
from tests.support.session_replies import answer_inspect, answer_plan
from tests.support.window_values import FOLDER, some_forecast, some_loaded, some_machine, some_plan

GIB = 1 << 30
DEVICE = "simulated:0"


class StageClock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def machine_with_device() -> MachineReport:
    """Return a PC with 32 GiB of RAM and a simulated card of 12 GiB."""
    device = DeviceReport(
        device=DEVICE,
        name="Simulated card",
        total_bytes=12 * GIB,
        free_bytes=round(10.9 * GIB),
        is_simulated=True,
        is_used=True,
    )
    machine = some_machine()
    changed: MachineReport = msgspec.structs.replace(
        machine,
        devices=[device],
        ram_total=msgspec.structs.replace(machine.ram_total, value=32 * GIB),
        ram_available=msgspec.structs.replace(machine.ram_available, value=24 * GIB),
    )
    return changed


def three_tiers() -> list[TierShare]:
    """Return 6144 experts over three tiers."""
    return [
        TierShare(tier=Tier.VRAM, device=DEVICE, num_experts=1904, bytes=round(5.1 * GIB)),
        TierShare(tier=Tier.RAM, device="cpu", num_experts=3200, bytes=round(8.6 * GIB)),
        TierShare(tier=Tier.DRIVE, device="sda", num_experts=1040, bytes=round(2.8 * GIB)),
    ]


def plan_with_device() -> PlacementPlan:
    """Return a plan that uses the device."""
    forecast = msgspec.structs.replace(some_forecast(), drive_bytes_per_token=56e6)
    plan: PlacementPlan = msgspec.structs.replace(
        some_plan(forecast=forecast),
        device=DEVICE,
        tiers=three_tiers(),
        vram_parts={MemoryPart.DENSE: GIB, MemoryPart.EXPERTS: round(5.1 * GIB)},
        vram_bytes=round(7.4 * GIB),
        min_vram_bytes=2 * GIB,
        all_vram_bytes=20 * GIB,
        ram_bytes=round(9.2 * GIB),
        min_ram_bytes=2 * GIB,
        all_ram_bytes=18 * GIB,
        reasons=[
            Reason(
                code=ReasonCode.VRAM_LIMITED_BY_FREE,
                parameters={"reserve_bytes": round(0.8 * GIB)},
            )
        ],
    )
    return plan


def loaded_with_device() -> LoadedModel:
    """Return the model that such a plan makes."""
    model: LoadedModel = msgspec.structs.replace(
        some_loaded(name="Qwen3-30B-A3B"), tiers=three_tiers(), budget_bytes=round(9.2 * GIB)
    )
    return model


def live_sample(step: int, *, wait_ratio: float = 0.12, seed: int = 1) -> TelemetrySample:
    """Return one sample of a model that writes about 21 tokens a second."""
    wave = 1 + 0.08 * math.sin(step / 3) + 0.05 * math.sin(step / 1.3)
    return TelemetrySample(
        interval_s=0.1,
        num_dropped=0,
        num_tokens=2,
        decode_tokens_per_s=21.4 * wave,
        tiers=[
            TierCount(tier=Tier.VRAM, hits=610, misses=390, bytes=580_000),
            TierCount(tier=Tier.RAM, hits=370, misses=20, bytes=390_000),
            TierCount(tier=Tier.DRIVE, hits=20, misses=0, bytes=30_000),
        ],
        drive_bytes_read=round(0.14e9 * wave),
        seconds={
            "device": 0.034,
            "compute": 0.066 - 0.1 * wait_ratio,
            "drive_wait": 0.1 * wait_ratio,
            "other": 0.004,
        },
        resident_bytes=9 * GIB,
        ram_by_kind={"experts": 8 * GIB},
        vram_by_kind={"experts": 5 * GIB},
        link_bytes=round(0.9e9 * wave),
        ram_bytes_read=round(3.4e9 / wave),
        limits=RateLimits(ram_read=52e9, link=25e9, drive=6.8e9),
        energy=[
            EnergyPart(source="nvml:0", joules=7.4 * wave, is_measured=True),
            EnergyPart(source="rapl:package", joules=3.8 * wave, is_measured=True),
            EnergyPart(source="assumed-watts", joules=1.6, is_measured=False),
            EnergyPart(source="drive-reads", joules=0.14 * wave, is_measured=False),
        ],
        strain=MachineStrain(
            own_bytes_written=4_000_000,
            drive_bytes_written=1_400_000_000,
            drive_temperature_c=43.0,
            processor_temperature_c=61.0,
        ),
        experts=some_expert_map(seed=seed),
    )


@dataclasses.dataclass(slots=True)
class MonitorStage:
    """All that a page reads, with the runtime played by ``client``."""

    client: FakeClient
    clock: StageClock
    monitor: Monitor

    def play(self, num_samples: int, *, wait_ratio: float = 0.12) -> None:
        """Let the engine work for some tenths of a second."""
        for step in range(num_samples):
            self.clock.now_s += 0.1
            sample = live_sample(step, wait_ratio=wait_ratio)
            self.client.answer(TelemetrySampled(sample=sample))

    def close(self) -> None:
        """Write what is to be written."""
        self.monitor.settings.close()


def ready_stage(
    folder: Path, *, plan: PlacementPlan | None = None, is_loaded: bool = True
) -> MonitorStage:
    """Return the state with a model in three tiers loaded, or with none."""
    client = FakeClient()
    settings = SettingsState(folder / "settings.json")
    session = Session(client, settings, LibraryState(folder / "library.json"))
    clock = StageClock()
    telemetry = TelemetryState(clock=clock)
    session.sample_received.connect(telemetry.add)
    monitor = Monitor(
        session=session,
        settings=settings,
        telemetry=telemetry,
        drive=DriveWatch(session, telemetry, settings),
        live=LiveBudgets(session),
        energy=EnergyBook(folder / "energy.json"),
    )
    session.start()
    client.open()
    client.answer(
        MachineDescribed(
            request_id=client.last(DescribeMachine).request_id, machine=machine_with_device()
        )
    )
    if is_loaded:
        session.load_folder(FOLDER)
        answer_plan(client, plan or plan_with_device())
        client.answer(
            ModelLoaded(request_id=client.last(LoadModel).request_id, model=loaded_with_device())
        )
        answer_inspect(client)
        answer_plan(client, plan or plan_with_device())
    return MonitorStage(client, clock, monitor)
