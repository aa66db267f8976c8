"""The list of chats: new, search, open, pin, rename, save, bring in, delete."""

from collections.abc import Sequence

from PySide6.QtCore import QPoint, QSize, Qt, Signal
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
from app.text.view_words import DialogWords
from app.text.words import ChatWords
from app.theme import metrics
from app.theme.apply import icon
from app.theme.palette import Palette
from app.views.pieces import IconButton, button, label

_CHAT_ID = Qt.ItemDataRole.UserRole


class ChatList(QWidget):
    """Headings of all chats, pinned and then newest first, of which one may be open."""

    new_wanted = Signal()
    chosen = Signal(object)
    search_changed = Signal(str)
    rename_wanted = Signal(object, str)
    pin_wanted = Signal(object, bool)
    delete_wanted = Signal(object)
    export_wanted = Signal(object)
    import_wanted = Signal()

    def __init__(self, palette: Palette, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._palette = palette
        self._chats: Sequence[ChatHeading] = ()
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
        self._list.itemClicked.connect(self._on_item_chosen)
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
        self._list.blockSignals(True)
        self._list.clear()
        for chat in chats:
            item = QListWidgetItem(chat.title)
            item.setToolTip(chat.title)
            if chat.is_pinned:
                self._mark_pinned(item)
            item.setData(_CHAT_ID, chat.chat_id)
            item.setSizeHint(QSize(0, 32))
            self._list.addItem(item)
            if chat.chat_id == open_id:
                self._list.setCurrentItem(item)
        self._list.blockSignals(False)
        self._empty.setVisible(not chats)
        self._empty.setText(ChatWords.NOTHING_FOUND if is_searching else ChatWords.NO_CHATS)

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._palette = palette
        self._more.show_palette(palette)
        for row, chat in enumerate(self._chats):
            if chat.is_pinned:
                self._mark_pinned(self._list.item(row))

    def _mark_pinned(self, item: QListWidgetItem) -> None:
        item.setIcon(icon("pin", self._palette.dim))
        name = f"{ChatWords.PINNED}: {item.text()}"
        item.setToolTip(name)
        item.setData(Qt.ItemDataRole.AccessibleTextRole, name)

    def menu_of(self, row: int) -> QMenu:
        """Return what can be done with a chat; it goes when it is closed."""
        chat = self._chats[row]
        menu = QMenu(self)
        pin = menu.addAction(ChatWords.UNPIN if chat.is_pinned else ChatWords.PIN)
        rename = menu.addAction(ChatWords.RENAME)
        export = menu.addAction(ChatWords.EXPORT)
        delete = menu.addAction(ChatWords.DELETE)
        pin.triggered.connect(lambda: self.pin_wanted.emit(chat.chat_id, not chat.is_pinned))
        rename.triggered.connect(lambda: self._ask_title(chat.chat_id, chat.title))
        export.triggered.connect(lambda: self.export_wanted.emit(chat.chat_id))
        delete.triggered.connect(lambda: self.delete_wanted.emit(chat.chat_id))
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        return menu

    def focus_search(self) -> None:
        """Put the cursor into the search field."""
        self._search.setFocus()
        self._search.selectAll()

    def _on_item_chosen(self, item: QListWidgetItem) -> None:
        self.chosen.emit(int(item.data(_CHAT_ID)))

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
