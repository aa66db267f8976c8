"""Words of what the machine is put through: bytes written, degrees."""

from app.text.drive_phrases import gigabytes
from app.text.monitor_words import LiveWords
from app.text.phrases import DOT
from app.text.translate import tr
from app.text.words import Word
from runtime.protocol.telemetry import MachineStrain

_SPACE = "\N{NO-BREAK SPACE}"


class StrainWords:
    """The card."""

    TITLE = Word("Written, and how warm it is")
    EXPLAINED = Word(
        "Reading does not wear a drive, writing does. What is written is counted from the moment "
        "the model was loaded; of several processors or graphics cards the warmest is shown."
    )
    WRITTEN_UNKNOWN = Word("What is written to drives is not told by this system.")
    WARMTH_UNKNOWN = Word("Temperatures are not told by this system.")


def written_line(strain: MachineStrain) -> str:
    """For example ``Written: 12 MB by this model, 1.4 GB by all programs to its drive``."""
    parts = [
        text.format(amount=_amount(num_bytes))
        for text, num_bytes in (
            (tr("{amount} by this model"), strain.own_bytes_written),
            (tr("{amount} by all programs to its drive"), strain.drive_bytes_written),
        )
        if num_bytes is not None
    ]
    if not parts:
        return StrainWords.WRITTEN_UNKNOWN
    return tr("Written: {parts}").format(parts=", ".join(parts))


def warmth_line(strain: MachineStrain, *, has_device: bool) -> str:
    """For example ``drive 43 °C · processor 61 °C · graphics card not told``."""
    told = (
        (LiveWords.DRIVE, strain.drive_temperature_c, True),
        (LiveWords.CPU, strain.processor_temperature_c, True),
        (LiveWords.DEVICE, strain.card_temperature_c, has_device),
    )
    if all(degrees is None for _, degrees, _ in told):
        return StrainWords.WARMTH_UNKNOWN
    return DOT.join(
        tr("{part} not told").format(part=part)
        if degrees is None
        else f"{part} {degrees:.0f}{_SPACE}°C"
        for part, degrees, is_there in told
        if is_there or degrees is not None
    )


def _amount(num_bytes: int) -> str:
    return gigabytes(num_bytes / 1e9) if num_bytes else tr("nothing")
