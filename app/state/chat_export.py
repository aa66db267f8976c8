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


def to_json(
    details: ChatDetails,
    messages: Sequence[Message],
    tree: Sequence[tuple[int | None, Message]] = (),
) -> str:
    """Return a chat as JSON: what it has beside its messages, thinking apart, and the statistics.

    ``messages`` is the branch that is shown, ``tree`` all messages with the ids of what they
    follow. Where there are others than those shown they stand in ``branches``, and each message has
    its number and that of the one it follows. ``num_untold`` counts the messages at the beginning
    for which the summary, if there is one, is told to the model.
    """
    shown = {message.message_id for message in messages}
    others = [message for _, message in tree if message.message_id not in shown]
    order = {message.message_id: place for place, (_, message) in enumerate(tree)}
    places = {
        message.message_id: {
            "number": order[message.message_id],
            "parent": None if parent is None else order[parent],
        }
        for parent, message in (tree if others else ())
    }

    def row(message: Message) -> dict[str, object]:
        return {
            "role": message.role,
            "text": message.text,
            "thinking": message.thinking,
            "model": message.model_name,
            "end": message.end,
            "stats": message.stats,
            **places.get(message.message_id, {}),
        }

    chat = {
        "title": details.title,
        "update_time": details.changed_at_s,
        "is_pinned": details.is_pinned,
        "folder": details.folder,
        "preset": details.preset,
        "summary": details.summary,
        "num_untold": sum(message.message_id < details.told_from_id for message in messages),
        "messages": [row(message) for message in messages],
    }
    if others:
        chat["branches"] = [row(message) for message in others]
    return msgspec.json.format(msgspec.json.encode(chat), indent=2).decode("utf-8") + "\n"
