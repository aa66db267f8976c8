"""The Chat page: list of chats, messages, composer, and cards about the last answer."""

from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QStackedLayout,
    QVBoxLayout,
    QWidget,
)

from app.formulas.desk import FormulaDesk
from app.state.chat import ChatState
from app.state.drive_warning import use_of_answer
from app.state.monitor import Monitor
from app.state.stages import Stage
from app.text import drive_phrases, phrases
from app.text.error_heads import NextStep
from app.text.errors import sentence
from app.text.monitor_words import LiveWords
from app.text.words import ChatWords, ModelWords, ShellWords, StripWords
from app.theme.palette import Palette
from app.views.answer_cards import AnswerCards
from app.views.chat_files import ChatFiles
from app.views.chat_list import ChatList
from app.views.composer import Composer
from app.views.empty_state import EmptyState
from app.views.error_notice import show_error
from app.views.link_dialog import ask_to_open
from app.views.message_list import MessageList
from app.views.notice_bar import NoticeBar, NoticeSource
from app.views.progress_text import progress_name
from runtime.protocol.chat import GenerationStats
from runtime.protocol.errors import ErrorReport
from runtime.protocol.values import Tier

MIN_WIDTH_WITH_CARDS = 1120
"""In a narrower page the cards give way to the text."""


