"""The RAM slider and the context, with their consequence in words while they move."""

from PySide6.QtCore import QSignalBlocker, Qt, QTimer, Signal
from PySide6.QtWidgets import QCheckBox, QComboBox, QHBoxLayout, QSlider

from app.text import phrases, units
from app.text.words import ModelWords
from app.views.pieces import Card, label
from runtime.protocol.plan import PlacementPlan

STEPS = 200
SETTLE_MS = 120
"""The plan is asked for when the slider has rested this long."""
CONTEXT_CHOICES = (1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072)


class BudgetCard(Card):
    """RAM budget between what a plan needs at least and what holds every expert."""

    ram_changed = Signal(object)
    """Bytes, or None for automatic."""
    context_changed = Signal(int)
    """Tokens, 0 for automatic."""

    def __init__(self) -> None:
        super().__init__(ModelWords.RAM_BUDGET)
        self._plan: PlacementPlan | None = None
        self._max_bytes = 0
        self._slider = QSlider(Qt.Orientation.Horizontal)
        self._slider.setRange(0, STEPS)
        self._slider.setAccessibleName(ModelWords.RAM_BUDGET)
        self._slider.valueChanged.connect(self._on_moved)
        self._automatic = QCheckBox(ModelWords.RAM_AUTOMATIC)
        self._automatic.setChecked(True)
        self._automatic.toggled.connect(self._on_automatic_toggled)
        self._value = label("", "strong")
        self._line = label("", "dim", is_wrapping=True)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(SETTLE_MS)
        self._timer.timeout.connect(self._emit_ram)
        row = QHBoxLayout()
        row.setSpacing(12)
        row.addWidget(self._slider, 1)
        row.addWidget(self._value)
        row.addWidget(self._automatic)
        self.body.addLayout(row)
        self.body.addWidget(self._line)
        self._context = QComboBox()
        self._context.setAccessibleName(ModelWords.CONTEXT)
        self._context.activated.connect(self._on_context_chosen)
        context_row = QHBoxLayout()
        context_row.addWidget(label(ModelWords.CONTEXT, "strong"))
        context_row.addWidget(self._context)
        context_row.addWidget(label(ModelWords.CONTEXT_EXPLAINED, "dim", is_wrapping=True), 1)
        self.body.addLayout(context_row)

    def show_plan(
        self,
        plan: PlacementPlan,
        *,
        budget_bytes: int | None,
        context_tokens: int,
        max_context_tokens: int,
    ) -> None:
        """Show what a plan takes; the slider stays where the person holds it."""
        self._plan = plan
        self._max_bytes = max(plan.all_ram_bytes, plan.min_ram_bytes)
        is_held = self._slider.isSliderDown() or self._timer.isActive()
        with QSignalBlocker(self._slider), QSignalBlocker(self._automatic):
            if not is_held:
                self._automatic.setChecked(budget_bytes is None)
                shown = plan.ram_bytes if budget_bytes is None else budget_bytes
                self._slider.setValue(self._step_of(shown))
                self._value.setText(units.gib(shown))
        self._slider.setEnabled(self._max_bytes > plan.min_ram_bytes)
        self._line.setText(phrases.ram_budget_line(plan))
        self._show_contexts(context_tokens, plan.context_tokens, max_context_tokens)

    def _show_contexts(self, wanted: int, planned: int, most: int) -> None:
        choices = [tokens for tokens in CONTEXT_CHOICES if tokens < most] + [most]
        if wanted and wanted not in choices:
            choices = sorted([*choices, wanted])
        with QSignalBlocker(self._context):
            self._context.clear()
            automatic = f"{ModelWords.RAM_AUTOMATIC} ({units.tokens(planned)})"
            self._context.addItem(automatic, 0)
            for tokens in choices:
                self._context.addItem(units.tokens(tokens), tokens)
            self._context.setCurrentIndex(max(0, self._context.findData(wanted)))

    def _bytes_of(self, step: int) -> int:
        if self._plan is None:
            return 0
        least = self._plan.min_ram_bytes
        return least + round((self._max_bytes - least) * step / STEPS)

    def _step_of(self, num_bytes: int) -> int:
        if self._plan is None or self._max_bytes <= self._plan.min_ram_bytes:
            return STEPS
        least = self._plan.min_ram_bytes
        return round((num_bytes - least) / (self._max_bytes - least) * STEPS)

    def _on_moved(self, step: int) -> None:
        with QSignalBlocker(self._automatic):
            self._automatic.setChecked(False)
        self._value.setText(units.gib(self._bytes_of(step)))
        self._timer.start()

    def _emit_ram(self) -> None:
        if not self._automatic.isChecked():
            self.ram_changed.emit(self._bytes_of(self._slider.value()))

    def _on_automatic_toggled(self, is_automatic: bool) -> None:
        self._timer.stop()
        self.ram_changed.emit(None if is_automatic else self._bytes_of(self._slider.value()))

    def _on_context_chosen(self, index: int) -> None:
        self.context_changed.emit(int(self._context.itemData(index)))
