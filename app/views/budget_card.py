"""The budgets and the context of a plan, with their consequence in words while they move."""

from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtWidgets import QCheckBox, QComboBox, QHBoxLayout, QVBoxLayout, QWidget

from app.state.budget_estimate import estimate_at
from app.state.budget_range import (
    BudgetRange,
    expert_ratio,
    is_simulated,
    ram_range,
    vram_range,
)
from app.text import drive_phrases, phrases, units
from app.text.monitor_words import BudgetWords, LiveWords
from app.text.words import ModelWords
from app.theme.palette import Palette
from app.timers import single_shot
from app.views.pieces import Card, label
from app.views.tier_slider import TierSlider
from runtime.protocol.machine import DeviceReport, MachineReport
from runtime.protocol.plan import BudgetCurve, PlacementPlan
from runtime.protocol.values import Tier

CONTEXT_CHOICES = (1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072)

SEND_EVERY_MS = 80
"""While the slider moves, plans are asked for no more often than this."""


class PlannedBudget(QWidget):
    """One slider, its value, and whether the planner chooses."""

    changed = Signal(object)
    """Bytes, or None for automatic; while the slider moves."""

    def __init__(self, palette: Palette, colour: str, name: str, *, is_from_zero: bool) -> None:
        super().__init__()
        self.slider = TierSlider(palette, colour, name, is_from_zero=is_from_zero)
        self.slider.moved_to.connect(self._on_moved)
        self.automatic = QCheckBox(ModelWords.RAM_AUTOMATIC)
        self.automatic.setAccessibleName(f"{name}: {ModelWords.RAM_AUTOMATIC}")
        self.automatic.setChecked(True)
        self.automatic.toggled.connect(self._on_automatic_toggled)
        self._pause = single_shot(
            self, SEND_EVERY_MS, lambda: self.changed.emit(self.slider.chosen_bytes())
        )
        self._name = label(name, "strong")
        self._value = label("", "strong")
        self._facts = label("", "dim", is_wrapping=True)
        head = QHBoxLayout()
        head.setSpacing(8)
        head.addWidget(self._name)
        head.addWidget(self._value)
        head.addStretch(1)
        head.addWidget(self.automatic)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2)
        layout.addLayout(head)
        layout.addWidget(self.slider)
        layout.addWidget(self._facts)

    def show_budget(
        self, name: str, bounds: BudgetRange, planned_bytes: int, budget_bytes: int | None
    ) -> None:
        """Show what a plan takes under a budget; the slider stays where the person holds it."""
        self._name.setText(name)
        self.slider.setAccessibleName(name)
        self.slider.show_range(bounds)
        if not self.slider.is_held and not self._pause.isActive():
            with QSignalBlocker(self.automatic):
                self.automatic.setChecked(budget_bytes is None)
            shown = planned_bytes if budget_bytes is None else budget_bytes
            self.slider.show_bytes(shown)
            self._value.setText(units.size(shown))
        self._facts.setText(drive_phrases.budget_facts(bounds))

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self.slider.show_palette(palette)

    def _on_moved(self, num_bytes: int) -> None:
        with QSignalBlocker(self.automatic):
            self.automatic.setChecked(False)
        self._value.setText(units.size(num_bytes))
        if not self._pause.isActive():
            self._pause.start()

    def _on_automatic_toggled(self, is_automatic: bool) -> None:
        self._pause.stop()
        self.changed.emit(None if is_automatic else self.slider.chosen_bytes())


