"""The budgets of the loaded model: sliders, their consequence while they move, what came of it."""

from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.state.budget_range import (
    BudgetRange,
    expert_ratio,
    is_simulated,
    ram_range,
    used_device,
    vram_range,
)
from app.state.monitor import Monitor
from app.text import drive_phrases, units
from app.text.errors import sentence
from app.text.monitor_words import BudgetWords, LiveWords
from app.theme.palette import Palette
from app.views.pieces import Card, label, set_look
from app.views.tier_slider import TierSlider
from runtime.protocol.plan import PlacementPlan
from runtime.protocol.values import Tier


class BudgetRow(QWidget):
    """One slider with its value and what else its memory holds."""

    def __init__(self, palette: Palette, colour: str, name: str, *, is_from_zero: bool) -> None:
        super().__init__()
        self._name = label(name, "strong")
        self._value = label("", "strong")
        self._facts = label("", "dim")
        self.slider = TierSlider(palette, colour, name, is_from_zero=is_from_zero)
        self.slider.moved_to.connect(lambda _: self._show_value(self.slider.chosen_bytes()))
        head = QHBoxLayout()
        head.setSpacing(6)
        head.addWidget(self._name)
        head.addSpacing(4)
        head.addWidget(self._value)
        head.addWidget(self._facts, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(head)
        layout.addWidget(self.slider)

    def show_budget(self, name: str, bounds: BudgetRange, num_bytes: int) -> None:
        """Show what is in force, unless the slider is held."""
        self._name.setText(name)
        self.slider.setAccessibleName(name)
        self.slider.show_range(bounds)
        self.slider.show_bytes(num_bytes)
        self._facts.setText(drive_phrases.budget_facts(bounds))
        self._show_value(self.slider.chosen_bytes() if self.slider.is_held else num_bytes)

    def _show_value(self, num_bytes: int) -> None:
        self._value.setText(units.size(num_bytes))
        self.slider.setAccessibleDescription(f"{units.size(num_bytes)} {self._facts.text()}")


class LiveBudgetCard(Card):
    """Shows ``LiveBudgets`` and passes on what the person does with the sliders."""

    def __init__(self, monitor: Monitor, palette: Palette) -> None:
        super().__init__(BudgetWords.TITLE)
        self._monitor = monitor
        self._device = ""
        self.vram = BudgetRow(palette, "vram", BudgetWords.VRAM, is_from_zero=True)
        self.ram = BudgetRow(palette, "ram", BudgetWords.RAM, is_from_zero=False)
        self._effect = label("", "", is_wrapping=True)
        self._status = label("", "dim", is_wrapping=True)
        self.body.setSpacing(6)
        for widget in (self.vram, self.ram, self._effect, self._status):
            self.body.addWidget(widget)
        self.body.addStretch(1)
        live = monitor.live
        self.ram.slider.moved_to.connect(live.move_ram)
        self.vram.slider.moved_to.connect(lambda given: live.move_vram(self._device, given))
        for row in (self.ram, self.vram):
            row.slider.let_go.connect(lambda _: live.apply())
        live.changed.connect(self.show_state)
        monitor.session.changed.connect(self.show_state)
        self.show_state()

    def effect(self) -> str:
        """Return the consequence in words."""
        return self._effect.text()

    def status(self) -> str:
        """Return what has become of the last change."""
        return self._status.text()

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        for row in (self.vram, self.ram):
            row.slider.show_palette(palette)

    def show_state(self) -> None:
        """Show the plan in force, or the one that is pointed at."""
        session, live = self._monitor.session, self._monitor.live
        plan, machine = session.loaded_plan, session.machine
        if plan is None or machine is None:
            return
        wanted, bounds = live.wanted, live.bounds or plan
        device = used_device(machine)
        self.vram.setVisible(device is not None)
        if device is not None:
            self._device = device.device
            suffix = f" ({LiveWords.SIMULATED})" if device.is_simulated else ""
            given = wanted.vram_bytes.get(device.device) if wanted is not None else None
            self.vram.show_budget(
                f"{BudgetWords.VRAM}{suffix}",
                vram_range(device, plan, bounds),
                plan.vram_bytes if given is None else given,
            )
        ram = wanted.ram_bytes if wanted is not None else None
        if ram is None and live.preview is not None and live.preview.problem is None:
            ram = live.preview.ram_bytes
        self.ram.show_budget(
            BudgetWords.RAM,
            ram_range(machine, plan, bounds),
            plan.ram_bytes if ram is None else ram,
        )
        estimate = live.estimate
        self._effect.setText(
            self._effect_of(live.preview or plan)
            if estimate is None
            else drive_phrases.plan_effect(
                estimate.ratios,
                estimate.forecast,
                estimate.context_tokens,
                is_simulated=is_simulated(self._device),
            )
        )
        self._show_status()

    def _effect_of(self, plan: PlacementPlan) -> str:
        text = drive_phrases.plan_effect(
            [(tier, expert_ratio(plan, tier)) for tier in Tier],
            plan.forecast,
            plan.context_tokens,
            is_simulated=is_simulated(plan.device),
        )
        if self._device and not plan.vram_bytes:
            return f"{drive_phrases.vram_unused(plan.min_vram_bytes)} {text}"
        return text

    def _show_status(self) -> None:
        live = self._monitor.live
        if live.error is not None:
            text, look = sentence(live.error), "error"
        elif live.is_applying:
            text, look = BudgetWords.APPLYING, "dim"
        elif live.kept is not None:
            plan = live.kept
            text, look = drive_phrases.vram_kept(plan.vram_bytes, plan.ram_bytes), "accent"
        else:
            text, look = (BudgetWords.SET if live.was_set else ""), "dim"
        set_look(self._status, "look", look)
        self._status.setText(text)
        self._status.setVisible(bool(text))
