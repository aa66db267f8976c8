"""The first start in the window: what its steps lead to."""

from pathlib import Path

from PySide6.QtCore import QObject

from app.link.client import RuntimeClient
from app.state.library import LibraryState
from app.state.session import Session
from app.state.settings import SettingsState
from app.state.welcome import Welcome
from app.theme.palette import Palette
from app.views.main_window import MainWindow
from app.views.rail import Page


class FirstStart(QObject):
    """Covers the window with the three steps until a person is through or goes to a page.

    Threads: window thread.
    """

    def __init__(
        self,
        window: MainWindow,
        client: RuntimeClient,
        session: Session,
        settings: SettingsState,
        library: LibraryState,
        data: Path,
    ) -> None:
        super().__init__(window)
        self._window = window
        self._session = session
        self._settings = settings
        self._demo = library.demo_folder
        places = [place for place in (self._demo, str(data)) if place]
        self.welcome = Welcome(client, session, settings, places, self)
        self.welcome.ended.connect(window.uncover)

    def show(self, palette: Palette) -> None:
        """Show it to a person who has seen neither it nor a model."""
        values = self._settings.values
        if values.is_welcomed or values.last_folder:
            return
        from app.views.welcome_view import WelcomeView

        view = WelcomeView(self.welcome, palette, has_demo=bool(self._demo))
        self._window.cover(view)
        view.demo_wanted.connect(self._on_demo_wanted)
        view.folder_wanted.connect(self._on_folder_wanted)
        view.discover_wanted.connect(self._on_discover_wanted)
        # Whoever goes to a page, by a key or by dropping a folder, is through.
        self._window.page_shown.connect(self.welcome.finish)
        self.welcome.begin()
        view.focus_first()

    def _on_demo_wanted(self) -> None:
        """Talk to the demo, which has been loading since the start."""
        self._window.show_page(Page.CHAT)
        if self._session.loaded is None and not self._session.loading_folder:
            self._session.load_folder(self._demo)

    def _on_folder_wanted(self) -> None:
        self._window.show_page(Page.MODELS)
        self._window.open_wanted.emit()

    def _on_discover_wanted(self) -> None:
        from app.views.models_view import ModelsView

        self._window.show_page(Page.MODELS)
        view = self._window.page(Page.MODELS)
        assert isinstance(view, ModelsView)
        view.show_discover()
