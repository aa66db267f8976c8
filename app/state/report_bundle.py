"""A report about this program for whoever helps: versions, machine, settings, logs; no chat text.

It is a zip file that is written where the person chose and sent nowhere.
"""

import io
import platform
import sys
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from app.state.forecast_book import ForecastRecord
from app.state.licences import all_components, version
from app.state.settings_file import Settings
from runtime.protocol.machine import MachineReport
from runtime.protocol.plan import PlacementPlan

MAX_LOG_BYTES = 256 << 10


def versions() -> list[str]:
    """Return lines that say what runs here, the packages included."""
    return [
        f"larder {version()}",
        f"Python {sys.version.split()[0]}",
        f"{platform.system()} {platform.release()} {platform.machine()}",
        *(component.line for component in all_components()[1:]),
    ]


def report_bundle(
    settings: Settings,
    logs: Iterable[Path],
    machine: MachineReport | None = None,
    plan: PlacementPlan | None = None,
    answers: Sequence[ForecastRecord] = (),
) -> bytes:
    """Return the zip file.

    Of the settings all that a person wrote to a model is left out; of the logs the end is kept.
    ``answers`` say how fast they were beside what was expected, and nothing of what they said.
    """
    kept = msgspec.structs.replace(settings, system_prompt="", presets=[], model_presets={})
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as bundle:
        bundle.writestr("versions.txt", "\n".join(versions()) + "\n")
        bundle.writestr("settings.json", msgspec.json.format(msgspec.json.encode(kept)))
        for name, value in (("machine.json", machine), ("plan.json", plan)):
            if value is not None:
                bundle.writestr(name, msgspec.json.format(msgspec.json.encode(value)))
        if answers:
            kept_answers = msgspec.json.format(msgspec.json.encode(list(answers)))
            bundle.writestr("answers.json", kept_answers)
        for path in logs:
            text = _end_of(path)
            if text:
                bundle.writestr(f"logs/{path.name}", text)
    return data.getvalue()


def _end_of(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - MAX_LOG_BYTES))
            return file.read(MAX_LOG_BYTES)
    except OSError:
        return b""
