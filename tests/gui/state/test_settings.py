"""The settings and their file."""

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytestqt.qtbot import QtBot

from app.state import settings as settings_module
from app.state.json_file import write_whole
from app.state.settings import SettingsState
from app.state.settings_file import SettingProblem, Settings, ThemeChoice, read_settings
from runtime.protocol.chat import SamplingSettings
from runtime.protocol.plan import PlanKind
from tests.support.private_files import open_to_others


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "settings" / "settings.json"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")


def saved(path: Path) -> dict[str, object]:
    value = json.loads(path.read_text(encoding="utf-8"))
    assert isinstance(value, dict)
    return value


class TestFile:
    def test_missing_file_gives_the_defaults(self, path: Path) -> None:
        assert read_settings(path) == (Settings(), [])

    @given(
        theme=st.sampled_from(ThemeChoice),
        plan=st.sampled_from([None, *PlanKind]),
        ram=st.one_of(st.none(), st.integers(0, 1 << 50)),
        prompt=st.text(st.characters(exclude_categories=["Cs"])),
        temperature=st.floats(0, 5),
        seed=st.one_of(st.none(), st.integers(0, 1 << 31)),
    )
    def test_settings_survive_the_file(
        self,
        tmp_path_factory: pytest.TempPathFactory,
        theme: ThemeChoice,
        plan: PlanKind | None,
        ram: int | None,
        prompt: str,
        temperature: float,
        seed: int | None,
    ) -> None:
        path = tmp_path_factory.mktemp("settings") / "settings.json"
        values = Settings(
            theme=theme,
            last_plan=plan,
            ram_budget_bytes=ram,
            system_prompt=prompt,
            sampling=SamplingSettings(temperature=temperature, seed=seed),
        )
        write_whole(path, msgspec.json.encode(values))
        assert read_settings(path) == (values, [])

    def test_unknown_setting_is_named_with_the_one_that_was_meant(self, path: Path) -> None:
        write(path, '{"theem": "dark", "reduce_motion": true, "zzz": 1}')
        values, notices = read_settings(path)
        assert values == Settings(reduce_motion=True)
        assert [(n.problem, n.name, n.hint) for n in notices] == [
            (SettingProblem.UNKNOWN, "theem", "theme"),
            (SettingProblem.UNKNOWN, "zzz", ""),
        ]

    def test_setting_inside_another_is_checked_as_well(self, path: Path) -> None:
        write(path, '{"sampling": {"temperature": 9, "top_k": 40, "topp": 0.5}}')
        values, notices = read_settings(path)
        assert values.sampling == SamplingSettings(top_k=40)
        assert [(n.problem, n.name) for n in notices] == [
            (SettingProblem.WRONG, "temperature"),
            (SettingProblem.UNKNOWN, "topp"),
        ]

    @pytest.mark.parametrize(
        "text",
        [
            '{"theme": "purple"}',
            '{"context_tokens": -1}',
            '{"context_tokens": "many"}',
            '{"sampling": 5}',
            '{"energy_price_per_kwh": 1e9}',
        ],
    )
    def test_value_that_is_not_allowed_leaves_the_default(self, path: Path, text: str) -> None:
        write(path, text)
        values, notices = read_settings(path)
        assert values == Settings()
        assert [notice.problem for notice in notices] == [SettingProblem.WRONG]

    @pytest.mark.parametrize(
        "text",
        ["", "{", "[1, 2]", "\ud800", "[" * 100_000],
        ids=["empty", "cut", "a list", "no text", "deep"],
    )
    def test_damaged_file_gives_the_defaults(self, path: Path, text: str) -> None:
        path.parent.mkdir()
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        values, notices = read_settings(path)
        assert values == Settings()
        assert [notice.problem for notice in notices] == [SettingProblem.DAMAGED]

    def test_file_that_cannot_be_read_gives_the_defaults(self, path: Path) -> None:
        path.mkdir(parents=True)
        values, notices = read_settings(path)
        assert values == Settings()
        assert [notice.problem for notice in notices] == [SettingProblem.UNREADABLE]


