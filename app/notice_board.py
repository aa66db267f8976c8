"""What a person is told across all pages, above whatever page is shown."""

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal

from app.language import SpokenLanguage
from app.state.chat_values import ChatNotice
from app.state.downloads import DownloadItem
from app.state.model_removal import RemovalResult
from app.state.session import Session
from app.state.settings import SettingsState
from app.state.stages import Stage
from app.text import engine_words, update_words
from app.text.appearance_words import language_not_read
from app.text.discover_words import downloaded_line
from app.text.engine_words import EngineWords
from app.text.error_heads import NextStep
from app.text.library_words import removal_line
from app.text.notices import chat_notice, rested_notice, setting_notice
from app.text.update_words import UpdateWords
from app.text.words import ShellWords
from app.views.error_notice import show_error
from app.views.notice_bar import NoticeBar, NoticeSource
from runtime.protocol.errors import ErrorReport
from runtime.protocol.update_messages import ProgramUpdate

MAX_LOG_LINES = 12
"""Of the log of a runtime that ended, in the details of the notice."""


class NoticeBoard(QObject):
    """Puts words, and what can be done, into the window's bar of notices.

    Threads: window thread.
    """

    step_wanted = Signal(object)
    """A ``NextStep``: the person presses the button beside an error."""

    def __init__(
        self,
        bar: NoticeBar,
        session: Session,
        settings: SettingsState,
        language: SpokenLanguage,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._bar = bar
        self._session = session
        self._settings = settings
        self._language = language

    def show_settings(self) -> None:
        """Tell what is wrong with settings and with the file of the language."""
        texts = [setting_notice(notice) for notice in self._settings.notices]
        if self._language.unread_file:
            texts.append(language_not_read(self._language.unread_file, self._language.problem))
        if texts:
            self._bar.show_notice(NoticeSource.SETTINGS, "\n".join(texts), is_error=False)

    def show_chats(self, notice: ChatNotice, text: str) -> None:
        """Tell what became of the chats' file; its damage is told beside other things."""
        is_damage = notice in (ChatNotice.DAMAGED_SET_ASIDE, ChatNotice.RESTORED)
        source = NoticeSource.CHATS_DAMAGED if is_damage else NoticeSource.CHATS
        self._bar.show_notice(source, chat_notice(notice, text), is_error=False)

    def show_failure(self, error: ErrorReport) -> None:
        """Tell of an error of the session, and offer what helps with it."""
        session = self._session
        is_ended = session.stage is Stage.FAILED
        lines = session.outcome.log_lines if is_ended and session.outcome is not None else ()

        def take(step: NextStep) -> None:
            session.dismiss_error()
            self.step_wanted.emit(step)

        show_error(
            self._bar,
            NoticeSource.ENGINE,
            error,
            take,
            is_ended=is_ended,
            log_text="\n".join(lines[-MAX_LOG_LINES:]),
            on_closed=session.dismiss_error,
        )

    def show_update(self, update: ProgramUpdate, show: Callable[[], None]) -> None:
        """Tell that there is a newer version, and offer to look at what it changes."""
        actions = [(UpdateWords.SHOW, show)]
        self._bar.show_notice(
            NoticeSource.UPDATE, update_words.found(update.version), actions, is_error=False
        )

    def show_card(self, card: str, show: Callable[[], None]) -> None:
        """Tell that a graphics card is not used, and offer to look at what that takes."""
        actions = [(EngineWords.SHOW, show)]
        self._bar.show_notice(NoticeSource.CARD, engine_words.found(card), actions, is_error=False)

    def show_rested(self, folder: str, name: str) -> None:
        """Tell that a model was unloaded because it rested, and offer to load it again."""

        def load_again() -> None:
            self._bar.clear(NoticeSource.RESTED)
            self._session.load_folder(folder, self._settings.values.last_plan)

        text = rested_notice(name, self._settings.values.unload_after_min)
        actions = [(ShellWords.LOAD_AGAIN, load_again)]
        self._bar.show_notice(NoticeSource.RESTED, text, actions, is_error=False)

    def show_drop_refused(self) -> None:
        """Tell what can be dropped."""
        self._bar.show_notice(NoticeSource.DROP, ShellWords.DROP_ONLY_FOLDERS, is_error=False)

    def show_removal(self, result: RemovalResult) -> None:
        """Tell what became of a model that was to be deleted."""
        self._bar.show_notice(
            NoticeSource.REMOVED, removal_line(result), is_error=bool(result.refused)
        )

    def show_download(self, item: DownloadItem) -> None:
        """Tell that a model has arrived."""
        self._bar.show_notice(NoticeSource.DOWNLOADED, downloaded_line(item), is_error=False)
