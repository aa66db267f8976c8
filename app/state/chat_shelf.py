"""All chats as a list: their order, search, names and folders, files with chats."""

from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.state.chat_backup import ChatBackup
from app.state.chat_export import to_json, to_markdown
from app.state.chat_reading import ImportEnd, Reading
from app.state.chat_store import ChatStore, NameColumn
from app.state.chat_values import ChatHeading
from app.state.import_flow import ImportFlow
from app.timers import single_shot

RETRY_INTERVAL_MS = 30_000
"""While chats are in memory only, the file is tried this often."""


class ChatShelf(QObject):
    """The chats that are kept, whichever of them is open. Threads: window thread."""

    chats_changed = Signal()
    """``chats`` changed (order, titles, search)."""
    noticed = Signal(object, str)
    """A ``ChatNotice`` with its parameter."""
    imported = Signal(object)
    """The ``ImportEnd`` of a file whose chats were taken in."""
    import_progressed = Signal(float, int)
    """How much of a file was read, from 0 to 1, and how many chats were taken in."""

    def __init__(self, path: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = ChatStore(path)
        self._backup = ChatBackup(path, self)
        self._search_text = ""
        self._chats = self._store.headings()
        self._imports = ImportFlow(self._store.add_chat, self)
        self._imports.ended.connect(self._on_imported)
        self._imports.progressed.connect(self.import_progressed)
        self._retry_timer = single_shot(self, RETRY_INTERVAL_MS, self._retry)
        self._tell_timer = single_shot(self, 0, self._tell)
        self._tell_timer.start()

    @property
    def chats(self) -> list[ChatHeading]:
        """Pinned ones, then newest first; those that match ``search_text``."""
        return self._chats

    @property
    def search_text(self) -> str:
        """What is searched for; empty shows all chats."""
        return self._search_text

    @property
    def is_saved(self) -> bool:
        """Whether chats are in their file, and not in memory only."""
        return self._store.is_saved

    def rename_chat(self, chat_id: int, title: str) -> None:
        """Give a chat another title; an empty one changes nothing."""
        if title.strip():
            self._store.rename_chat(chat_id, " ".join(title.split()))
            self._refresh()

    def pin_chat(self, chat_id: int, *, is_pinned: bool) -> None:
        """Keep a chat at the top of the list, or let it go."""
        self._store.pin_chat(chat_id, is_pinned=is_pinned)
        self._refresh()

    def import_chats(self, chats: Reading) -> None:
        """Add chats of a file to the list; ``imported`` tells when that is done."""
        self._imports.start(chats)

    def stop_import(self) -> None:
        """Read no more of the file; what was taken in stays."""
        self._imports.stop()

    def search(self, text: str) -> None:
        """Show the chats with these words; empty shows all."""
        self._search_text = text
        self._refresh()

    def move_chat(self, chat_id: int, folder: str) -> None:
        """Put a chat into a folder, which is there as long as a chat is in it; empty for none."""
        self._store.move_chat(chat_id, " ".join(folder.split()))
        self._refresh()

    def rename_folder(self, before: str, after: str) -> None:
        """Give a folder another name, or with an empty one take it away from its chats."""
        self._store.rename_everywhere(NameColumn.FOLDER, before, " ".join(after.split()))
        self._refresh()

    def export_markdown(self, chat_id: int) -> str:
        """Return a chat as Markdown."""
        return to_markdown(self._title_of(chat_id), self._store.messages(chat_id))

    def export_json(self, chat_id: int) -> str:
        """Return a chat as JSON."""
        store = self._store
        return to_json(store.details(chat_id), store.messages(chat_id), store.all_messages(chat_id))

    def close_list(self) -> None:
        """Save everything; called once at the end."""
        self._imports.finish()
        self._retry_timer.stop()
        self._tell_timer.stop()
        self._store.close()
        self._backup.close()

    def _title_of(self, chat_id: int | None) -> str:
        return self._store.title(chat_id) if chat_id is not None else ""

    def _refresh(self) -> None:
        self._chats = self._store.headings(self._search_text)
        self._tell_timer.start()
        self.chats_changed.emit()

    def _on_imported(self, end: ImportEnd) -> None:
        self._refresh()
        self.imported.emit(end)

    def _retry(self) -> None:
        self._store.try_to_save()
        self._tell()

    def _tell(self) -> None:
        """Pass on what the store has to say, and try the file again if it was lost."""
        for notice, text in self._store.take_notices():
            self.noticed.emit(notice, text)
        if not self._store.is_saved and not self._retry_timer.isActive():
            self._retry_timer.start()
