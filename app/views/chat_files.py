"""Chats to files and back: the dialogs, and what a person is told afterwards."""

from pathlib import Path

from PySide6.QtWidgets import QFileDialog, QWidget

from app.state.chat import ChatState
from app.state.chat_import import ChatImportError
from app.state.chat_reading import ImportEnd, open_chats
from app.state.json_file import export_whole
from app.text import chat_phrases
from app.text.view_words import DialogWords
from app.views.notice_bar import NoticeBar, NoticeSource


class ChatFiles:
    """Saves a chat where a person wants it, and brings in what they choose."""

    def __init__(self, chat: ChatState, notice: NoticeBar, parent: QWidget) -> None:
        self._chat = chat
        self._notice = notice
        self._parent = parent
        self._paths: list[Path] = []
        """The files that are brought in, the first of them now."""
        self._is_told = False
        """That the first is being read."""
        chat.imported.connect(self._on_imported)
        chat.import_progressed.connect(self._on_progressed)

    def ask_to_save(self, chat_id: int) -> None:
        """Ask where a chat is to be saved: as Markdown, or as JSON where the name ends so."""
        title = next((c.title for c in self._chat.chats if c.chat_id == chat_id), "chat")
        safe = "".join(c if c.isalnum() or c in " -_" else "_" for c in title).strip() or "chat"
        path, kind = QFileDialog.getSaveFileName(
            self._parent, DialogWords.SAVE_TITLE, f"{safe}.md", DialogWords.CHAT_FILES
        )
        if path:
            is_json = kind.endswith("(*.json)") and not path.endswith(".md")
            self.save(chat_id, Path(path), is_json=is_json or path.endswith(".json"))

    def save(self, chat_id: int, path: Path, *, is_json: bool) -> None:
        """Write a chat to a file."""
        export = self._chat.export_json if is_json else self._chat.export_markdown
        try:
            export_whole(path, export(chat_id).encode("utf-8"))
        except OSError as error:
            text = f"{DialogWords.NOT_SAVED} {error.strerror}: {path}"
            self._notice.show_notice(NoticeSource.EXPORT, text)

    def ask_to_bring_in(self) -> None:
        """Ask for a file with chats."""
        path, _ = QFileDialog.getOpenFileName(
            self._parent, DialogWords.IMPORT_TITLE, "", DialogWords.IMPORT_FILES
        )
        if path:
            self.bring_in(Path(path))

    def bring_in(self, path: Path) -> None:
        """Add the chats of a file to the list."""
        try:
            chats = open_chats(path)
        except OSError as error:
            text = chat_phrases.unreadable(str(path), error.strerror or str(error))
            self._notice.show_notice(NoticeSource.IMPORT, text)
        except ChatImportError as error:
            self._tell_of_none(path, str(error))
        else:
            self._paths.append(path)
            self._chat.import_chats(chats)

    def _tell_of_none(self, path: Path, why: str) -> None:
        text = chat_phrases.not_imported(str(path))
        self._notice.show_notice(NoticeSource.IMPORT, text, detail=why)

    def _on_progressed(self, ratio: float, num_chats: int) -> None:
        text = chat_phrases.importing(self._paths[0].name, ratio, num_chats)
        if not self._is_told:
            self._is_told = True
            stop = (DialogWords.STOP_IMPORT, self._chat.stop_import)
            self._notice.show_notice(NoticeSource.IMPORT, text, [stop], is_error=False)
        elif (row := self._notice.row(NoticeSource.IMPORT)) is not None:
            row.change_text(text)

    def _on_imported(self, end: ImportEnd) -> None:
        path = self._paths.pop(0)
        self._is_told = False
        if end.error and not end.num_kept:
            self._tell_of_none(path, end.error)
            return
        text = chat_phrases.imported(end, path.name)
        is_whole = not end.error and not end.num_too_large
        self._notice.show_notice(NoticeSource.IMPORT, text, detail=end.error, is_error=not is_whole)