class TestState:
    def test_changes_in_a_row_are_saved_together(
        self, path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(settings_module, "SAVE_DELAY_MS", 30)
        state = SettingsState(path)
        with qtbot.waitSignal(state.changed):
            state.change(theme="dark")
        state.change(ram_budget_bytes=1 << 30)
        assert not path.exists()
        qtbot.waitUntil(path.exists)
        assert saved(path)["theme"] == "dark"
        assert saved(path)["ram_budget_bytes"] == 1 << 30
        assert state.values.theme is ThemeChoice.DARK
        assert state.path == path
        state.close()

    def test_settings_are_for_their_person_alone(self, path: Path, qtbot: QtBot) -> None:
        state = SettingsState(path)
        state.change(system_prompt="secret")
        state.close()
        assert saved(path)["system_prompt"] == "secret"
        assert open_to_others(path.parent) == []

    def test_same_value_again_is_no_change(self, path: Path, qtbot: QtBot) -> None:
        state = SettingsState(path)
        with qtbot.assertNotEmitted(state.changed):
            state.change(theme=ThemeChoice.SYSTEM)
        state.close()
        assert not path.exists()

    @pytest.mark.parametrize(
        "change",
        [{"theme": "purple"}, {"context_tokens": -1}, {"sampling": SamplingSettings(top_p=2.0)}],
    )
    def test_value_that_is_not_allowed_is_refused(
        self, path: Path, qtbot: QtBot, change: dict[str, object]
    ) -> None:
        state = SettingsState(path)
        with pytest.raises(ValueError, match=r"theme|context_tokens|top_p"):
            state.change(**change)
        assert state.values == Settings()

    def test_close_saves_what_waits(self, path: Path, qtbot: QtBot) -> None:
        state = SettingsState(path)
        state.change(currency="CHF")
        state.close()
        assert SettingsState(path).values.currency == "CHF"

    def test_save_that_fails_again_for_the_same_reason_is_told_once(
        self, path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(settings_module, "write_whole", refuse)
        state = SettingsState(path)
        told: list[object] = []
        state.noticed.connect(told.append)
        state.change(currency="CHF")
        state.save()
        state.change(currency="$")
        state.save()
        assert len(told) == 1
        assert [notice.problem for notice in state.notices] == [SettingProblem.NOT_SAVED]

    def test_reset_keeps_the_model_and_the_window(self, path: Path, qtbot: QtBot) -> None:
        state = SettingsState(path)
        state.change(last_folder="/m", window_geometry="abc", theme=ThemeChoice.DARK)
        state.reset()
        assert state.values == Settings(last_folder="/m", window_geometry="abc")
        state.close()

    def test_file_of_a_newer_version_is_kept_told_and_taken_as_far_as_it_is_known(
        self, path: Path, qtbot: QtBot
    ) -> None:
        newer = {"currency": "CHF", "theme": "sepia", "voice": {"is_on": True}}
        write(path, json.dumps(newer))
        state = SettingsState(path)
        assert state.values == Settings(currency="CHF")
        assert [(notice.problem, notice.name) for notice in state.notices] == [
            (SettingProblem.WRONG, "theme"),
            (SettingProblem.UNKNOWN, "voice"),
        ]
        # What the newer version wrote is there for the day on which it comes back.
        (kept,) = path.parent.glob("settings.damaged-*.json")
        assert saved(kept) == newer
        assert SettingsState(path).notices == []

    def test_file_of_an_older_version_is_taken_whole_and_told_to_nobody(
        self, path: Path, qtbot: QtBot
    ) -> None:
        write(path, '{"currency": "CHF", "theme": "dark"}')
        before = path.read_bytes()
        state = SettingsState(path)
        assert state.values == Settings(currency="CHF", theme=ThemeChoice.DARK)
        assert state.notices == []
        assert path.read_bytes() == before
        state.change(currency="EUR")
        state.save()
        assert read_settings(path) == (Settings(currency="EUR", theme=ThemeChoice.DARK), [])
        assert not list(path.parent.glob("*damaged*"))

    def test_refused_file_is_kept_beside_the_new_one(self, path: Path, qtbot: QtBot) -> None:
        write(path, '{"theem": "dark", "currency": "CHF"}')
        state = SettingsState(path)
        assert [notice.problem for notice in state.notices] == [SettingProblem.UNKNOWN]
        assert saved(path)["currency"] == "CHF"
        (kept,) = path.parent.glob("settings.damaged-*.json")
        assert saved(kept) == {"theem": "dark", "currency": "CHF"}

    def test_file_that_cannot_be_read_is_not_touched(self, path: Path, qtbot: QtBot) -> None:
        path.mkdir(parents=True)
        state = SettingsState(path)
        assert [notice.problem for notice in state.notices] == [SettingProblem.UNREADABLE]
        assert path.is_dir()

    def test_refused_file_that_cannot_be_moved_is_told(
        self, path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(_: Path) -> Path:
            raise OSError(30, "Read-only file system")

        monkeypatch.setattr(settings_module, "set_aside", refuse)
        write(path, "{")
        state = SettingsState(path)
        assert [notice.problem for notice in state.notices] == [
            SettingProblem.DAMAGED,
            SettingProblem.NOT_SAVED,
        ]

    def test_settings_that_cannot_be_saved_are_told_and_stay_in_force(
        self, tmp_path: Path, qtbot: QtBot
    ) -> None:
        (tmp_path / "file").write_text("in the way")
        state = SettingsState(tmp_path / "file" / "settings.json")
        state.change(currency="CHF")
        with qtbot.waitSignal(state.noticed) as noticed:
            state.save()
        assert noticed.args is not None
        assert noticed.args[0].problem is SettingProblem.NOT_SAVED
        assert state.values.currency == "CHF"
