"""The card of settings about hubs: whether one may be asked, which, and where downloads go."""

from PySide6.QtCore import QSignalBlocker
from PySide6.QtWidgets import QCheckBox, QFileDialog, QHBoxLayout, QLineEdit

from app.state.settings import SettingsState
from app.text.discover_words import DiscoverWords
from app.views.pieces import Card, button, label


class HubSettings(Card):
    """Shows the settings and changes them at once."""

    def __init__(self, settings: SettingsState, usual_folder: str) -> None:
        super().__init__(DiscoverWords.HUB)
        self._settings = settings
        self._usual_folder = usual_folder
        self.allowed = QCheckBox(DiscoverWords.HUB_ALLOWED)
        self.allowed.setAccessibleName(DiscoverWords.HUB_ALLOWED)
        self.address = QLineEdit()
        self.address.setPlaceholderText(DiscoverWords.HUB_ADDRESS_HINT)
        self.address.setAccessibleName(DiscoverWords.HUB_ADDRESS)
        self._wrong = label(DiscoverWords.HUB_ADDRESS_WRONG, "error", is_wrapping=True)
        self._wrong.hide()
        self._folder = label("", "dim", is_wrapping=True)
        self.choose = button(DiscoverWords.CHOOSE_FOLDER, "quiet")
        self.usual = button(DiscoverWords.USUAL_FOLDER, "quiet")
        address = QHBoxLayout()
        address.addWidget(label(DiscoverWords.HUB_ADDRESS))
        address.addWidget(self.address, 1)
        folder = QHBoxLayout()
        folder.addWidget(label(DiscoverWords.FOLDER))
        folder.addWidget(self._folder, 1)
        folder.addWidget(self.usual)
        folder.addWidget(self.choose)
        self.body.addWidget(self.allowed)
        self.body.addLayout(address)
        self.body.addWidget(self._wrong)
        self.body.addLayout(folder)
        self.allowed.clicked.connect(lambda is_on: settings.change(is_hub_allowed=is_on))
        self.address.editingFinished.connect(self._on_address)
        self.choose.clicked.connect(self._on_choose)
        self.usual.clicked.connect(lambda: settings.change(download_folder=""))
        settings.changed.connect(self._show)
        self._show()

    def folder_text(self) -> str:
        """Return the place that is shown."""
        return self._folder.text()

    def _show(self) -> None:
        values = self._settings.values
        with QSignalBlocker(self.allowed), QSignalBlocker(self.address):
            self.allowed.setChecked(values.is_hub_allowed)
            if not self.address.hasFocus():
                self.address.setText(values.hub_address)
        self._folder.setText(values.download_folder or self._usual_folder)
        self.usual.setVisible(bool(values.download_folder))

    def _on_address(self) -> None:
        text = self.address.text().strip()
        is_good = not text or text.startswith(("https://", "http://"))
        self._wrong.setVisible(not is_good)
        if is_good:
            self._settings.change(hub_address=text)

    def _on_choose(self) -> None:
        start = self._folder.text()
        folder = QFileDialog.getExistingDirectory(self, DiscoverWords.FOLDER, start)
        if folder:
            self._settings.change(download_folder=folder)
