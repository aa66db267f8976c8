"""Which sampling an answer gets: the person's, or what the model's makers recommend."""

import msgspec

from app.state.settings_file import Preset, Settings
from runtime.protocol.chat import SamplingSettings
from runtime.protocol.model import ModelReport


def system_prompt_for(settings: Settings, preset: Preset | None) -> str:
    """Return the instructions of a preset or, without one, of the settings."""
    return settings.system_prompt if preset is None else preset.system_prompt


def sampling_for(
    settings: Settings, report: ModelReport | None, preset: Preset | None = None
) -> SamplingSettings:
    """Return the sampling for the loaded model, a preset's if that has one.

    Limits (``max_tokens``, ``seed``, ``stop``) are never those of the model's makers.
    """
    if preset is not None and preset.sampling is not None:
        return preset.sampling
    own = settings.sampling
    recommended = report.sampling if report is not None else None
    if not settings.is_sampling_of_model or recommended is None:
        return own
    taken: SamplingSettings = msgspec.structs.replace(
        recommended, max_tokens=own.max_tokens, seed=own.seed, stop=own.stop
    )
    return taken
