"""One download: its name, how far it is, and what can be done with it."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QProgressBar

from app.state.downloads import DownloadItem, DownloadStage
from app.text.discover_words import DiscoverWords, download_line, download_name
from app.views.pieces import Card, button, label, set_look

_CAN_PAUSE = (DownloadStage.WAITING, DownloadStage.RUNNING)
_CAN_RESUME = (DownloadStage.PAUSED, DownloadStage.FAILED)


class DownloadCard(Card):
    """Shows a ``DownloadItem``."""

    pause_wanted = Signal(str)
    resume_wanted = Signal(str)
    remove_wanted = Signal(str)
    folder_chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._item: DownloadItem | None = None
        self._name = label("", "strong", is_wrapping=True)
        self._line = label("", "dim", is_wrapping=True)
        self._bar = QProgressBar()
        self._bar.setTextVisible(False)
        self._bar.setRange(0, 1000)
        self.pause = button(DiscoverWords.PAUSE, "quiet")
        self.resume = button(DiscoverWords.RESUME, "quiet")
        self.remove = button(DiscoverWords.REMOVE, "quiet")
        self.look_at = button(DiscoverWords.LOOK_AT, "quiet")
        self.body.addWidget(self._name)
        self.body.addWidget(self._bar)
        self.body.addWidget(self._line)
        foot = QHBoxLayout()
        foot.addStretch(1)
        for widget in (self.look_at, self.pause, self.resume, self.remove):
            foot.addWidget(widget)
        self.body.addLayout(foot)
        self.pause.clicked.connect(lambda: self.pause_wanted.emit(self.item.key))
        self.resume.clicked.connect(lambda: self.resume_wanted.emit(self.item.key))
        self.remove.clicked.connect(lambda: self.remove_wanted.emit(self.item.key))
        self.look_at.clicked.connect(lambda: self.folder_chosen.emit(self.item.folder))

    @property
    def item(self) -> DownloadItem:
        """The download that is shown."""
        assert self._item is not None, "a card is shown with a download"
        return self._item

    def text(self) -> str:
        """Return what it says of the download."""
        return self._line.text()

    def show_item(self, item: DownloadItem) -> None:
        """Show how far a download is; nothing is laid out anew while only amounts change."""
        if item == self._item:
            return
        stage_before = self._item.stage if self._item is not None else None
        self._item = item
        self._name.setText(download_name(item))
        self._line.setText(download_line(item))
        ratio = item.done_bytes / item.total_bytes if item.total_bytes else 0.0
        self._bar.setValue(round(min(ratio, 1.0) * 1000))
        if item.stage is stage_before:
            return
        is_done = item.stage is DownloadStage.DONE
        set_look(self._line, "look", "error" if item.stage is DownloadStage.FAILED else "dim")
        self._bar.setVisible(not is_done)
        self._bar.setAccessibleName(download_name(item))
        self.pause.setVisible(item.stage in _CAN_PAUSE)
        self.resume.setVisible(item.stage in _CAN_RESUME)
        self.look_at.setVisible(is_done)
        word = DiscoverWords.CLEAR if is_done else DiscoverWords.REMOVE
        self.remove.setText(word)
        self.remove.setAccessibleName(word)
