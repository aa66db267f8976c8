"""A chat as a text file that other programs read."""

from collections.abc import Sequence

import msgspec

from app.state.chat_values import ChatDetails, Message
from runtime.protocol.chat import Role


def to_markdown(title: str, messages: Sequence[Message]) -> str:
    """Return a chat as Markdown: a heading for each message, without the thinking."""
    parts = [f"# {title}"]
    for message in messages:
        is_question = message.role is Role.USER
        speaker = "You" if is_question else message.model_name or "Model"
        parts.append(f"## {speaker}\n\n{message.text.strip()}")
    return "\n\n".join(parts) + "\n"


def to_json(details: ChatDetails, messages: Sequence[Message]) -> str:
    """Return a chat as JSON: what it has beside its messages, thinking apart, and the statistics.

    ``num_untold`` counts the messages at the beginning for which the summary, if there is one, is
    told to the model.
    """
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
    chat = {
        "title": details.title,
        "update_time": details.changed_at_s,
        "is_pinned": details.is_pinned,
        "folder": details.folder,
        "preset": details.preset,
        "summary": details.summary,
        "num_untold": sum(message.message_id < details.told_from_id for message in messages),
        "messages": rows,
    }
    return msgspec.json.format(msgspec.json.encode(chat), indent=2).decode("utf-8") + "\n"
