"""The Settings page: whose sampling is in force, and what can be changed."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from PySide6.QtWidgets import QDoubleSpinBox, QPushButton, QSpinBox
from pytestqt.qtbot import QtBot

from app.state.library import LibraryState
from app.state.session import Session
from app.state.settings import SettingsState
from app.text.words import SettingWords
from app.views.settings_view import SettingsView
from runtime.protocol.chat import SamplingSettings
from runtime.protocol.messages import ModelInspected
from runtime.protocol.model import ModelReport
from tests.support.fake_client import FakeClient
from tests.support.session_replies import answer_load, answer_plan
from tests.support.window_values import FOLDER, some_plan, some_report

OWN = SamplingSettings(temperature=0.3, top_p=0.8, top_k=7, min_p=0.02, max_tokens=50, seed=4)
RECOMMENDED = SamplingSettings(temperature=1.0, top_p=0.95, top_k=20, repetition_penalty=1.05)


class Page:
    """The page with the state behind it."""

    def __init__(self, qtbot: QtBot, folder: Path) -> None:
        self.client = FakeClient()
        self.settings = SettingsState(folder / "settings.json")
        self.settings.change(sampling=OWN)
        self.session = Session(self.client, self.settings, LibraryState(folder / "library.json"))
        self.view = SettingsView(self.settings, self.session, {})
        qtbot.addWidget(self.view)
        self.session.start()
        self.client.open()

    def load(self, sampling: SamplingSettings | None) -> None:
        """Load a model whose makers recommend this."""
        report: ModelReport = msgspec.structs.replace(some_report(), sampling=sampling)
        self.session.load_folder(FOLDER)
        self.session.close_candidate()
        answer_plan(self.client, some_plan())
        self.client.answer(ModelInspected(request_id=9999, report=report))
        answer_load(self.client)

    def fields(self) -> list[QDoubleSpinBox | QSpinBox]:
        """The fields of what makers recommend."""
        return [
            self.view._sampling.fields[name]
            for name in ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")
        ]

    def shown(self) -> tuple[float, ...]:
        """What the fields show."""
        return tuple(field.value() for field in self.fields())


@pytest.fixture
def page(qtbot: QtBot, tmp_path: Path) -> Iterator[Page]:
    page = Page(qtbot, tmp_path)
    yield page
    page.settings.close()


def test_recommended_values_of_the_loaded_model_are_shown_and_fixed(page: Page) -> None:
    assert page.view._is_of_model.isChecked()
    page.load(RECOMMENDED)
    assert page.shown() == (1.0, 0.95, 20, 0.0, 1.05)
    assert not any(field.isEnabled() for field in page.fields())
    assert page.view._sampling.fields["max_tokens"].value() == 50
    assert page.view._sampling.fields["max_tokens"].isEnabled()
    assert page.view._seed.text() == "4"


def test_unticked_shows_the_persons_own_values_and_lets_them_change(page: Page) -> None:
    page.load(RECOMMENDED)
    page.view._is_of_model.click()
    assert not page.settings.values.is_sampling_of_model
    assert page.settings.values.sampling == OWN
    assert page.shown() == (0.3, 0.8, 7, 0.02, 1.0)
    assert all(field.isEnabled() for field in page.fields())
    page.view._sampling.fields["top_k"].setValue(9)
    page.view._is_of_model.click()
    assert page.settings.values.is_sampling_of_model
    assert page.settings.values.sampling.top_k == 9
    assert page.view._sampling.fields["top_k"].value() == 20


def test_change_beside_recommended_values_keeps_the_persons_own(page: Page) -> None:
    page.load(RECOMMENDED)
    page.view._sampling.fields["max_tokens"].setValue(99)
    page.view._save()
    assert page.settings.values.sampling == msgspec.structs.replace(OWN, max_tokens=99)


def test_model_that_recommends_nothing_says_so_and_shows_the_persons_own(page: Page) -> None:
    page.load(None)
    assert page.shown() == (0.3, 0.8, 7, 0.02, 1.0)
    assert page.view._sampling_hint.text() == SettingWords.SAMPLING_NOT_SAID


def test_models_without_warning_are_listed_and_warn_again_by_their_button(page: Page) -> None:
    def shown() -> list[str]:
        box = page.view.energy
        return [each.accessibleName() for each in box.findChildren(QPushButton)]

    page.load(None)
    assert shown() == []
    page.settings.change(quiet_drive_models=[FOLDER, "/gone/model"])
    name = some_report().name
    assert shown() == [f"Warn again: {name}", "Warn again: model"]
    page.view.energy.findChildren(QPushButton)[0].click()
    assert page.settings.values.quiet_drive_models == ["/gone/model"]


def test_tariff_and_limits_are_taken_as_they_are_typed(page: Page) -> None:
    energy = page.view.energy
    energy.price.setValue(0.41)
    energy.currency.setText("CHF")
    energy.unload_after.setValue(20)
    energy.drive_limit.setValue(40)
    energy.endurance.setValue(600)
    energy.save()
    values = page.settings.values
    assert (values.energy_price_per_kwh, values.currency) == (0.41, "CHF")
    assert (values.unload_after_min, values.max_drive_energy_ratio) == (20, 0.4)
    assert values.drive_endurance_tb == 600
    page.settings.reset()
    assert (energy.price.value(), energy.currency.text()) == (0.30, "€")
