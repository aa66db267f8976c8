"""Which sampling an answer gets: the person's, or what the model's makers recommend."""

import msgspec

from app.state.settings_file import Settings
from runtime.protocol.chat import SamplingSettings
from runtime.protocol.model import ModelReport


def sampling_for(settings: Settings, report: ModelReport | None) -> SamplingSettings:
    """Return the sampling for the loaded model.

    Limits (``max_tokens``, ``seed``, ``stop``) are always the person's.
    """
    own = settings.sampling
    recommended = report.sampling if report is not None else None
    if not settings.is_sampling_of_model or recommended is None:
        return own
    taken: SamplingSettings = msgspec.structs.replace(
        recommended, max_tokens=own.max_tokens, seed=own.seed, stop=own.stop
    )
    return taken
