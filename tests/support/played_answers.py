"""Answers of a runtime that a test plays, piece by piece."""

from app.state.chat import ChatState
from runtime.protocol.chat import FinishReason, GenerationStats
from runtime.protocol.messages import GenerationFinished, StartGeneration, TokensGenerated
from tests.support.fake_client import FakeClient
from tests.support.window_values import some_stats


def asked_id(client: FakeClient) -> int:
    """Return which answer was asked for last."""
    return client.last(StartGeneration).request_id


def write(client: FakeClient, text: str, *token_ids: int, thinking: str = "") -> None:
    """Play a piece of the answer."""
    client.answer(
        TokensGenerated(
            request_id=asked_id(client), token_ids=list(token_ids), text=text, thinking=thinking
        )
    )


def finish(
    client: FakeClient,
    reason: FinishReason = FinishReason.STOP,
    stats: GenerationStats | None = None,
) -> None:
    """Play the end of the answer."""
    client.answer(
        GenerationFinished(request_id=asked_id(client), reason=reason, stats=stats or some_stats())
    )


def talk(chat: ChatState, client: FakeClient, question: str, answer: str) -> None:
    """Have a question answered."""
    assert chat.ask(question)
    write(client, answer, 1, 2)
    finish(client)


def texts(chat: ChatState) -> list[str]:
    """Return what all messages say."""
    return [message.text for message in chat.messages]
