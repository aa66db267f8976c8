"""The tokens of a question before it is sent."""

from pytestqt.qtbot import QtBot

from app.state.chat import ChatState
from app.state.session import Session
from app.state.settings import SettingsState
from runtime.protocol.chat import Role
from runtime.protocol.messages import CommandFailed, CountTokens, TokensCounted
from tests.support.fake_client import FakeClient
from tests.support.played_answers import talk
from tests.support.window_values import some_error


def rest(chat: ChatState, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: not chat.prompt_count._timer.isActive())


def answer_count(client: FakeClient, num_tokens: int) -> None:
    """Tell the count that was asked for last."""
    request_id = client.last(CountTokens).request_id
    client.answer(
        TokensCounted(request_id=request_id, prompt_tokens=num_tokens, context_tokens=4096)
    )


def test_draft_is_counted_with_all_that_would_be_sent(
    chat: ChatState, client: FakeClient, settings: SettingsState, qtbot: QtBot
) -> None:
    settings.change(system_prompt="Be brief.")
    talk(chat, client, "one", "first")
    chat.set_draft("two")
    chat.set_draft("two more")
    rest(chat, qtbot)
    assert client.count(CountTokens) == 1
    told = client.last(CountTokens).conversation
    assert [(m.role, m.text) for m in told] == [
        (Role.SYSTEM, "Be brief."),
        (Role.USER, "one"),
        (Role.ASSISTANT, "first"),
        (Role.USER, "two more"),
    ]
    with qtbot.waitSignal(chat.prompt_count.changed):
        answer_count(client, 300)
    assert chat.prompt_count.num_tokens == 300
    with qtbot.waitSignal(chat.prompt_count.changed):
        chat.ask("two more")
    assert chat.prompt_count.num_tokens is None


def test_question_that_changed_meanwhile_is_counted_again(
    chat: ChatState, client: FakeClient, qtbot: QtBot
) -> None:
    chat.set_draft("one")
    rest(chat, qtbot)
    chat.set_draft("one two")
    rest(chat, qtbot)
    assert client.count(CountTokens) == 1
    answer_count(client, 1)
    assert chat.prompt_count.num_tokens is None
    rest(chat, qtbot)
    assert client.count(CountTokens) == 2
    answer_count(client, 2)
    assert chat.prompt_count.num_tokens == 2
    chat.set_draft(" ")
    assert chat.prompt_count.num_tokens is None


def test_count_that_comes_too_late_shows_nothing(
    chat: ChatState, client: FakeClient, qtbot: QtBot
) -> None:
    chat.set_draft("one")
    rest(chat, qtbot)
    chat.set_draft("")
    answer_count(client, 5)
    assert chat.prompt_count.num_tokens is None


def test_count_that_fails_shows_nothing_and_the_next_is_asked(
    chat: ChatState, client: FakeClient, qtbot: QtBot
) -> None:
    chat.set_draft("one")
    rest(chat, qtbot)
    request_id = client.last(CountTokens).request_id
    client.answer(CommandFailed(request_id=request_id, error=some_error()))
    assert chat.prompt_count.num_tokens is None
    chat.set_draft("x" * (17 << 20))
    rest(chat, qtbot)
    assert client.count(CountTokens) == 1, "longer than a frame"
    chat.set_draft("two")
    rest(chat, qtbot)
    assert client.count(CountTokens) == 2


def test_draft_that_goes_before_it_rests_is_not_counted(
    chat: ChatState, client: FakeClient, qtbot: QtBot
) -> None:
    chat.set_draft("one")
    chat._draft = ""
    rest(chat, qtbot)
    assert client.count(CountTokens) == 0


def test_model_that_is_gone_counts_nothing(
    chat: ChatState, client: FakeClient, qtbot: QtBot, ready_session: Session
) -> None:
    chat.set_draft("one")
    rest(chat, qtbot)
    answer_count(client, 5)
    client.crash()
    assert chat.prompt_count.num_tokens is None
    assert not ready_session.count_tokens([], lambda _reply: None)
    chat.set_draft("two")
    rest(chat, qtbot)
    assert client.count(CountTokens) == 1


def test_draft_of_an_opened_chat_is_counted(
    chat: ChatState, client: FakeClient, qtbot: QtBot
) -> None:
    talk(chat, client, "one", "first")
    first = chat.chat_id
    assert first is not None
    chat.set_draft("two")
    chat.new_chat()
    rest(chat, qtbot)
    assert client.count(CountTokens) == 0
    chat.open_chat(first)
    rest(chat, qtbot)
    assert client.last(CountTokens).conversation[-1].text == "two"
