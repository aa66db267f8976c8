"""What is sent to the model for an answer, and what is left out where there is no room."""

from collections.abc import Sequence

from app.state.chat_values import Message
from runtime.protocol.chat import ChatMessage, Role

_FILLED_RATIO = 0.7
"""Of the context, when the oldest messages are left out: the next answers need room too."""


def conversation_of(
    messages: Sequence[Message], system_prompt: str, model_name: str, summary: str = ""
) -> list[ChatMessage]:
    """Return the conversation up to its last question, or to the answer that is to go on.

    A summary of what came before stands in the first question, because not every model takes
    instructions. Ids go along with answers of the same model only, because another one's mean
    other text.
    """
    opening = (
        [ChatMessage(role=Role.SYSTEM, text=system_prompt.strip())] if system_prompt.strip() else []
    )
    before = f"(Summary of our conversation before: {summary})\n\n" if summary else ""
    return opening + [
        ChatMessage(
            role=message.role,
            text=message.text if position else before + message.text,
            token_ids=list(message.token_ids) if message.model_name == model_name else [],
            thinking=message.thinking,
        )
        for position, message in enumerate(messages)
    ]


def told_of(
    messages: Sequence[Message], first_id: int, *, has_more: bool = False
) -> Sequence[Message]:
    """Return the messages that are told: those from an id on, from a question on.

    The last question is always told, unless more follows.
    """
    for position, message in enumerate(messages):
        if message.message_id >= first_id and message.role is Role.USER:
            return messages[position:]
    if has_more:
        return ()
    last = max((n for n, each in enumerate(messages) if each.role is Role.USER), default=0)
    return messages[last:]


def told_from_id(
    messages: Sequence[Message], question: str, num_tokens: int, context_tokens: int
) -> int:
    """Return the id from which on messages fit before a question, newest first.

    ``num_tokens`` is what all of them take with the question; of each the share by characters is
    taken, and the outcome is to be counted again.
    """
    lengths = [len(message.text) for message in messages]
    per_character = num_tokens / max(1, sum(lengths) + len(question))
    room = context_tokens * _FILLED_RATIO - len(question) * per_character
    first_id = messages[-1].message_id + 1
    for message, length in zip(reversed(messages), reversed(lengths), strict=True):
        room -= length * per_character
        if room < 0:
            break
        if message.role is Role.USER:
            first_id = message.message_id
    return first_id