class ChatView(QWidget):
    """Shows ``ChatState`` and the stage of ``Session``; passes what the person wants to them."""

    models_wanted = Signal()
    monitor_wanted = Signal()
    step_wanted = Signal(object)
    """A ``NextStep``: the person presses the button beside an error."""

    def __init__(
        self, chat: ChatState, monitor: Monitor, palette: Palette, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._chat = chat
        self._monitor = monitor
        self._session = monitor.session
        self.setProperty("look", "page")
        self.chat_list = ChatList(palette)
        self._formulas = FormulaDesk(self)
        self.messages = MessageList(palette, self._note, self._formulas)
        self.composer = Composer(palette)
        self.notice = NoticeBar(palette)
        self.files = ChatFiles(chat, self.notice, self)
        self._empty = EmptyState()
        self.cards = AnswerCards(monitor, palette)
        self._shown_chat_id: int | None = None
        self._build()
        self._connect()
        self._show_all()

    def last_stats(self) -> GenerationStats | None:
        """Return what the last answer of the open chat took."""
        return next((m.stats for m in reversed(self._chat.messages) if m.stats), None)

    def focus_question(self) -> None:
        """Put the cursor where a question is written."""
        self.composer.edit.setFocus()

    def put_away(self) -> None:
        """Make the page small before a new style sheet; ``show_palette`` brings all back."""
        self.messages.put_away()

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self.chat_list.show_palette(palette)
        self.composer.show_palette(palette)
        self.messages.show_palette(palette)
        self.notice.show_palette(palette)
        self.cards.show_palette(palette)

    def _build(self) -> None:
        stack_holder = QWidget()
        self._stack = QStackedLayout(stack_holder)
        self._stack.addWidget(self._empty)
        self._stack.addWidget(self.messages)
        composer_row = QHBoxLayout()
        composer_row.setContentsMargins(16, 0, 16, 14)
        composer_row.addStretch(1)
        composer_row.addWidget(self.composer, 100)
        composer_row.addStretch(1)
        middle = QVBoxLayout()
        middle.setSpacing(8)
        middle.addWidget(self.notice)
        middle.addWidget(stack_holder, 1)
        middle.addLayout(composer_row)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.chat_list)
        layout.addLayout(middle, 1)
        layout.addWidget(self.cards)

    def _connect(self) -> None:
        chat, session = self._chat, self._session
        chat.chats_changed.connect(self._show_chats)
        chat.messages_changed.connect(self._show_messages)
        chat.answer_grew.connect(self._on_answer_grew)
        chat.answer_ended.connect(self._on_answer_ended)
        chat.asking_changed.connect(self._show_asking)
        chat.failed.connect(self._on_failed)
        session.changed.connect(self._show_stage)
        session.progress_changed.connect(self._show_stage)
        self.chat_list.new_wanted.connect(self._on_new_wanted)
        self.chat_list.chosen.connect(self._on_chat_chosen)
        self.chat_list.search_changed.connect(chat.search)
        self.chat_list.rename_wanted.connect(chat.rename_chat)
        self.chat_list.delete_wanted.connect(self._on_delete_wanted)
        self.chat_list.pin_wanted.connect(
            lambda chat_id, is_pinned: chat.pin_chat(chat_id, is_pinned=is_pinned)
        )
        self.chat_list.move_wanted.connect(chat.move_chat)
        self.chat_list.folder_renamed.connect(chat.rename_folder)
        self.chat_list.export_wanted.connect(self.files.ask_to_save)
        self.chat_list.import_wanted.connect(self.files.ask_to_bring_in)
        self.composer.sent.connect(self._on_sent)
        self.composer.stopped.connect(chat.stop)
        self.composer.changed.connect(chat.set_draft)
        self.composer.new_chat_wanted.connect(self._on_move_wanted)
        self.composer.longer_context_wanted.connect(self.models_wanted)
        self.composer.leave_out_wanted.connect(chat.leave_out_oldest)
        self.composer.shorten_wanted.connect(chat.shorten)
        chat.shortening.failed.connect(self._on_shorten_failed)
        self.composer.tell_all_wanted.connect(chat.tell_all)
        preset = self.composer.preset_button
        preset.chosen.connect(chat.set_preset)
        preset.always_chosen.connect(self._on_always_chosen)
        preset.edit_wanted.connect(self._on_presets_wanted)
        chat.prompt_count.changed.connect(self._show_context)
        self.messages.regenerate_wanted.connect(self._on_regenerate_wanted)
        self.messages.continue_wanted.connect(self._on_continue_wanted)
        self.messages.edit_wanted.connect(self._on_edit_wanted)
        self.messages.variant_wanted.connect(chat.show_variant)
        self.messages.link_clicked.connect(lambda address: ask_to_open(self, address))
        self._empty.acted.connect(self.models_wanted)
        self.cards.map_clicked.connect(self.monitor_wanted)

    # showing

    def _show_all(self) -> None:
        self._show_chats()
        self._show_messages()
        self._show_stage()

    def _show_chats(self) -> None:
        chat = self._chat
        self.chat_list.show_chats(
            chat.chats, chat.chat_id, is_searching=bool(chat.search_text.strip())
        )

    def _show_messages(self) -> None:
        chat = self._chat
        is_other = chat.chat_id != self._shown_chat_id
        self._shown_chat_id = chat.chat_id
        self.messages.show_messages(chat.messages, is_other_chat=is_other)
        self._stack.setCurrentWidget(self.messages if chat.messages else self._empty)
        self.composer.show_draft(chat.draft)
        self.cards.show_answer(self.last_stats())
        self._show_asking()

    def _show_asking(self) -> None:
        chat = self._chat
        has_model = self._session.loaded is not None
        self.composer.show_state(
            can_ask=chat.can_ask,
            is_answering=chat.is_answering,
            hint=ChatWords.ASK if has_model else ChatWords.ASK_UNLOADED,
        )
        self._show_context()
        self._show_preset()
        self.messages.show_can_ask(chat.can_ask, can_continue=chat.can_continue)
        progress = chat.prompt_progress
        self.messages.show_progress(
            phrases.prompt_line(*progress, chat.prompt_left_s) if progress else ""
        )

    def _show_preset(self) -> None:
        chat, loaded = self._chat, self._session.loaded
        preset = chat.preset
        self.composer.preset_button.show_presets(
            [each.name for each in chat.presets.presets],
            preset.name if preset is not None else "",
            model=loaded.name if loaded is not None else "",
            of_model=chat.presets.of_model(loaded.folder) if loaded is not None else "",
        )

    def _show_context(self) -> None:
        chat = self._chat
        self.composer.show_context(
            chat.context_used_tokens,
            chat.context_tokens,
            chat.prompt_count.num_tokens,
        )
        self.composer.show_chat(len(chat.messages), chat.num_untold, chat.summary)
        if chat.shortening.is_running:
            self.composer.show_shortening()

    def _show_stage(self) -> None:
        session = self._session
        self._fit_cards()
        self._show_asking()
        if session.loaded is not None:
            self._empty.show_state(ChatWords.EMPTY_TITLE, ChatWords.EMPTY_TEXT)
        elif session.stage in (Stage.LOADING, Stage.PREPARING):
            progress = session.progress
            ratio = progress.ratio if progress is not None else None
            self._empty.show_state(
                StripWords.LOADING if session.stage is Stage.LOADING else ModelWords.PREPARING,
                progress_name(progress),
                progress=-1.0 if ratio is None else ratio,
            )
        elif session.stage is Stage.NO_RUNTIME:
            self._empty.show_state(StripWords.NO_RUNTIME, ChatWords.EMPTY_TEXT, progress=-1.0)
        else:
            self._empty.show_state(
                ChatWords.NO_MODEL_TITLE, ChatWords.NO_MODEL_TEXT, ChatWords.CHOOSE_MODEL
            )

    def _note(self, stats: GenerationStats) -> str:
        """Return what the line under an answer adds: a card that is simulated, the drive."""
        monitor = self._monitor
        parts = []
        is_vram_used = any(each.tier is Tier.VRAM and each.hits for each in stats.tiers)
        if is_vram_used and monitor.is_device_simulated:
            parts.append(LiveWords.VRAM_SIMULATED)
        if monitor.drive.is_answer_warned(stats):
            parts.append(drive_phrases.answer_note(use_of_answer(stats), *monitor.tariff))
        return phrases.DOT.join(parts)

    def _fit_cards(self) -> None:
        has_room = self.width() >= MIN_WIDTH_WITH_CARDS
        self.cards.setVisible(has_room and self._session.loaded is not None)

    # what happened

    def _on_answer_grew(self) -> None:
        if self._chat.messages:
            self.messages.grow(self._chat.messages[-1])

    def _on_answer_ended(self) -> None:
        if self._chat.messages:
            self.messages.grow(self._chat.messages[-1])
        self.cards.show_answer(self.last_stats())
        self._show_asking()

    def _on_shorten_failed(self, error: ErrorReport | None) -> None:
        text = sentence(error) if error is not None else ChatWords.SHORTEN_NOTHING
        self.notice.show_notice(NoticeSource.ANSWER, text, is_error=error is not None)

    def _on_failed(self, error: ErrorReport) -> None:
        def take(step: NextStep) -> None:
            self.notice.clear(NoticeSource.ANSWER)
            self.step_wanted.emit(step)

        show_error(self.notice, NoticeSource.ANSWER, error, take)

    # what the person wants

    def _on_sent(self, text: str) -> None:
        self.notice.clear()
        if self._chat.ask(text):
            self.messages.follow()

    def _on_regenerate_wanted(self) -> None:
        self.notice.clear(NoticeSource.ANSWER)
        if self._chat.regenerate():
            self.messages.follow()

    def _on_continue_wanted(self) -> None:
        self.notice.clear(NoticeSource.ANSWER)
        if self._chat.continue_answer():
            self.focus_question()
            self.messages.follow()

    def _on_always_chosen(self, is_always: bool) -> None:
        """Give the loaded model the preset in force for all its chats, or take it away."""
        loaded, preset = self._session.loaded, self._chat.preset
        if loaded is not None and preset is not None:
            self._chat.presets.set_of_model(loaded.folder, preset.name if is_always else "")

    def _on_presets_wanted(self) -> None:
        from app.views.preset_dialog import PresetDialog

        PresetDialog(self._chat.presets, self).open()

    def _on_new_wanted(self) -> None:
        self._chat.new_chat()
        self.focus_question()

    def _on_move_wanted(self) -> None:
        """Ask in a new chat what is too long for this one."""
        draft = self._chat.draft
        self._chat.set_draft("")
        self._chat.new_chat()
        self._chat.set_draft(draft)
        self.composer.show_draft(draft)
        self.focus_question()

    def _on_chat_chosen(self, chat_id: int) -> None:
        self.notice.clear()
        self._chat.open_chat(chat_id)
        self.focus_question()

    def _on_delete_wanted(self, chat_id: int) -> None:
        self._chat.delete_chat(chat_id)
        undo = (ShellWords.UNDO, self._on_undo_wanted)
        self.notice.show_notice(NoticeSource.DELETED, ChatWords.DELETED, [undo], is_error=False)

    def _on_undo_wanted(self) -> None:
        self._chat.undo_delete()
        self.notice.clear(NoticeSource.DELETED)

    def _on_edit_wanted(self, message_id: int) -> None:
        from app.views.edit_dialog import ask_text

        message = next((m for m in self._chat.messages if m.message_id == message_id), None)
        if message is None:
            return
        text = ask_text(self, ChatWords.EDIT, message.text)
        if text and self._chat.edit_question(message_id, text):
            self.notice.clear(NoticeSource.ANSWER)
            self.messages.follow()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Give the text the room it needs."""
        super().resizeEvent(event)
        self._fit_cards()
