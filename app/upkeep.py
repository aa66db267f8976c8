"""The program's own upkeep: newer versions of it, and the engine for graphics cards."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from app.notice_board import NoticeBoard
from app.state.engine_folder import read_engine_list
from app.state.engine_parts import EngineParts
from app.state.hub_link import HubLink
from app.state.licences import version
from app.state.package import read_package
from app.state.session import Session
from app.state.settings import SettingsState
from app.state.updates import Updates
from runtime.protocol.update_messages import ProgramUpdate

if TYPE_CHECKING:
    from app.views.settings_view import SettingsView


class Upkeep(QObject):
    """Owns both, and has a person told of what was found. Threads: window thread."""

    def __init__(
        self,
        link: HubLink,
        session: Session,
        settings: SettingsState,
        data: Path,
        environment: Mapping[str, str],
    ) -> None:
        super().__init__(link)
        package = read_package(environment)
        self.updates = Updates(link, settings, package, version(), data)
        self.engine = EngineParts(link, session, read_engine_list(), data)

    @property
    def shown_updates(self) -> Updates | None:
        """What the settings show of newer versions: nothing where there is no place to look."""
        return self.updates if self.updates.can_look else None

    @property
    def shown_engine(self) -> EngineParts | None:
        """What the settings show of the engine: nothing where none can be had."""
        return self.engine if self.engine.listed is not None else None

    def tell(self, notices: NoticeBoard, settings_view: "Callable[[], SettingsView]") -> None:
        """Put what is found into the bar of notices, from where the settings are shown."""

        def on_found(update: ProgramUpdate) -> None:
            notices.show_update(update, lambda: settings_view().show_updates())

        def on_offered(card: str) -> None:
            notices.show_card(card, lambda: settings_view().show_engine())

        self.updates.found.connect(on_found)
        self.engine.offered.connect(on_offered)
