"""The pure parts of the state: stages, progress, thinking, titles, folders, samples."""

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.state.chat_titles import MAX_TITLE_LENGTH, title_of
from app.state.chat_values import AnswerEnd, Message
from app.state.folders import PREPARED_FILE, app_folders, demo_folder, model_place, same_folder
from app.state.growing_answer import GrowingAnswer
from app.state.progress import ProgressKind, ProgressMeter
from app.state.stages import Stage, StageFacts, stage_of
from app.state.thinking import ThoughtSplit, split_thinking
from runtime.inspect.manifest import MANIFEST_NAME
from runtime.protocol.chat import Role


class TestStages:
    NAMES = (
        "is_failed", "is_ending", "is_preparing", "wants_load", "is_answering", "is_loaded",
        "is_inspecting", "is_planning",
    )  # fmt: skip

    def test_every_mix_of_facts_has_the_stage_of_its_first(self) -> None:
        stages = (
            Stage.FAILED, Stage.STOPPING, Stage.PREPARING, Stage.LOADING, Stage.ANSWERING,
            Stage.READY, Stage.INSPECTING, Stage.PLANNING,
        )  # fmt: skip
        for mix in itertools.product((False, True), repeat=len(self.NAMES)):
            facts = StageFacts(
                **dict(zip(self.NAMES, mix, strict=True)), is_open=True, has_plans=False
            )
            expected = stages[mix.index(True)] if any(mix) else Stage.IDLE
            assert stage_of(facts) is expected

    @pytest.mark.parametrize(
        ("is_open", "has_plans", "stage"),
        [
            (False, False, Stage.NO_RUNTIME),
            (False, True, Stage.NO_RUNTIME),
            (True, True, Stage.PLANNED),
        ],
    )
    def test_stage_without_work_depends_on_runtime_and_plans(
        self, is_open: bool, has_plans: bool, stage: Stage
    ) -> None:
        quiet = dict.fromkeys(self.NAMES, False)
        assert stage_of(StageFacts(**quiet, is_open=is_open, has_plans=has_plans)) is stage


class TestProgress:
    def test_rate_is_that_of_the_last_seconds(self) -> None:
        meter = ProgressMeter()
        first = meter.take(ProgressKind.DENSE, 0, 1000, now_s=0.0)
        assert (first.bytes_per_s, first.seconds_left, first.ratio) == (0.0, None, 0.0)
        for second in range(1, 11):
            meter.take(ProgressKind.DENSE, second * 10, 1000, now_s=float(second))
        last = [
            meter.take(ProgressKind.DENSE, 100 + step * 50, 1000, now_s=10.0 + step)
            for step in range(1, 6)
        ][-1]
        assert last.bytes_per_s == 50.0
        assert last.seconds_left == 13.0

    def test_amount_that_is_not_known_has_no_ratio(self) -> None:
        progress = ProgressMeter().take(ProgressKind.START, 0, 0, now_s=0.0)
        assert (progress.ratio, progress.seconds_left) == (None, None)

    def test_next_stage_begins_its_own_measurement(self) -> None:
        meter = ProgressMeter()
        meter.take(ProgressKind.DENSE, 0, 100, now_s=0.0)
        meter.take(ProgressKind.DENSE, 100, 100, now_s=1.0)
        assert meter.take(ProgressKind.EXPERTS, 0, 100, now_s=2.0).bytes_per_s == 0.0
        meter.take(ProgressKind.EXPERTS, 50, 100, now_s=3.0)
        assert meter.take(ProgressKind.EXPERTS, 10, 100, now_s=4.0).bytes_per_s == 0.0

    def test_given_rate_is_taken(self) -> None:
        progress = ProgressMeter().take(ProgressKind.PREPARE, 40, 100, 0.0, bytes_per_s=20.0)
        assert progress.seconds_left == 3.0


