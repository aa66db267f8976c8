"""The conversations: the list, the open one, and the answer that is being written."""

from PySide6.QtCore import QObject, Signal

from app.state.chat_values import ChatHeading, Message
from runtime.protocol.errors import ErrorReport


class ChatState(QObject):
    """All chats and the one that is open; takes the intents of the Chat page.

    Threads: window thread.
    """

    chats_changed = Signal()
    """``chats`` changed (order, titles, search)."""
    messages_changed = Signal()
    """Another chat is open or its messages changed as a whole: show ``messages`` anew."""
    answer_grew = Signal()
    """The text of the last message grew; at most once in 30 ms."""
    answer_ended = Signal()
    """The last message is complete; its statistics and end are there."""
    asking_changed = Signal()
    """``is_answering``, ``can_ask`` or ``prompt_progress`` changed."""
    failed = Signal(object)
    """An ``ErrorReport``: the question could not be answered."""
    noticed = Signal(object, str)
    """A ``ChatNotice`` with its parameter."""

    # what is true now
    chats: list[ChatHeading]
    """Newest first; those that match ``search_text``."""
    chat_id: int | None
    """The open chat; None is a new one that has no message yet."""
    title: str
    messages: list[Message]
    is_answering: bool
    can_ask: bool
    can_undo_delete: bool
    prompt_progress: tuple[int, int] | None
    """Prompt tokens done and in all, while the prompt is being read."""
    draft: str
    """Unsent text of the open chat."""
    context_used_tokens: int
    context_tokens: int
    """0 while no model is loaded."""
    search_text: str
    error: ErrorReport | None

    # intents
    def ask(self, text: str) -> bool:
        """Send a question; False (and nothing changes) if that is not possible now."""
        return False

    def stop(self) -> None: ...
    def regenerate(self) -> bool:
        """Write another answer to the last question; the old one stays as a variant."""
        return False

    def edit_question(self, message_id: int, text: str) -> bool:
        """Ask a question in other words; the old wording stays as a variant."""
        return False

    def show_variant(self, message_id: int, step: int) -> None:
        """Show the next (+1) or previous (-1) variant of a message."""

    def new_chat(self) -> None: ...
    def open_chat(self, chat_id: int) -> None: ...
    def delete_chat(self, chat_id: int) -> None: ...
    def undo_delete(self) -> None: ...
    def rename_chat(self, chat_id: int, title: str) -> None: ...
    def search(self, text: str) -> None: ...
    def set_draft(self, text: str) -> None: ...
    def export_markdown(self, chat_id: int) -> str:
        """Return a chat as Markdown."""
        return ""

    def close(self) -> None:
        """Save everything; called once at the end."""
