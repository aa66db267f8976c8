"""The settings of memory: the loaded model's sliders, or what the next model may take."""

from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.state.budget_range import free_range, is_simulated, used_device
from app.state.monitor import Monitor
from app.text.monitor_words import BudgetWords, LiveWords
from app.text.words import ModelWords
from app.theme.palette import Palette
from app.views.budget_card import PlannedBudget
from app.views.live_budget_card import LiveBudgetCard
from app.views.pieces import Card, label


class NextBudgetCard(Card):
    """While no model is loaded: budgets that count for the next one, each as it comes by itself."""

    def __init__(self, monitor: Monitor, palette: Palette) -> None:
        super().__init__(BudgetWords.TITLE_NEXT)
        self._monitor = monitor
        self._device = ""
        budgets = monitor.session.budgets
        self.vram = PlannedBudget(palette, "vram", BudgetWords.VRAM, is_from_zero=True)
        self.vram.changed.connect(lambda given: budgets.set_vram(self._device, given))
        self.ram = PlannedBudget(palette, "ram", ModelWords.RAM_BUDGET, is_from_zero=False)
        self.ram.changed.connect(budgets.set_ram)
        self.body.addWidget(label(BudgetWords.NEXT_MODEL, "dim", is_wrapping=True))
        self.body.addWidget(self.vram)
        self.body.addWidget(self.ram)

    def show_state(self) -> None:
        """Show this PC's memory and the budgets of the settings."""
        machine, budgets = self._monitor.session.machine, self._monitor.session.budgets
        if machine is None:
            return
        bounds = free_range(machine, None)
        self.ram.show_budget(ModelWords.RAM_BUDGET, bounds, bounds.most_bytes, budgets.ram_bytes)
        device = used_device(machine)
        self.vram.setVisible(device is not None)
        if device is not None:
            self._device = device.device
            suffix = f" ({LiveWords.SIMULATED})" if is_simulated(device.device) else ""
            bounds = free_range(machine, device)
            given = budgets.vram_bytes.get(device.device)
            name = f"{BudgetWords.VRAM}{suffix}"
            self.vram.show_budget(name, bounds, bounds.most_bytes, given)

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self.vram.show_palette(palette)
        self.ram.show_palette(palette)


class MemorySettings(QWidget):
    """Shows the one of both that counts now."""

    def __init__(self, monitor: Monitor, palette: Palette) -> None:
        super().__init__()
        self._monitor = monitor
        self.live = LiveBudgetCard(monitor, palette)
        self.next = NextBudgetCard(monitor, palette)
        explained = label(BudgetWords.EXPLAINED, "dim", is_wrapping=True)
        self.live.body.insertWidget(self.live.body.count() - 1, explained)
        self.next.body.addWidget(label(BudgetWords.EXPLAINED, "dim", is_wrapping=True))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.live)
        layout.addWidget(self.next)
        monitor.session.changed.connect(self.show_state)
        monitor.settings.changed.connect(self.show_state)
        self.show_state()

    def show_state(self) -> None:
        """Show the loaded model's sliders, or those of the next."""
        session = self._monitor.session
        is_loaded = session.loaded_plan is not None
        self.live.setVisible(is_loaded)
        self.next.setVisible(not is_loaded and session.machine is not None)
        if not is_loaded:
            self.next.show_state()

    def showEvent(self, event: QShowEvent) -> None:
        """Look who holds the memory now."""
        super().showEvent(event)
        self._monitor.session.look_at_machine(is_changed=False)

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self.live.show_palette(palette)
        self.next.show_palette(palette)