class TestThinking:
    @pytest.mark.parametrize(
        ("text", "split"),
        [
            ("", ThoughtSplit("", "")),
            ("Paris.", ThoughtSplit("", "Paris.")),
            ("<think>hm</think>\n\nParis.", ThoughtSplit("hm", "Paris.")),
            ("\n<think>\nhm\n</think>Paris.", ThoughtSplit("hm", "Paris.")),
            ("hm</think>Paris.", ThoughtSplit("hm", "Paris.")),
            ("<think>hm", ThoughtSplit("hm", "")),
            ("<think>", ThoughtSplit("", "")),
            ("use <think>x</think>", ThoughtSplit("", "use <think>x</think>")),
            ("a <", ThoughtSplit("", "a <")),
        ],
    )
    def test_text_that_was_kept_whole_is_parted(self, text: str, split: ThoughtSplit) -> None:
        assert split_thinking(text) == split


class TestTitles:
    @pytest.mark.parametrize(
        ("question", "title"),
        [
            ("Why is bread sour?", "Why is bread sour?"),
            ("  # Fix\n\nmy `csv`  script ", "Fix my csv script"),
            ("***", "***"),
            (
                "Why does my sourdough taste more sour in winter than in summer?",
                "Why does my sourdough taste more sour in winter…",
            ),
            ("長" * 60, "長" * (MAX_TITLE_LENGTH - 1) + "…"),
        ],
    )
    def test_title_is_the_beginning_of_the_question(self, question: str, title: str) -> None:
        assert title_of(question) == title

    @given(st.text(min_size=1))
    def test_title_is_never_too_long(self, question: str) -> None:
        assert len(title_of(question)) <= MAX_TITLE_LENGTH


class TestFolders:
    def test_home_variable_holds_everything(self, tmp_path: Path) -> None:
        folders = app_folders({"LARDER_HOME": str(tmp_path)})
        assert folders.settings_file == tmp_path / "settings" / "settings.json"
        assert folders.library_file == tmp_path / "data" / "library.json"
        assert folders.chats_file == tmp_path / "data" / "chats.db"
        assert folders.runtime_log == tmp_path / "logs" / "runtime.log"
        assert folders.crash_log == tmp_path / "logs" / "window-crash.log"

    def test_system_folders_are_named_after_the_program(self) -> None:
        folders = app_folders({})
        for folder in (folders.settings, folders.data, folders.logs):
            assert "larder" in folder.parts

    def test_demo_is_named_then_built_then_installed(self, tmp_path: Path) -> None:
        named = demo_folder({"LARDER_DEMO_DIR": str(tmp_path / "mine")}, tmp_path)
        assert named == tmp_path / "mine"
        installed = tmp_path / "resources" / "demo" / "larder-demo"
        assert demo_folder({}, tmp_path) == installed
        built = tmp_path / "build" / "demo" / "larder-demo"
        built.mkdir(parents=True)
        assert demo_folder({}, tmp_path) == built

    def test_same_folder_ignores_how_it_is_written(self) -> None:
        assert same_folder("/models/a/", "/models/./a")
        assert not same_folder("/models/a", "/models/b")


class TestGrowingAnswer:
    @given(
        st.lists(
            st.tuples(
                st.text(max_size=4), st.text(max_size=4), st.lists(st.integers(0, 9), max_size=2)
            )
        )
    )
    def test_pieces_add_up_whenever_they_are_looked_at(
        self, pieces: list[tuple[str, str, list[int]]]
    ) -> None:
        answer = GrowingAnswer(1, Message(2, Role.ASSISTANT, "", end=AnswerEnd.GROWING))
        assert answer.is_empty
        for index, (text, thinking, token_ids) in enumerate(pieces):
            answer.add(text, token_ids, thinking)
            if index % 2:
                assert answer.message.end is AnswerEnd.GROWING
        assert answer.is_empty == (not any(map(any, pieces)))
        ended = answer.ended(AnswerEnd.STOPPED)
        assert ended.text == "".join(text for text, _, _ in pieces)
        assert ended.thinking == "".join(thinking for _, thinking, _ in pieces)
        assert list(ended.token_ids) == [item for _, _, ids in pieces for item in ids]


def test_file_of_a_prepared_copy_stands_for_its_folder(tmp_path: Path) -> None:
    assert PREPARED_FILE == MANIFEST_NAME
    copy = tmp_path / "Qwen3-30B-A3B-q4"
    assert model_place(str(copy / MANIFEST_NAME)) == str(copy)
    assert model_place(str(copy)) == str(copy)
    assert model_place("") == ""
