"""The only place that builds the window's objects and connects them."""

import dataclasses
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, QTimer
from PySide6.QtWidgets import QApplication, QWidget

from app.end_signals import EndSignals
from app.first_start import FirstStart
from app.graphs.map_import import MapImport
from app.instance import SingleInstance, Start
from app.language import speak, zoomed
from app.link.client import RuntimeClient
from app.link.interpreter import start_apart
from app.link.process import RuntimeCommand, RuntimeProcess
from app.next_steps import NextSteps
from app.notice_board import NoticeBoard
from app.state.chat import ChatState
from app.state.discover import Discover
from app.state.downloads import DownloadItem, Downloads
from app.state.drive_watch import DriveWatch
from app.state.energy_book import EnergyBook
from app.state.engine_folder import read_engine_list, take_engine
from app.state.folders import AppFolders, app_folders, demo_folder, model_place, usual_roots
from app.state.forecast_book import ForecastBook
from app.state.hub_link import HubLink
from app.state.idle_unload import IdleUnload
from app.state.leftovers import remove_leftovers
from app.state.library import LibraryState
from app.state.library_search import LibrarySearch
from app.state.live_budgets import LiveBudgets
from app.state.model_removal import ModelRemoval
from app.state.monitor import Monitor
from app.state.report_bundle import report_bundle
from app.state.session import Session
from app.state.settings import SettingsState
from app.state.settings_file import read_settings
from app.state.stages import Stage
from app.state.telemetry import TelemetryState
from app.state.telemetry_watch import TelemetryWatch
from app.text import start_words
from app.text.shortcut_words import answer_announced, model_announced
from app.text.words import ChatWords, SettingWords, StripWords
from app.theme.apply import application_icon, apply_theme, load_fonts, palette_for
from app.theme.palette import Palette
from app.upkeep import Upkeep
from app.views.announce import announce
from app.views.chat_view import ChatView
from app.views.drop_zone import DropTarget
from app.views.main_window import MainWindow
from app.views.notice_bar import NoticeSource
from app.views.progress_text import progress_name
from app.views.rail import Page
from runtime.protocol.chat import GenerationStats, Role
from runtime.protocol.model import LoadedModel

if TYPE_CHECKING:
    from app.views.settings_view import SettingsView


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StartOptions:
    """What the command line asks of the window."""

    folder: str = ""
    """A model folder to load at once."""
    dropped: str = ""
    """A folder to look at, as if it had been dropped on the window."""
    is_welcome_wanted: bool = False
    """Show the first start to who has not seen it."""
    is_demo_wanted: bool = True
    """List the demo model, and load it on the first start."""
    runtime_arguments: tuple[str, ...] = ()