class BudgetCard(Card):
    """VRAM and RAM budget of a plan, and the context."""

    ram_changed = Signal(object)
    """Bytes, or None for automatic."""
    vram_changed = Signal(str, object)
    """The device, and bytes or None for automatic."""
    context_changed = Signal(int)
    """Tokens, 0 for automatic."""

    def __init__(self, palette: Palette) -> None:
        super().__init__(BudgetWords.TITLE)
        self._device = ""
        self.vram = PlannedBudget(palette, "vram", BudgetWords.VRAM, is_from_zero=True)
        self.vram.changed.connect(lambda given: self.vram_changed.emit(self._device, given))
        self.vram.hide()
        self.ram = PlannedBudget(palette, "ram", ModelWords.RAM_BUDGET, is_from_zero=False)
        self.ram.changed.connect(self.ram_changed)
        self._unused = label("", "", is_wrapping=True)
        self._curve: BudgetCurve | None = None
        self._effect = label("", "", is_wrapping=True)
        for each in (self.vram, self.ram):
            each.slider.moved_to.connect(self._on_pointed)
        self._line = label("", "dim", is_wrapping=True)
        for widget in (self.vram, self._unused, self.ram, self._effect, self._line):
            self.body.addWidget(widget)
        self._context = QComboBox()
        # What a model can see may be longer words than those of the one before.
        self._context.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self._context.setAccessibleName(ModelWords.CONTEXT)
        self._context.activated.connect(self._on_context_chosen)
        context_row = QHBoxLayout()
        context_row.addWidget(label(ModelWords.CONTEXT, "strong"))
        context_row.addWidget(self._context)
        context_row.addWidget(label(ModelWords.CONTEXT_EXPLAINED, "dim", is_wrapping=True), 1)
        self.body.addLayout(context_row)

    def effect(self) -> str:
        """Return the consequence in words: of the plan, or of where a slider points."""
        return self._effect.text()

    def show_effect(
        self, plan: PlacementPlan, curve: BudgetCurve | None, *, is_planning: bool
    ) -> None:
        """Show what a plan comes to; while a newer one is made, what the curve says of it."""
        self._curve = curve if curve is not None and curve.kind is plan.kind else None
        if is_planning and self._curve is not None:
            self._on_pointed()
            return
        self._effect.setText(
            drive_phrases.plan_effect(
                [(tier, expert_ratio(plan, tier)) for tier in Tier],
                plan.forecast,
                plan.context_tokens,
                is_simulated=is_simulated(plan.device),
            )
        )

    def show_ram(self, plan: PlacementPlan, machine: MachineReport, budget: int | None) -> None:
        """Show what a plan takes of the RAM."""
        self.ram.show_budget(
            ModelWords.RAM_BUDGET, ram_range(machine, plan), plan.ram_bytes, budget
        )
        self._line.setText(phrases.ram_budget_line(plan))

    def show_vram(
        self, plan: PlacementPlan, device: DeviceReport | None, budget: int | None
    ) -> None:
        """Show what a plan takes of the device; nothing where there is none."""
        self.vram.setVisible(device is not None)
        self._unused.setVisible(device is not None and not plan.vram_bytes)
        if device is None:
            return
        self._device = device.device
        suffix = f" ({LiveWords.SIMULATED})" if device.is_simulated else ""
        name = f"{BudgetWords.VRAM}{suffix}"
        self.vram.show_budget(name, vram_range(device, plan), plan.vram_bytes, budget)
        self._unused.setText(drive_phrases.vram_unused(plan.min_vram_bytes))

    def show_context(self, wanted: int, planned: int, most: int) -> None:
        """Show the contexts to choose from; ``most`` is what the model can do, 0 if not known."""
        most = most or max(wanted, CONTEXT_CHOICES[-1])
        choices = [tokens for tokens in CONTEXT_CHOICES if tokens < most] + [most]
        wanted = min(wanted, most)
        if wanted and wanted not in choices:
            choices = sorted([*choices, wanted])
        with QSignalBlocker(self._context):
            self._context.clear()
            automatic = f"{ModelWords.RAM_AUTOMATIC} ({units.tokens(planned)})"
            self._context.addItem(automatic, 0)
            for tokens in choices:
                self._context.addItem(units.tokens(tokens), tokens)
            self._context.setCurrentIndex(max(0, self._context.findData(wanted)))

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self.vram.show_palette(palette)
        self.ram.show_palette(palette)

    def _on_pointed(self) -> None:
        """Say at once what is to be expected: the plan takes a moment."""
        if self._curve is None:
            return
        ram, vram = (
            None if each.automatic.isChecked() else each.slider.chosen_bytes()
            for each in (self.ram, self.vram)
        )
        estimate = estimate_at(self._curve, ram_bytes=ram, vram_bytes=vram)
        if estimate is not None:
            self._effect.setText(
                drive_phrases.plan_effect(
                    estimate.ratios,
                    estimate.forecast,
                    estimate.context_tokens,
                    is_simulated=is_simulated(self._curve.device),
                )
            )

    def _on_context_chosen(self, index: int) -> None:
        self.context_changed.emit(int(self._context.itemData(index)))
