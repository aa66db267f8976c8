"""Fields of numbers, and those of a sampling."""

from PySide6.QtCore import QSignalBlocker
from PySide6.QtWidgets import QAbstractSpinBox, QDoubleSpinBox, QSpinBox

from app.text.words import SettingWords
from runtime.protocol.chat import SamplingSettings


def decimal_field(low: float, high: float, step: float, name: str = "") -> QDoubleSpinBox:
    """Return a field of a number with two decimals."""
    field = QDoubleSpinBox()
    field.setRange(low, high)
    field.setSingleStep(step)
    _fit(field, name)
    return field


def whole_field(low: int, high: int, name: str = "") -> QSpinBox:
    """Return a field of a whole number."""
    field = QSpinBox()
    field.setRange(low, high)
    _fit(field, name)
    return field


class SamplingFields:
    """A field for each number of a sampling, under the name that it has there."""

    def __init__(self) -> None:
        self.decimals = {
            "temperature": decimal_field(0.0, 5.0, 0.1, SettingWords.TEMPERATURE),
            "top_p": decimal_field(0.01, 1.0, 0.05, SettingWords.TOP_P),
            "min_p": decimal_field(0.0, 1.0, 0.01, SettingWords.MIN_P),
            "repetition_penalty": decimal_field(0.5, 2.0, 0.05, SettingWords.REPETITION_PENALTY),
        }
        self.wholes = {
            "top_k": whole_field(0, 1000, SettingWords.TOP_K),
            "max_tokens": whole_field(0, 1_000_000, SettingWords.MAX_TOKENS),
        }
        self.fields: dict[str, QDoubleSpinBox | QSpinBox] = {**self.decimals, **self.wholes}

    def show(self, sampling: SamplingSettings) -> None:
        """Show a sampling; nothing is told of that as a change."""
        for name, field in self.fields.items():
            with QSignalBlocker(field):
                field.setValue(getattr(sampling, name))

    def values(self) -> dict[str, float]:
        """Return what the fields say."""
        return {
            **{name: round(field.value(), 4) for name, field in self.decimals.items()},
            **{name: field.value() for name, field in self.wholes.items()},
        }


def _fit(field: QAbstractSpinBox, name: str) -> None:
    field.setAccessibleName(name)
    field.setMaximumWidth(140)
    # The style sheet's padding does not reach the text of a spin box.
    field.lineEdit().setTextMargins(6, 0, 0, 0)
