"""The turns of a conversation as a template is given them, and which of them it stumbles over."""

from collections.abc import Callable, Sequence

from runtime.errors import LarderError
from runtime.protocol.chat import ChatMessage, Role

Rendered = Callable[[Sequence[ChatMessage]], object]
"""Writes down a conversation; raises ``LarderError``."""


def words_of(messages: Sequence[ChatMessage]) -> list[str]:
    """Return the texts of all messages, and after them the thinking of those that thought."""
    return [message.text for message in messages] + [
        messages[index].thinking for index in thinkers(messages)
    ]


def are_answers(messages: Sequence[ChatMessage]) -> list[bool]:
    """Return for each of the ``words_of`` messages whether the model wrote them."""
    is_answer = [message.role is Role.ASSISTANT for message in messages]
    return is_answer + [True for _ in thinkers(messages)]


def thinkers(messages: Sequence[ChatMessage]) -> list[int]:
    """Return the positions of the messages that thought."""
    return [
        index
        for index, message in enumerate(messages)
        if message.role is Role.ASSISTANT and message.thinking
    ]


def as_template_sees(
    messages: Sequence[ChatMessage], words: Sequence[str]
) -> list[dict[str, object]]:
    """Return the messages with these words in place of their own.

    Thinking goes under both names that published templates read.
    """
    turns: list[dict[str, object]] = [
        {"role": message.role.value, "content": text}
        for message, text in zip(messages, words, strict=False)
    ]
    for index, thinking in zip(thinkers(messages), words[len(messages) :], strict=True):
        turns[index] |= {"reasoning_content": thinking, "thinking": thinking}
    return turns


def named(error: LarderError, messages: Sequence[ChatMessage], render: Rendered) -> LarderError:
    """Return an error of writing down a conversation with the turn that it begins with.

    That is the first one with which the same thing goes wrong.
    """
    for count in range(1, len(messages) + 1):
        try:
            render(messages[:count])
        except LarderError as same:
            if (same.code, same.parameters) == (error.code, error.parameters):
                reason = f"at {_name_of(messages, count - 1)}: {error.parameters['reason']}"
                return LarderError(error.code, error.detail, reason=reason, turn=count)
    return error


def _name_of(messages: Sequence[ChatMessage], index: int) -> str:
    """Return how a person would call a turn."""
    role = messages[index].role
    number = sum(message.role is role for message in messages[: index + 1])
    return {
        Role.SYSTEM: "the system prompt",
        Role.USER: f"question {number}",
        Role.ASSISTANT: f"answer {number}",
    }[role]
