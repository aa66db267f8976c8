"""Whose sampling an answer gets."""

from app.state.sampling import sampling_for
from app.state.settings_file import Settings
from runtime.protocol.chat import SamplingSettings
from runtime.protocol.model import ModelReport

OWN = SamplingSettings(temperature=0.3, max_tokens=50, seed=4, stop=["END"])


def report(sampling: SamplingSettings | None) -> ModelReport:
    return ModelReport(
        folder="/m",
        name="m",
        model_type="mixtral",
        fingerprint="f",
        licence="",
        problems=[],
        sampling=sampling,
    )


def test_sampling_of_model_is_taken_with_the_persons_limits() -> None:
    made = sampling_for(Settings(sampling=OWN), report(SamplingSettings(temperature=0.0, top_k=5)))
    assert made == SamplingSettings(temperature=0.0, top_k=5, max_tokens=50, seed=4, stop=["END"])


def test_sampling_is_the_persons_where_the_model_says_nothing() -> None:
    assert sampling_for(Settings(sampling=OWN), report(None)) == OWN
    assert sampling_for(Settings(sampling=OWN), None) == OWN


def test_sampling_is_the_persons_if_they_want_it() -> None:
    settings = Settings(sampling=OWN, is_sampling_of_model=False)
    assert sampling_for(settings, report(SamplingSettings(temperature=0.0))) == OWN
