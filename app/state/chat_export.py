"""A chat as a text file that other programs read."""

from collections.abc import Sequence

import msgspec

from app.state.chat_values import Message
from runtime.protocol.chat import Role


def to_markdown(title: str, messages: Sequence[Message]) -> str:
    """Return a chat as Markdown: a heading for each message, without the thinking."""
    parts = [f"# {title}"]
    for message in messages:
        is_question = message.role is Role.USER
        speaker = "You" if is_question else message.model_name or "Model"
        parts.append(f"## {speaker}\n\n{message.text.strip()}")
    return "\n\n".join(parts) + "\n"


def to_json(title: str, messages: Sequence[Message]) -> str:
    """Return a chat as JSON, with thinking in its own field and the statistics."""
    rows = [
        {
            "role": message.role,
            "text": message.text,
            "thinking": message.thinking,
            "model": message.model_name,
            "end": message.end,
            "stats": message.stats,
        }
        for message in messages
    ]
    encoded = msgspec.json.encode({"title": title, "messages": rows})
    return msgspec.json.format(encoded, indent=2).decode("utf-8") + "\n"
