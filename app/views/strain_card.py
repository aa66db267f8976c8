"""What was written to drives, and how warm drive, processor and card are."""

from app.text.strain_words import StrainWords, warmth_line, written_line
from app.views.pieces import Card, label
from runtime.protocol.telemetry import MachineStrain


class StrainCard(Card):
    """Two lines; each says so where the system does not tell."""

    def __init__(self) -> None:
        super().__init__(StrainWords.TITLE)
        self.setToolTip(StrainWords.EXPLAINED)
        self.setAccessibleDescription(StrainWords.EXPLAINED)
        self._written = label(StrainWords.WRITTEN_UNKNOWN, "dim", is_wrapping=True)
        self._warmth = label(StrainWords.WARMTH_UNKNOWN, "dim", is_wrapping=True)
        self.body.addWidget(self._written)
        self.body.addWidget(self._warmth)

    def show_strain(self, strain: MachineStrain, *, has_device: bool) -> None:
        """Show what the newest sample tells."""
        self._written.setText(written_line(strain))
        self._warmth.setText(warmth_line(strain, has_device=has_device))
