"""The card of settings about this PC: what was found, and fields to state other figures."""

import math

import msgspec
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QSizePolicy,
    QWidget,
)

from app.state.machine_figures import MachineFigures
from app.text.errors import sentence
from app.text.figure_hints import figure_hint, is_hint_shown
from app.text.figure_words import (
    FigureWords,
    figure_found,
    figure_name,
    figure_number,
    unit_name,
)
from app.views.pieces import Card, button, clear_layout, label
from runtime.protocol.errors import ErrorCode, ErrorReport, Severity
from runtime.protocol.figure_messages import Figure, FigureUnit

_FIELD_WIDTH = 110
_UNIT_WIDTH = 36
_SPACING = 8
_TEXT_WIDTH = _FIELD_WIDTH + _SPACING + _UNIT_WIDTH
"""Text has no unit, and takes its place."""


class FigureRow(QWidget):
    """One figure: name, what was found and how, a field for another, and the way back."""

    stated = Signal(str, object)
    """Its name, and what was typed; None takes it back."""
    kept = Signal(str)
    """Its name: what was refused was taken out of the field again."""

    def __init__(self, figure: Figure) -> None:
        super().__init__()
        self._figure = figure
        self._name = figure_name(figure.name)
        self._found = label("", "dim", is_wrapping=True)
        self.field = QLineEdit()
        is_text = figure.unit is FigureUnit.TEXT
        self.field.setFixedWidth(_TEXT_WIDTH if is_text else _FIELD_WIDTH)
        self.field.setPlaceholderText(FigureWords.EMPTY)
        self.field.editingFinished.connect(self._on_typed)
        self.reset: QPushButton = button(FigureWords.RESET, "quiet")
        self.reset.setAccessibleName(f"{FigureWords.RESET}: {self._name}")
        self.reset.clicked.connect(lambda: self.stated.emit(figure.name, None))
        self._problem = label("", "error", is_wrapping=True)
        self._hint = figure_hint(figure.name)
        self.field.setToolTip(self._hint)
        caption = label(self._name, is_wrapping=True)
        caption.setBuddy(self.field)
        caption.setToolTip(self._hint)
        # However long a name is, the fields of all rows begin at one line.
        caption.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        unit = label(unit_name(figure.unit), "dim")
        unit.setFixedWidth(_UNIT_WIDTH)
        if is_text:
            # Shown before it has a parent, it would be a window of its own, and have the focus.
            unit.hide()
        typed = QHBoxLayout()
        typed.setSpacing(_SPACING)
        typed.addWidget(self.field)
        typed.addWidget(unit)
        typed.addWidget(self._found, 1)
        layout = QGridLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setHorizontalSpacing(16)
        layout.setColumnMinimumWidth(0, 220)
        layout.setColumnStretch(1, 1)
        layout.addWidget(caption, 0, 0)
        layout.addLayout(typed, 0, 1)
        if is_hint_shown(figure.name):
            layout.addWidget(label(self._hint, "dim", is_wrapping=True), 1, 1)
        # In a narrow window there is no room beside what was found.
        layout.addWidget(self.reset, 2, 1, Qt.AlignmentFlag.AlignLeft)
        layout.addWidget(self._problem, 3, 1)
        self.show_figure(figure, is_fixed=False, problem="")

    def show_figure(self, figure: Figure, *, is_fixed: bool, problem: str) -> None:
        """Show what was found, what is stated, and why what was typed was refused."""
        self._figure = figure
        self._found.setText(figure_found(figure))
        self.field.setEnabled(not is_fixed)
        # What is being typed here while another figure is told stays.
        if not problem and not self.field.isModified():
            self.field.setText(self._stated_text())
        self.reset.setVisible(bool(self._stated_text()) and not is_fixed)
        self._problem.setText(problem)
        self._problem.setVisible(bool(problem))
        unit = unit_name(figure.unit)
        name = f"{self._name}, {unit}" if unit else self._name
        self.field.setAccessibleName(name)
        told = (problem or self._found.text(), self._hint)
        self.field.setAccessibleDescription("\n".join(part for part in told if part))

    def texts(self) -> list[str]:
        """Return what is shown, for tests and screen readers."""
        return [each.text() for each in self.findChildren(QLabel) if not each.isHidden()]

    def _stated_text(self) -> str:
        figure = self._figure
        if figure.stated is None:
            return figure.stated_text
        return figure_number(figure.stated, figure.unit)

    def _on_typed(self) -> None:
        text = self.field.text().strip()
        self.field.setModified(False)
        if text != self._stated_text():
            self.stated.emit(self._figure.name, text or None)
        elif not self._problem.isHidden():
            self.kept.emit(self._figure.name)


