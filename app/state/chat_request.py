"""What is sent to the model for an answer."""

from collections.abc import Sequence

from app.state.chat_values import Message
from runtime.protocol.chat import ChatMessage, Role


def conversation_of(
    messages: Sequence[Message], system_prompt: str, model_name: str
) -> list[ChatMessage]:
    """Return the conversation up to its last question.

    Ids go along with answers of the same model only, because another one's mean other text.
    """
    opening = (
        [ChatMessage(role=Role.SYSTEM, text=system_prompt.strip())] if system_prompt.strip() else []
    )
    return opening + [
        ChatMessage(
            role=message.role,
            text=message.text,
            token_ids=list(message.token_ids) if message.model_name == model_name else [],
            thinking=message.thinking,
        )
        for message in messages
    ]
