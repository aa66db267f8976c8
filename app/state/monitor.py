"""All that measurements are shown from, in one hand."""

import dataclasses

from app.state.budget_range import is_simulated
from app.state.drive_warning import DriveUse
from app.state.drive_watch import DriveWatch
from app.state.energy_book import EnergyBook
from app.state.live_budgets import LiveBudgets
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

    def cost_per_1000_tokens(self, use: DriveUse) -> float:
        """What a thousand tokens cost at the person's tariff."""
        return use.cost_per_1000_tokens(self.tariff[0])
