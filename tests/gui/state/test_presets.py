"""Presets: kept with the settings, for chats and models, as files."""

import json
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.state.chat import ChatState
from app.state.presets import (
    MAX_PRESET_BYTES,
    PresetFileError,
    PresetState,
    preset_file,
    presets_of,
)
from app.state.session import Session
from app.state.settings import SettingsState
from app.state.settings_file import Preset, read_settings
from runtime.protocol.chat import Role, SamplingSettings
from runtime.protocol.messages import CommandFailed, StartGeneration
from tests.support.fake_client import FakeClient
from tests.support.window_values import FOLDER, some_error

COLD = SamplingSettings(temperature=0.1, max_tokens=50)
TERSE = Preset(name="Terse", system_prompt="Be brief.", sampling=COLD)
POET = Preset(name="poet", system_prompt="Write in verse.")


@pytest.fixture
def presets(settings: SettingsState) -> PresetState:
    state = PresetState(settings)
    for preset in (TERSE, POET):
        state.add(preset)
    return state


def asked(chat: ChatState, client: FakeClient) -> StartGeneration:
    """Return what a question sends; it gets no answer."""
    assert chat.ask("one")
    command = client.last(StartGeneration)
    client.answer(CommandFailed(request_id=command.request_id, error=some_error()))
    return command


def system_prompt(command: StartGeneration) -> str:
    first = command.conversation[0]
    return first.text if first.role is Role.SYSTEM else ""


def test_presets_are_kept_in_order_under_names_of_their_own(
    presets: PresetState, settings: SettingsState, tmp_path: Path
) -> None:
    assert presets.presets == [POET, TERSE]
    assert presets.add(TERSE).name == "Terse 2"
    assert presets.add(TERSE).name == "Terse 3"
    settings.save()
    values, notices = read_settings(tmp_path / "settings.json")
    assert not notices
    assert [each.name for each in values.presets] == ["poet", "Terse", "Terse 2", "Terse 3"]
    settings.reset()
    assert len(presets.presets) == 4


def test_preset_takes_no_empty_or_taken_name(presets: PresetState) -> None:
    assert not presets.replace("poet", Preset(name=" "))
    assert not presets.replace("poet", Preset(name="Terse"))
    assert presets.replace("poet", Preset(name="poet", system_prompt="Rhyme."))
    assert presets.named("poet") == Preset(name="poet", system_prompt="Rhyme.")
    assert presets.named("Terse") == TERSE


def test_chat_without_a_preset_has_that_of_its_model(presets: PresetState) -> None:
    presets.set_of_model(FOLDER, "poet")
    assert presets.of_model(FOLDER + "/") == "poet"
    assert presets.in_force("", FOLDER) == POET
    assert presets.in_force("Terse", FOLDER) == TERSE
    assert presets.in_force("gone", FOLDER) == POET
    assert presets.in_force("", "/models/other") is None
    presets.replace("poet", Preset(name="bard"))
    assert presets.of_model(FOLDER) == "bard"
    presets.set_of_model(FOLDER, "")
    assert presets.of_model(FOLDER) == ""
    presets.set_of_model(FOLDER, "bard")
    presets.remove("bard")
    assert presets.of_model(FOLDER) == ""
    assert presets.presets == [TERSE]


def test_chat_is_answered_as_its_preset_says(
    chat: ChatState, client: FakeClient, presets: PresetState, settings: SettingsState
) -> None:
    settings.change(system_prompt="Be kind.")
    assert system_prompt(asked(chat, client)) == "Be kind."
    chat.set_preset("Terse")
    assert chat.preset == TERSE
    command = asked(chat, client)
    assert (system_prompt(command), command.sampling) == ("Be brief.", COLD)
    chat.set_preset("poet")
    command = asked(chat, client)
    assert system_prompt(command) == "Write in verse."
    assert command.sampling == settings.values.sampling
    chat.set_preset("")
    assert system_prompt(asked(chat, client)) == "Be kind."


def test_preset_of_a_model_goes_with_its_chats(
    chat: ChatState, client: FakeClient, presets: PresetState
) -> None:
    presets.set_of_model(FOLDER, "Terse")
    assert chat.preset == TERSE
    assert chat.preset_name == ""
    assert system_prompt(asked(chat, client)) == "Be brief."
    client.crash()
    assert chat.preset is None


def test_preset_stays_with_its_chat(
    chat: ChatState,
    client: FakeClient,
    presets: PresetState,
    ready_session: Session,
    settings: SettingsState,
    tmp_path: Path,
    qtbot: QtBot,
) -> None:
    chat.set_preset("Terse")
    asked(chat, client)
    first = chat.chat_id
    assert first is not None
    chat.new_chat()
    assert chat.preset_name == ""
    chat.open_chat(first)
    assert chat.preset_name == "Terse"
    with qtbot.waitSignal(chat.asking_changed):
        chat.presets.replace("Terse", Preset(name="Short", system_prompt="Be brief."))
    assert chat.preset_name == "Short"
    chat.new_chat()
    chat.presets.replace("Short", Preset(name="Brief", system_prompt="Be brief."))
    assert chat.preset_name == ""
    again = ChatState(tmp_path / "chats.db", ready_session, settings)
    again.open_chat(first)
    assert again.preset_name == "Brief"
    again.presets.remove("Brief")
    assert again.preset is None
    again.close()


def test_preset_changes_what_the_draft_is_counted_with(
    chat: ChatState, presets: PresetState
) -> None:
    chat.set_draft("one")
    plain = chat._draft_conversation()
    chat.set_preset("Terse")
    assert [each.role for each in chat._draft_conversation()] == [Role.SYSTEM, Role.USER]
    assert len(plain) == 1


def test_preset_file_is_read_as_it_was_written() -> None:
    assert presets_of(preset_file(TERSE)) == [TERSE]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"# no", "malformed"),
        (b"\xff", "malformed"),
        (b"[]", "Expected `object`"),
        (json.dumps({"larder_presets": 9, "presets": []}).encode(), "known is 1"),
        (json.dumps({"larder_presets": 1, "presets": []}).encode(), "no preset has a name"),
        (json.dumps({"larder_presets": 1, "presets": [{"name": " "}]}).encode(), "has a name"),
        (
            json.dumps(
                {"larder_presets": 1, "presets": [{"name": "a", "sampling": {"top_p": 7}}]}
            ).encode(),
            "top_p: 7",
        ),
        (b" " * (MAX_PRESET_BYTES + 1), "larger"),
        # How deep is too deep is different in each Python.
        (b'{"a":' * 9_000, "recursion|truncated"),
    ],
)
def test_file_without_a_good_preset_is_refused_with_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(PresetFileError, match=reason):
        presets_of(data)