class MachineCard(Card):
    """All figures of this PC; asks for them when it is first seen."""

    def __init__(self, figures: MachineFigures) -> None:
        super().__init__(FigureWords.TITLE)
        # It takes the focus so that it can be shown.
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(FigureWords.TITLE)
        self.setAccessibleDescription(FigureWords.EXPLAINED)
        self._figures = figures
        self.rows: dict[str, FigureRow] = {}
        self.body.addWidget(label(FigureWords.EXPLAINED, "dim", is_wrapping=True))
        self.again = button(FigureWords.AGAIN)
        self.again.clicked.connect(lambda: figures.look(is_fresh=True))
        self._told = label("", "dim", is_wrapping=True)
        head = QHBoxLayout()
        head.addWidget(self._told, 1)
        head.addWidget(self.again)
        self.body.addLayout(head)
        self._rows = QGridLayout()
        self._rows.setVerticalSpacing(10)
        self.body.addLayout(self._rows)
        figures.changed.connect(self._show_figures)
        self._show_figures()

    def told(self) -> str:
        """Return the line above the figures."""
        return self._told.text()

    def _show_figures(self) -> None:
        figures = self._figures
        self._told.setText(self._line())
        self.again.setEnabled(not figures.is_measuring)
        names = [each.name for each in figures.figures]
        if names != list(self.rows):
            clear_layout(self._rows)
            self.rows = {each.name: FigureRow(each) for each in figures.figures}
            for index, row in enumerate(self.rows.values()):
                row.stated.connect(self._on_stated)
                row.kept.connect(figures.forgive)
                self._rows.addWidget(row, index, 0)
        for each in figures.figures:
            is_wrong = figures.error is not None and figures.error_name == each.name
            problem = _problem(figures.error, each.name) if is_wrong and figures.error else ""
            self.rows[each.name].show_figure(each, is_fixed=figures.is_fixed, problem=problem)

    def _line(self) -> str:
        figures = self._figures
        if figures.is_measuring:
            return FigureWords.MEASURING
        if figures.error is not None and not figures.error_name:
            return sentence(figures.error)
        if not figures.file:
            return ""
        return f"{FigureWords.FIXED if figures.is_fixed else FigureWords.KEPT_IN} {figures.file}"

    def _on_stated(self, name: str, typed: str | None) -> None:
        figure = next(each for each in self._figures.figures if each.name == name)
        if typed is None:
            self._figures.state(name)
        elif figure.unit is FigureUnit.TEXT:
            self._figures.state(name, text=typed)
        else:
            try:
                number = float(typed.replace(",", "."))
            except ValueError:
                number = math.nan
            if math.isfinite(number):
                self._figures.state(name, number)
            else:
                self._figures.refuse(name, _no_number(name, typed))

    def showEvent(self, event: QShowEvent) -> None:
        """Ask for the figures once they are to be seen."""
        super().showEvent(event)
        if not self._figures.figures and not self._figures.is_measuring:
            self._figures.look()


def _problem(error: ErrorReport, name: str) -> str:
    """Return why a figure was refused, with the name that it has here."""
    parameters = dict(error.parameters)
    if name in str(parameters.get("name", "")):
        parameters["name"] = figure_name(name)
    return sentence(msgspec.structs.replace(error, parameters=parameters))


def _no_number(name: str, typed: str) -> ErrorReport:
    return ErrorReport(
        code=ErrorCode.SETTING_INVALID,
        severity=Severity.REQUEST,
        parameters={
            "name": name,
            "found": typed[:100],
            "expected": FigureWords.A_NUMBER,
        },
    )