class Program(QObject):
    """The window with its state; owns every object and their connections.

    Threads: window thread.
    """

    def __init__(self, options: StartOptions, environment: Mapping[str, str]) -> None:
        super().__init__()
        self._options = options
        self.folders: AppFolders = app_folders(environment)
        remove_leftovers(self.folders.settings, self.folders.data)
        self.settings = SettingsState(self.folders.settings_file, self)
        self.language = speak(self.settings.values.language, self.folders.translations)
        self.is_restart_wanted = False
        demo = str(demo_folder(environment)) if options.is_demo_wanted else ""
        self.library = LibraryState(self.folders.library_file, demo, self)
        command = RuntimeCommand(options.runtime_arguments, str(self.folders.runtime_log))
        self.client = RuntimeClient(RuntimeProcess(command, self), self)
        self.session = Session(self.client, self.settings, self.library, self)
        self.library_search = LibrarySearch(
            self.client, self.settings, self.library, usual_roots(environment), self
        )
        self.removal = ModelRemoval(
            self.client, self.session, self.library, self.library_search, parent=self
        )
        hub_command = RuntimeCommand(options.runtime_arguments, str(self.folders.hub_log))
        self.hub_link = HubLink(RuntimeClient(RuntimeProcess(hub_command, self), self), self)
        self.discover = Discover(
            self.hub_link,
            self.client,
            self.session,
            self.settings,
            self.library,
            self.folders.models,
        )
        self.downloads = Downloads(self.folders.downloads_file, self.hub_link, self.settings)
        self.upkeep = Upkeep(
            self.hub_link, self.session, self.settings, self.folders.data, environment
        )
        self.chat = ChatState(self.folders.chats_file, self.session, self.settings, self)
        self.telemetry = TelemetryState(self)
        self.monitor = Monitor(
            session=self.session,
            settings=self.settings,
            telemetry=self.telemetry,
            drive=DriveWatch(self.session, self.telemetry, self.settings, self),
            energy=EnergyBook(self.folders.energy_file),
            live=LiveBudgets(self.session, self),
        )
        self.forecasts = ForecastBook(self.folders.forecasts_file)
        self.watch = TelemetryWatch(self.session)
        self.idle_unload = IdleUnload(self.session, self.settings, self)
        self._map_import = MapImport(self)
        self._palette: Palette = palette_for(self.settings.values.theme)
        self._apply_palette()
        self.window = MainWindow(self._palette)
        self.window.setWindowIcon(application_icon())
        self.window.take_geometry(self.settings.values.window_geometry)
        self._notices = NoticeBoard(
            self.window.notice, self.session, self.settings, self.language, self
        )
        self._next_steps = NextSteps(
            self.window,
            self.session,
            self.settings,
            self._on_new_chat_wanted,
            self._on_stop_wanted,
        )
        self.first_start = FirstStart(
            self.window, self.client, self.session, self.settings, self.library, self.folders.data
        )
        self._drop = DropTarget(self.window)
        self._is_closed = False
        self._add_pages()
        self._connect()
        self._show_stage()
        self._notices.show_settings()

    @property
    def chat_view(self) -> ChatView:
        """The Chat page, which always exists."""
        view = self.window.page(Page.CHAT)
        assert isinstance(view, ChatView)
        return view

    def show(self) -> None:
        """Show the window; the runtime starts once the first picture is on the screen."""
        self.window.show_page(Page.CHAT)
        self.window.show()
        self.chat_view.focus_question()
        options = self._options
        if options.is_welcome_wanted and not options.folder and not options.dropped:
            self.first_start.show(self._palette)
        QTimer.singleShot(0, self, self._begin)

    def close(self) -> None:
        """Save everything and end the runtime; called once, by the window's closing."""
        if self._is_closed:
            return
        self._is_closed = True
        self.settings.change(window_geometry=self.window.geometry_text())
        self.chat.close()
        self.downloads.close()
        self.upkeep.updates.close()
        self.hub_link.close()
        self.session.shutdown()
        self._map_import.close()
        self.library.close()
        self.settings.close()

    def open_folder(self, folder: str) -> None:
        """Look at a folder, or the one with this file of a prepared copy, on the Models page."""
        folder = model_place(folder)
        self.window.notice.clear(NoticeSource.DROP)
        self.window.show_page(Page.MODELS)
        self.session.drop_folder(folder)

    def open_again(self, folder: str) -> None:
        """Come to the front, with what a later start of the program was given."""
        if self.window.isMinimized():
            self.window.showNormal()
        self.window.raise_()
        self.window.activateWindow()
        if folder:
            self.open_folder(folder)

    def _begin(self) -> None:
        self.session.start()
        self.downloads.start()
        self.upkeep.updates.begin()
        values = self.settings.values
        if self._options.dropped:
            self.open_folder(self._options.dropped)
        elif self._options.folder:
            self.session.load_folder(model_place(self._options.folder))
        elif values.last_folder and values.load_last_model:
            self.session.load_folder(values.last_folder, values.last_plan)
        elif not values.last_folder and self.library.demo_folder:
            self.session.load_folder(self.library.demo_folder)

    def _add_pages(self) -> None:
        self.window.add_page(Page.CHAT, self._make_chat)
        self.window.add_page(Page.MODELS, self._make_models)
        self.window.add_page(Page.MONITOR, self._make_monitor)
        self.window.add_page(Page.SETTINGS, self._make_settings)
        self.window.page(Page.CHAT)

    def _make_chat(self) -> ChatView:
        view = ChatView(self.chat, self.monitor, self._palette)
        view.models_wanted.connect(lambda: self.window.show_page(Page.MODELS))
        view.composer.edit.textChanged.connect(self.idle_unload.note_use)
        view.monitor_wanted.connect(lambda: self.window.show_page(Page.MONITOR))
        view.step_wanted.connect(self._next_steps.take)
        view.cards.clock.seen_changed.connect(
            lambda is_seen: self.watch.set_watching("chat", is_watching=is_seen)
        )
        return view

    def _make_models(self) -> QWidget:
        from app.views.discover_view import DiscoverView
        from app.views.models_view import ModelsView

        view = ModelsView(
            self.library, self.library_search, self.removal, self.session, self._palette
        )
        view.start_clicked.connect(lambda: self.window.show_page(Page.CHAT))
        view.settings_wanted.connect(lambda: self._settings_view().show_machine())
        view.take_discover(lambda: DiscoverView(self.discover, self.downloads, self._palette))
        self._drop.hover_changed.connect(view.drop_zone.show_hover)
        self.window.open_wanted.connect(view.drop_zone.choose)
        return view

    def _make_monitor(self) -> QWidget:
        from app.views.monitor_view import MonitorView

        view = MonitorView(self.monitor, self._palette)
        view.clock.seen_changed.connect(
            lambda is_seen: self.watch.set_watching("monitor", is_watching=is_seen)
        )
        view.remedy_wanted.connect(
            lambda remedy: self._next_steps.take_remedy(remedy, self.monitor.live)
        )
        view.show_answer(self.chat_view.last_stats())
        self.chat.answer_ended.connect(lambda: view.show_answer(self.chat_view.last_stats()))
        return view

    def _make_settings(self) -> QWidget:
        from app.views.settings_view import SettingsView

        files = {
            SettingWords.SETTINGS_FILE: str(self.folders.settings),
            SettingWords.CHATS_FILE: str(self.folders.data),
            SettingWords.LOG_FILE: str(self.folders.logs),
        }
        view = SettingsView(
            self.settings,
            self.session,
            files,
            self.language.choices,
            download_folder=str(self.folders.models),
        )
        view.add_memory(self.monitor, self._palette)
        view.add_upkeep(self.upkeep.shown_engine, self.upkeep.shown_updates)
        view.restart_wanted.connect(self._on_restart_wanted)
        view.about.report_wanted.connect(lambda path: view.about.save_report(path, self._report()))
        return view

    def _report(self) -> bytes:
        """Return a report of this moment."""
        logs = (self.folders.runtime_log, self.folders.crash_log)
        session = self.session
        return report_bundle(
            self.settings.values, logs, session.machine, session.loaded_plan, self.forecasts.records
        )

    def _connect(self) -> None:
        window, session, chat, notices = self.window, self.session, self.chat, self._notices
        session.changed.connect(self._show_stage)
        session.progress_changed.connect(self._show_work)
        window.strip.cancel_clicked.connect(session.cancel)
        self.client.opened.connect(self._map_import.begin)
        self._map_import.running_changed.connect(self.chat_view.cards.hold_map)
        session.failed.connect(notices.show_failure)
        notices.step_wanted.connect(self._next_steps.take)
        session.sample_received.connect(self.telemetry.add)
        session.model_loaded.connect(self._on_model_loaded)
        session.copy_written.connect(self.monitor.energy.take_written)
        self.idle_unload.unloaded.connect(notices.show_rested)
        self.telemetry.steadied.connect(self._on_steadied)
        drive = self.monitor.drive
        drive.changed.connect(lambda: window.strip.show_drive(drive.warning))
        for clicked in (window.strip.drive_clicked, window.strip.memory_clicked):
            clicked.connect(lambda: window.show_page(Page.MONITOR))
        window.seen_changed.connect(lambda is_seen: self.watch.set_window_seen(is_seen=is_seen))
        chat.answer_ended.connect(self._on_answer_ended)
        chat.answer_measured.connect(self._on_answer_measured)
        chat.messages_changed.connect(self._show_last_answer)
        chat.noticed.connect(notices.show_chats)
        self.settings.changed.connect(self._on_settings_changed)
        self.settings.noticed.connect(notices.show_settings)
        self._drop.folder_dropped.connect(self.open_folder)
        self._drop.refused.connect(notices.show_drop_refused)
        self.removal.ended.connect(notices.show_removal)
        self.downloads.finished.connect(self._on_download_finished)
        self.upkeep.tell(notices, self._settings_view)
        self.first_start.welcome.ended.connect(self.chat_view.focus_question)
        window.new_chat_wanted.connect(self._on_new_chat_wanted)
        window.stop_wanted.connect(self._on_stop_wanted)
        window.search_wanted.connect(self._on_search_wanted)
        window.keys_wanted.connect(self._on_keys_wanted)
        window.closed.connect(self.close)
        QApplication.styleHints().colorSchemeChanged.connect(self._on_system_changed)

    def _on_model_loaded(self, model: LoadedModel) -> None:
        self.telemetry.clear()
        self.window.notice.clear(NoticeSource.RESTED)
        announce(self.window, model_announced(model.name))

    def _show_stage(self) -> None:
        names = {
            Stage.NO_RUNTIME: StripWords.NO_RUNTIME,
            Stage.INSPECTING: StripWords.INSPECTING,
            Stage.PLANNING: StripWords.PLANNING,
            Stage.PREPARING: StripWords.PREPARING,
            Stage.LOADING: StripWords.LOADING,
            Stage.STOPPING: StripWords.STOPPING,
            Stage.FAILED: StripWords.FAILED,
        }
        session = self.session
        self.window.strip.show_model(
            session.loaded, names.get(session.stage, ""), session.loaded_plan
        )
        self._show_work()
        if session.loaded is not None:
            self.window.strip.show_answer(self.chat_view.last_stats())
        if session.error is None:
            self.window.notice.clear(NoticeSource.ENGINE)

    def _show_work(self) -> None:
        """Say on every page how far a load or preparation is, and let it be cancelled there."""
        stage, progress = self.session.stage, self.session.progress
        is_running = stage in (Stage.PREPARING, Stage.LOADING)
        text = progress_name(progress) if is_running and progress is not None else ""
        self.window.strip.show_work(text, can_cancel=is_running)

    def _on_steadied(self) -> None:
        plan = self.session.loaded_plan
        if plan is not None and self.chat.is_answering:
            totals = self.telemetry.series.recent(self.telemetry.now_s)
            self.window.strip.show_now(totals, plan.forecast)

    def _on_answer_ended(self) -> None:
        self._show_last_answer()
        self._announce_answer()

    def _on_answer_measured(self, stats: GenerationStats) -> None:
        self.monitor.drive.take_answer(stats)
        self.monitor.energy.take_answer(stats)
        if self.session.loaded is not None:
            name = self.session.loaded.name
            self.forecasts.take_answer(stats, self.session.loaded_plan, name)

    def _show_last_answer(self) -> None:
        self.window.strip.show_answer(
            self.chat_view.last_stats() if self.session.loaded is not None else None
        )

    def _on_download_finished(self, item: DownloadItem) -> None:
        """List the model, and every other below the place of downloads."""
        self.library_search.add_root(item.root)
        self.monitor.energy.take_written(item.total_bytes)
        self._notices.show_download(item)

    def _on_new_chat_wanted(self) -> None:
        self.window.show_page(Page.CHAT)
        self.chat.new_chat()
        self.chat_view.focus_question()

    def _on_search_wanted(self) -> None:
        self.window.show_page(Page.CHAT)
        self.chat_view.chat_list.focus_search()

    def _on_keys_wanted(self) -> None:
        self._settings_view().show_keys()

    def _settings_view(self) -> "SettingsView":
        """Show the Settings page and return it."""
        from app.views.settings_view import SettingsView

        self.window.show_page(Page.SETTINGS)
        view = self.window.page(Page.SETTINGS)
        assert isinstance(view, SettingsView)
        return view

    def _announce_answer(self) -> None:
        """Say an answer that ended, for those who do not see it."""
        messages = self.chat.messages
        if messages and messages[-1].role is Role.ASSISTANT:
            announce(self.window, answer_announced(messages[-1].text or ChatWords.NO_ANSWER))

    def _on_stop_wanted(self) -> None:
        if self.first_start.welcome.is_open:
            self.first_start.welcome.finish()
        elif self.chat.is_answering:
            self.chat.stop()
        elif self.session.stage in (Stage.LOADING, Stage.PREPARING):
            self.session.cancel()

    def _on_restart_wanted(self) -> None:
        self.is_restart_wanted = True
        self.window.close()

    def _on_system_changed(self) -> None:
        # The system outlives the window.
        if not self._is_closed:
            self._on_settings_changed()

    def _on_settings_changed(self) -> None:
        palette = palette_for(self.settings.values.theme)
        if palette == self._palette:
            return
        self._palette = palette
        self.chat_view.put_away()
        self._apply_palette()
        for part in (self.window.rail, self.window.strip, self.window.notice):
            part.show_palette(palette)
        for page in (*self.window.made_pages(), *self.window.covers()):
            show_palette = getattr(page, "show_palette", None)
            if show_palette is not None:
                show_palette(palette)

    def _apply_palette(self) -> None:
        application = QApplication.instance()
        if isinstance(application, QApplication):
            apply_theme(application, self._palette)


