"""The list of chats: new, search, open, pin, rename, save, bring in, delete."""

import dataclasses
from collections.abc import Container, Sequence

from PySide6.QtCore import QEvent, QObject, QPoint, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QInputDialog,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QMenu,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.state.chat_values import ChatHeading
from app.text.preset_words import FolderWords, folder_name
from app.text.view_words import DialogWords
from app.text.words import ChatWords
from app.theme import metrics
from app.theme.apply import icon
from app.theme.palette import Palette
from app.views.pieces import IconButton, button, label, menu_text

_ROW = QSize(0, 32)
_INDENT = "      "
"""Before the title of a chat in a folder."""


@dataclasses.dataclass(frozen=True, slots=True)
class FolderHeading:
    """The line above the chats of a folder."""

    name: str
    num_chats: int
    is_open: bool


def arranged(
    chats: Sequence[ChatHeading], closed: Container[str]
) -> tuple[ChatHeading | FolderHeading, ...]:
    """Return the lines of the list: pinned chats, folders by name with theirs, then the rest."""
    folders: dict[str, list[ChatHeading]] = {}
    for chat in chats:
        if chat.folder and not chat.is_pinned:
            folders.setdefault(chat.folder, []).append(chat)
    rows: list[ChatHeading | FolderHeading] = [chat for chat in chats if chat.is_pinned]
    for name in sorted(folders, key=str.casefold):
        is_open = name not in closed
        rows.append(FolderHeading(name, len(folders[name]), is_open))
        rows += folders[name] if is_open else []
    rows += [chat for chat in chats if not chat.folder and not chat.is_pinned]
    return tuple(rows)


