"""All that measurements are shown from, in one hand."""

import dataclasses

from app.state.budget_range import is_simulated, ram_range, used_device, vram_range
from app.state.drive_warning import DriveUse
from app.state.drive_watch import DriveWatch
from app.state.energy_book import EnergyBook
from app.state.live_budgets import LiveBudgets
from app.state.memory_map import MemoryMap, memory_map
from app.state.session import Session
from app.state.settings import SettingsState
from app.state.telemetry import TelemetryState


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Monitor:
    """The parts of the state that the Monitor page and the cards beside a chat read."""

    session: Session
    settings: SettingsState
    telemetry: TelemetryState
    drive: DriveWatch
    live: LiveBudgets
    energy: EnergyBook

    @property
    def tariff(self) -> tuple[float, str]:
        """Price of a kilowatt-hour and its currency."""
        values = self.settings.values
        return values.energy_price_per_kwh, values.currency

    @property
    def is_device_simulated(self) -> bool:
        """Whether the loaded model's graphics card is only simulated."""
        plan = self.session.loaded_plan
        return plan is not None and is_simulated(plan.device)

    @property
    def expert_bytes(self) -> int:
        """Bytes of one expert of the loaded model as it lies here, the mean of all; 0 without."""
        loaded = self.session.loaded
        shares = loaded.tiers if loaded is not None else []
        num_experts = sum(share.num_experts for share in shares)
        return sum(share.bytes for share in shares) // num_experts if num_experts else 0

    def memory_maps(self) -> tuple[MemoryMap | None, MemoryMap | None]:
        """Return who holds what of RAM and, where a device is used, of VRAM; None if unknown."""
        session, latest = self.session, self.telemetry.latest
        machine, plan, loaded = session.machine, session.loaded_plan, session.loaded
        if machine is None or plan is None or loaded is None or latest is None:
            return None, None
        ram = memory_map(ram_range(machine, plan), latest.ram_by_kind, loaded.base_bytes)
        device = used_device(machine)
        if device is None or not plan.vram_bytes:
            return ram, None
        return ram, memory_map(vram_range(device, plan), latest.vram_by_kind)

    def cost_per_1000_tokens(self, use: DriveUse) -> float:
        """What a thousand tokens cost at the person's tariff."""
        return use.cost_per_1000_tokens(self.tariff[0])