def make_application(arguments: list[str]) -> QApplication:
    """Return the application object with our typeface and style."""
    QApplication.setHighDpiScaleFactorRoundingPolicy(
        Qt.HighDpiScaleFactorRoundingPolicy.PassThrough
    )
    application = QApplication(arguments)
    application.setApplicationName("larder")
    application.setApplicationDisplayName("Larder")
    application.setDesktopFileName("larder")
    application.setStyle("Fusion")
    load_fonts()
    return application


def run(options: StartOptions) -> int:
    """Show the window and return the exit status once it is closed."""
    environment = dict(os.environ)
    folders = app_folders(environment)
    values, _ = read_settings(folders.settings_file)
    take_engine(folders.data, read_engine_list(), os.environ)
    os.environ.update(zoomed(values.zoom_percent, environment))
    application = make_application(["larder"])
    instance = SingleInstance(folders.data)
    started = instance.start(options.dropped or options.folder)
    if started is not Start.FIRST:
        instance.close()
        if started is Start.NO_ANSWER:
            sys.stderr.write(f"larder: {start_words.no_answer()}\n")
        return int(started is Start.NO_ANSWER)
    signals = EndSignals()
    try:
        program = Program(options, os.environ)
        # Quitting closes the window, and its closing saves everything.
        signals.arrived.connect(application.quit)
        instance.opened.connect(program.open_again)
        program.show()
        status = application.exec()
        program.close()
    finally:
        signals.close()
        instance.close()
    if program.is_restart_wanted:
        start_apart("app", sys.argv[1:], environment)
    return int(status)