class ChatList(QWidget):
    """Headings of all chats, pinned and then newest first, of which one may be open."""

    new_wanted = Signal()
    chosen = Signal(object)
    search_changed = Signal(str)
    rename_wanted = Signal(object, str)
    pin_wanted = Signal(object, bool)
    delete_wanted = Signal(object)
    move_wanted = Signal(object, str)
    """Chat id, and the name of a folder; empty for none."""
    folder_renamed = Signal(str, str)
    """The name before and after; an empty one takes the folder away."""
    export_wanted = Signal(object)
    import_wanted = Signal()

    def __init__(self, palette: Palette, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._palette = palette
        self._rows: tuple[ChatHeading | FolderHeading, ...] = ()
        self._chats: tuple[ChatHeading, ...] = ()
        self._open_id: int | None = None
        self._is_searching = False
        self._closed: set[str] = set()
        """Folders whose chats are not listed."""
        self.setFixedWidth(metrics.CHAT_LIST_WIDTH)
        new = button(ChatWords.NEW_CHAT, "primary")
        new.setToolTip("Ctrl+N")
        new.clicked.connect(self.new_wanted)
        self._more = IconButton("more", DialogWords.LIST_MENU, palette)
        self._more.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self._more.setProperty("look", "menu")
        menu = QMenu(self._more)
        menu.addAction(ChatWords.IMPORT).triggered.connect(self.import_wanted)
        self._more.setMenu(menu)
        head = QHBoxLayout()
        head.setSpacing(4)
        head.addWidget(new, 1)
        head.addWidget(self._more)
        self._search = QLineEdit()
        self._search.setPlaceholderText(ChatWords.SEARCH)
        self._search.setAccessibleName(ChatWords.SEARCH)
        self._search.setClearButtonEnabled(True)
        self._search.textChanged.connect(self.search_changed)
        self._empty = label("", "dim", is_wrapping=True)
        self._list = QListWidget()
        self._list.setAccessibleName(ChatWords.CHATS)
        self._list.setTextElideMode(Qt.TextElideMode.ElideRight)
        self._list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._list.setUniformItemSizes(True)
        self._list.setIconSize(QSize(14, 14))
        self._list.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self._list.customContextMenuRequested.connect(self._on_menu_wanted)
        self._list.itemClicked.connect(self._on_item_clicked)
        self._list.installEventFilter(self)
        self._list.itemActivated.connect(self._on_item_chosen)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 14, 8, 12)
        layout.setSpacing(8)
        layout.addLayout(head)
        layout.addWidget(self._search)
        layout.addWidget(self._empty)
        layout.addWidget(self._list, 1)

    def show_chats(
        self, chats: Sequence[ChatHeading], open_id: int | None, *, is_searching: bool
    ) -> None:
        """Show the headings and which of them is open."""
        self._chats = tuple(chats)
        self._open_id = open_id
        self._is_searching = is_searching
        self._fill()
        self._empty.setVisible(not chats)
        self._empty.setText(ChatWords.NOTHING_FOUND if is_searching else ChatWords.NO_CHATS)

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._palette = palette
        self._more.show_palette(palette)
        for row, heading in enumerate(self._rows):
            if isinstance(heading, ChatHeading) and heading.is_pinned:
                self._mark_pinned(self._list.item(row))

    def _fill(self) -> None:
        self._rows = arranged(self._chats, () if self._is_searching else self._closed)
        self._list.blockSignals(True)
        self._list.clear()
        for heading in self._rows:
            if isinstance(heading, FolderHeading):
                self._list.addItem(self._folder_item(heading))
                continue
            indent = _INDENT if heading.folder and not heading.is_pinned else ""
            item = QListWidgetItem(indent + heading.title)
            item.setToolTip(heading.title)
            item.setData(Qt.ItemDataRole.AccessibleTextRole, heading.title)
            if heading.is_pinned:
                self._mark_pinned(item)
            item.setSizeHint(_ROW)
            self._list.addItem(item)
            if heading.chat_id == self._open_id:
                self._list.setCurrentItem(item)
        self._list.blockSignals(False)

    @staticmethod
    def _folder_item(heading: FolderHeading) -> QListWidgetItem:
        item = QListWidgetItem(f"{'▾' if heading.is_open else '▸'}  {heading.name}")
        name = folder_name(heading.name, heading.num_chats, is_open=heading.is_open)
        item.setToolTip(name)
        item.setData(Qt.ItemDataRole.AccessibleTextRole, name)
        item.setFlags(Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable)
        item.setSizeHint(_ROW)
        return item

    def _mark_pinned(self, item: QListWidgetItem) -> None:
        item.setIcon(icon("pin", self._palette.dim))
        name = f"{ChatWords.PINNED}: {item.text()}"
        item.setToolTip(name)
        item.setData(Qt.ItemDataRole.AccessibleTextRole, name)

    def menu_of(self, row: int) -> QMenu:
        """Return what can be done with a chat or a folder; it goes when it is closed."""
        chat = self._rows[row]
        if isinstance(chat, FolderHeading):
            return self._folder_menu(chat.name)
        menu = QMenu(self)
        pin = menu.addAction(ChatWords.UNPIN if chat.is_pinned else ChatWords.PIN)
        rename = menu.addAction(ChatWords.RENAME)
        menu.addMenu(self._move_menu(chat, menu))
        export = menu.addAction(ChatWords.EXPORT)
        delete = menu.addAction(ChatWords.DELETE)
        pin.triggered.connect(lambda: self.pin_wanted.emit(chat.chat_id, not chat.is_pinned))
        rename.triggered.connect(lambda: self._ask_title(chat.chat_id, chat.title))
        export.triggered.connect(lambda: self.export_wanted.emit(chat.chat_id))
        delete.triggered.connect(lambda: self.delete_wanted.emit(chat.chat_id))
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        return menu

    def _folder_menu(self, name: str) -> QMenu:
        menu = QMenu(self)
        menu.addAction(FolderWords.RENAME).triggered.connect(lambda: self._ask_folder_name(name))
        menu.addAction(FolderWords.DISSOLVE).triggered.connect(
            lambda: self.folder_renamed.emit(name, "")
        )
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        return menu

    def _move_menu(self, chat: ChatHeading, parent: QWidget) -> QMenu:
        menu = QMenu(FolderWords.MOVE, parent)
        names = sorted({each.folder for each in self._chats if each.folder}, key=str.casefold)
        for name in ("", *names):
            action = menu.addAction(menu_text(name) or FolderWords.NO_FOLDER)
            action.setCheckable(True)
            action.setChecked(name == chat.folder)
            action.triggered.connect(
                lambda _=False, name=name: self.move_wanted.emit(chat.chat_id, name)
            )
        menu.addSeparator()
        menu.addAction(FolderWords.NEW).triggered.connect(lambda: self._ask_folder(chat.chat_id))
        return menu

    def _ask_folder(self, chat_id: int) -> None:
        name, is_given = QInputDialog.getText(self, FolderWords.NEW_TITLE, DialogWords.RENAME_LABEL)
        if is_given and name.strip():
            self.move_wanted.emit(chat_id, name.strip())

    def _ask_folder_name(self, before: str) -> None:
        name, is_given = QInputDialog.getText(
            self, FolderWords.RENAME_TITLE, DialogWords.RENAME_LABEL, text=before
        )
        if is_given and name.strip():
            self._closed.discard(before)
            self.folder_renamed.emit(before, name.strip())

    def focus_search(self) -> None:
        """Put the cursor into the search field."""
        self._search.setFocus()
        self._search.selectAll()

    def _on_item_chosen(self, item: QListWidgetItem) -> None:
        heading = self._rows[self._list.row(item)]
        if isinstance(heading, ChatHeading):
            self.chosen.emit(heading.chat_id)

    def _on_item_clicked(self, item: QListWidgetItem) -> None:
        heading = self._rows[self._list.row(item)]
        if isinstance(heading, ChatHeading):
            self.chosen.emit(heading.chat_id)
        elif not self._is_searching:
            self._turn(heading)

    def _turn(self, heading: FolderHeading) -> None:
        """Open a folder that is closed, close one that is open; a search shows all open."""
        self._closed ^= {heading.name}
        self._fill()
        names = [each.name if isinstance(each, FolderHeading) else "" for each in self._rows]
        self._list.setCurrentRow(names.index(heading.name))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Open and close folders by keys, which a click does too."""
        if isinstance(event, QKeyEvent) and event.type() is QEvent.Type.KeyPress:
            row = self._list.currentRow()
            heading = self._rows[row] if 0 <= row < len(self._rows) else None
            if isinstance(heading, FolderHeading) and not self._is_searching:
                turning = {Qt.Key.Key_Right: False, Qt.Key.Key_Left: True}
                is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
                if is_enter or turning.get(Qt.Key(event.key())) is heading.is_open:
                    self._turn(heading)
                    return True
        return super().eventFilter(watched, event)

    def _on_menu_wanted(self, position: QPoint) -> None:
        item: QListWidgetItem | None = self._list.itemAt(position)
        if item is None:
            return
        menu = self.menu_of(self._list.row(item))
        menu.popup(self._list.viewport().mapToGlobal(position))

    def _ask_title(self, chat_id: int, title: str) -> None:
        new_title, is_given = QInputDialog.getText(
            self, DialogWords.RENAME_TITLE, DialogWords.RENAME_LABEL, text=title
        )
        if is_given and new_title.strip():
            self.rename_wanted.emit(chat_id, new_title.strip())
