"""The conversations: the open one among all, and the answer that is being written."""

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.state.answer_writer import AnswerWriter
from app.state.chat_request import conversation_of, told_from_id, told_of
from app.state.chat_shelf import ChatShelf
from app.state.chat_store import NameColumn
from app.state.chat_titles import title_of
from app.state.chat_values import CUT_ENDS, AnswerEnd, Message
from app.state.growing_answer import GrowingAnswer
from app.state.presets import PresetState
from app.state.prompt_count import PromptCount
from app.state.sampling import sampling_for, system_prompt_for
from app.state.session import Session
from app.state.settings import SettingsState
from app.state.settings_file import Preset
from app.state.shortening import Shortened, Shortening
from app.timers import single_shot
from runtime.protocol.chat import ChatMessage, Role

DRAFT_SAVE_MS = 800
_NEW_CHAT_DRAFT = 0


class ChatState(ChatShelf):
    """All chats and the one that is open; takes the intents of the Chat page.

    One answer is written at a time; it goes on when another chat is opened. Threads: window
    thread.
    """

    messages_changed = Signal()
    """Another chat is open or its messages changed as a whole: show ``messages`` anew."""
    answer_grew = Signal()
    """The text of the last message grew; at most once in 30 ms."""
    answer_ended = Signal()
    """The last message is complete; its statistics and end are there."""
    answer_measured = Signal(object)
    """The ``GenerationStats`` of an answer that has ended, in whatever chat; once for each."""
    asking_changed = Signal()
    """``is_answering``, ``can_ask``, ``can_continue``, ``prompt_progress``, ``num_untold`` or
    ``preset`` changed."""
    failed = Signal(object)
    """An ``ErrorReport``: the question could not be answered."""

    def __init__(
        self, path: Path, session: Session, settings: SettingsState, parent: QObject | None = None
    ) -> None:
        super().__init__(path, parent)
        self._session = session
        self._settings = settings
        self._chat_id: int | None = None
        self._messages: list[Message] = []
        self._told_from_id = 0
        self._summary = ""
        self.shortening = Shortening(session, self)
        """Summaries that the loaded model writes of the beginning of a chat."""
        self._preset_name = ""
        self.presets = PresetState(settings, self)
        """What chats can have as a preset."""
        self._writer = AnswerWriter(self._store, session, self)
        self._draft = self._store.draft(_NEW_CHAT_DRAFT)
        self._deleted: list[int] = []
        self.prompt_count = PromptCount(session, self._draft_conversation, self)
        """Tokens of the draft with all that would be sent with it."""
        self._draft_timer = single_shot(self, DRAFT_SAVE_MS, self._save_draft)
        session.changed.connect(self.asking_changed)
        self.presets.changed.connect(self._on_presets_changed)
        self.presets.renamed.connect(self._on_preset_renamed)
        self.shortening.changed.connect(self.asking_changed)
        self.shortening.done.connect(self._on_shortened)
        self._writer.changed.connect(self.asking_changed)
        self._writer.grew.connect(self._on_answer_grew)
        self._writer.saved.connect(self._tell_timer.start)
        self._writer.ended.connect(self._on_answer_ended)
        self._writer.measured.connect(self.answer_measured)
        self._writer.removed.connect(self._on_answer_removed)
        self._writer.failed.connect(self.failed)

    @property
    def chat_id(self) -> int | None:
        """The open chat; None is a new one that has no message yet."""
        return self._chat_id

    @property
    def title(self) -> str:
        """The open chat's title; empty for a new one."""
        return self._title_of(self._chat_id)

    @property
    def messages(self) -> list[Message]:
        """The branch of the open chat that is shown."""
        return self._messages

    @property
    def num_untold(self) -> int:
        """How many of the oldest messages the model is not told with the next question."""
        return len(self._kept()) - len(self._told())

    @property
    def is_answering(self) -> bool:
        """Whether an answer or a summary is being written, in this chat or another."""
        return self._writer.answer is not None or self.shortening.is_running

    @property
    def summary(self) -> str:
        """What the model is told in place of the oldest messages; empty if nothing is."""
        return self._summary if self.num_untold else ""

    @property
    def is_answering_here(self) -> bool:
        """Whether the last message of the open chat is being written."""
        return self._is_answering_in(self._chat_id)

    @property
    def can_ask(self) -> bool:
        """Whether ``ask`` would be accepted."""
        return not self.is_answering and self._session.can_answer

    @property
    def can_continue(self) -> bool:
        """Whether ``continue_answer`` would be accepted."""
        if not self.can_ask or not self._messages:
            return False
        last = self._messages[-1]
        is_full = last.end is AnswerEnd.CONTEXT_FULL
        return last.end in CUT_ENDS and not (
            is_full and self.context_used_tokens >= self.context_tokens
        )

    @property
    def can_undo_delete(self) -> bool:
        """Whether ``undo_delete`` would bring a chat back."""
        return bool(self._deleted)

    @property
    def prompt_progress(self) -> tuple[int, int] | None:
        """Prompt tokens done and in all, while the prompt is being read."""
        return self._writer.prompt_progress if self.is_answering_here else None

    @property
    def prompt_left_s(self) -> float | None:
        """How long reading the rest of the prompt will take, while it is being read."""
        return self._writer.prompt_left_s if self.prompt_progress is not None else None

    @property
    def preset_name(self) -> str:
        """The name of the open chat's own preset; empty if it has none."""
        return self._preset_name

    @property
    def preset(self) -> Preset | None:
        """The preset in force: the chat's, else the model's; None where the settings are."""
        loaded = self._session.loaded
        folder = loaded.folder if loaded is not None else ""
        return self.presets.in_force(self._preset_name, folder)

    @property
    def draft(self) -> str:
        """Unsent text of the open chat."""
        return self._draft

    @property
    def context_used_tokens(self) -> int:
        """Tokens that the open chat took with its last answer."""
        used = (item.stats.context_used_tokens for item in reversed(self._messages) if item.stats)
        return next(used, 0)

    @property
    def context_tokens(self) -> int:
        """The loaded model's context; 0 while none is loaded."""
        loaded = self._session.loaded
        return loaded.context_tokens if loaded is not None else 0

    def ask(self, text: str) -> bool:
        """Send a question; False (and nothing changes) if that is not possible now."""
        if not self.can_ask or not text.strip():
            return False
        self._draft = ""
        self._save_draft()
        self.prompt_count.forget()
        self._ask_after(self._kept(), text)
        return True

    def stop(self) -> None:
        """End the answer that is being written."""
        self._writer.stop()

    def regenerate(self) -> bool:
        """Write another answer to the last question; the old one stays as a variant."""
        if not self.can_ask or not self._messages:
            return False
        if self._ends_with_question():
            self._answer_now()
        else:
            replaced_id = self._messages[-1].message_id
            self._messages = self._messages[:-1]
            self._answer_now(replaced_id)
        return True

    def continue_answer(self) -> bool:
        """Have the last answer go on where it was cut, with the same tokens where possible."""
        if not self.can_continue:
            return False
        begun = self._messages[-1]
        conversation = self._conversation()
        assert self._chat_id is not None
        self._store.reopen(self._chat_id, begun.message_id)
        self._messages = self._store.messages(self._chat_id)
        keeps_ids = bool(conversation[-1].token_ids)
        answer = GrowingAnswer(self._chat_id, self._messages[-1], begun=begun, keeps_ids=keeps_ids)
        self._write(answer, conversation)
        return True

    def edit_question(self, message_id: int, text: str) -> bool:
        """Ask a question in other words; the old wording stays as a variant.

        In the same words, the last question gets another answer.
        """
        position = self._position_of(message_id)
        if not self.can_ask or not text.strip() or position is None:
            return False
        is_last = position == len(self._messages) - (1 if self._ends_with_question() else 2)
        if is_last and text.strip() == self._messages[position].text.strip():
            return self.regenerate()
        self._ask_after(self._messages[:position], text)
        return True

    def show_variant(self, message_id: int, step: int) -> None:
        """Show the next (+1) or previous (-1) variant of a message."""
        if self._chat_id is not None and not self.is_answering_here:
            variant = self._store.variant_of(self._chat_id, message_id, step)
            if variant is not None:
                self._store.show_branch(self._chat_id, variant)
                self._reload()

    def new_chat(self) -> None:
        """Open an empty chat, which is kept from its first question on."""
        self._open(None)

    def open_chat(self, chat_id: int) -> None:
        """Open a chat of the list."""
        self._open(chat_id)

    def delete_chat(self, chat_id: int) -> None:
        """Take a chat off the list; ``undo_delete`` brings it back."""
        if self._is_answering_in(chat_id):
            self.stop()
        self._store.delete_chat(chat_id)
        self._deleted.append(chat_id)
        if chat_id == self._chat_id:
            self._open(None)
        self._refresh()

    def undo_delete(self) -> None:
        """Bring back the chat that was deleted last, and open it."""
        if self._deleted:
            chat_id = self._deleted.pop()
            self._store.undelete_chat(chat_id)
            self._refresh()
            self._open(chat_id)

    def set_draft(self, text: str) -> None:
        """Keep the unsent text of the open chat."""
        self._draft = text
        self._draft_timer.start()
        self._count_draft()

    def leave_out_oldest(self) -> None:
        """Tell the model no more of this chat than leaves room for the draft and an answer."""
        told = self._told()
        size_tokens = self.prompt_count.num_tokens
        if self._chat_id is not None and told and size_tokens is not None:
            first = told_from_id(told, self._draft, size_tokens, self.context_tokens)
            self._tell_from(self._chat_id, first)

    def shorten(self) -> bool:
        """Have the model sum up what ``leave_out_oldest`` would leave out, and tell it that."""
        told = self._told()
        size_tokens = self.prompt_count.num_tokens
        if self._chat_id is None or not told or not size_tokens or not self.can_ask:
            return False
        first = told_from_id(told, self._draft, size_tokens, self.context_tokens)
        left = [message for message in told if message.message_id < first]
        num_characters = sum(len(message.text) for message in told) + len(self._draft)
        asked = Shortened(self._chat_id, first, self.summary)
        return self.shortening.begin(asked, left, num_characters / size_tokens)

    def tell_all(self) -> None:
        """Tell the model again what was left out."""
        if self._chat_id is not None:
            self._tell_from(self._chat_id, 0)

    def set_preset(self, name: str) -> None:
        """Give the open chat a preset for its next answers; empty takes it away."""
        self._preset_name = name
        if self._chat_id is not None:
            self._store.set_preset(self._chat_id, name)
        self._on_presets_changed()

    def close(self) -> None:
        """Save everything; called once at the end."""
        self._save_draft()
        self._writer.cut_off()
        self.close_list()

    def _is_answering_in(self, chat_id: int | None) -> bool:
        answer = self._writer.answer
        return answer is not None and answer.chat_id == chat_id

    def _ends_with_question(self) -> bool:
        return bool(self._messages) and self._messages[-1].role is Role.USER

    def _position_of(self, message_id: int) -> int | None:
        ids = [message.message_id for message in self._messages]
        return ids.index(message_id) if message_id in ids else None

    def _kept(self) -> list[Message]:
        """Return what goes before the next question.

        A question that got no answer is replaced by it: its wording stays as a variant.
        """
        return self._messages[:-1] if self._ends_with_question() else self._messages

    def _told(self) -> Sequence[Message]:
        """Return those of ``_kept`` that the model is told."""
        return told_of(self._kept(), self._told_from_id, has_more=True)

    def _draft_conversation(self) -> list[ChatMessage]:
        """Return what sending the draft would send; nothing while that is not possible."""
        loaded = self._session.loaded
        if loaded is None or not self._draft.strip():
            return []
        talk = [*self._told(), Message(0, Role.USER, self._draft)]
        return conversation_of(talk, self._system_prompt(), loaded.name, self.summary)

    def _tell_from(self, chat_id: int, message_id: int, summary: str = "") -> None:
        self._store.set_told_from(chat_id, message_id, summary)
        self._told_from_id, self._summary = message_id, summary
        self._count_draft()
        self.asking_changed.emit()

    def _count_draft(self) -> None:
        if self._draft.strip():
            self.prompt_count.note_change()
        else:
            self.prompt_count.forget()

    def _ask_after(self, kept: list[Message], text: str) -> None:
        """Add a question behind the kept messages and have it answered."""
        if self._chat_id is None:
            self._chat_id = self._store.new_chat(title_of(text))
            if self._preset_name:
                self._store.set_preset(self._chat_id, self._preset_name)
        parent = kept[-1].message_id if kept else None
        self._store.add_message(self._chat_id, parent, Role.USER, text)
        self._messages = self._store.messages(self._chat_id)
        self._answer_now()

    def _answer_now(self, replaced_id: int | None = None) -> None:
        """Have the last of ``messages``, a question, answered, in place of another answer."""
        chat_id, loaded = self._chat_id, self._session.loaded
        assert chat_id is not None
        assert loaded is not None
        conversation = self._conversation()
        self._store.add_message(
            chat_id, self._messages[-1].message_id, Role.ASSISTANT, "", loaded.name
        )
        self._messages = self._store.messages(chat_id)
        self._write(GrowingAnswer(chat_id, self._messages[-1], replaced_id), conversation)

    def _conversation(self) -> list[ChatMessage]:
        """Return what the loaded model is told of ``messages``."""
        loaded = self._session.loaded
        assert loaded is not None
        told = told_of(self._messages, self._told_from_id)
        # A summary is no part of a chat that is told whole, nor of an earlier question in it.
        has_summary = len(told) < len(self._messages) and told[0].message_id >= self._told_from_id
        summary = self._summary if has_summary else ""
        return conversation_of(told, self._system_prompt(), loaded.name, summary)

    def _system_prompt(self) -> str:
        return system_prompt_for(self._settings.values, self.preset)

    def _write(self, answer: GrowingAnswer, conversation: list[ChatMessage]) -> None:
        report = self._session.loaded_report
        sampling = sampling_for(self._settings.values, report, self.preset)
        self._writer.begin(answer, conversation, sampling)
        self._refresh()
        self.messages_changed.emit()
        self.asking_changed.emit()

    def _on_shortened(self, shortened: Shortened) -> None:
        if shortened.chat_id == self._chat_id:
            self._tell_from(shortened.chat_id, shortened.first_id, shortened.summary)
        else:
            self._store.set_told_from(shortened.chat_id, shortened.first_id, shortened.summary)

    def _on_answer_grew(self, answer: GrowingAnswer) -> None:
        if self.is_answering_here:
            self._messages[-1] = answer.message
            self.answer_grew.emit()

    def _on_answer_ended(self, answer: GrowingAnswer, message: Message) -> None:
        self._refresh()
        if answer.chat_id == self._chat_id:
            self._messages[-1] = message
            self.answer_ended.emit()

    def _on_answer_removed(self, answer: GrowingAnswer) -> None:
        if answer.chat_id == self._chat_id:
            self._reload()

    def _save_draft(self) -> None:
        self._draft_timer.stop()
        self._store.set_draft(self._chat_id or _NEW_CHAT_DRAFT, self._draft)

    def _open(self, chat_id: int | None) -> None:
        self._save_draft()
        self._writer.save()
        self._chat_id = chat_id
        self._draft = self._store.draft(chat_id or _NEW_CHAT_DRAFT)
        self._reload()
        self._count_draft()
        self.chats_changed.emit()
        self.asking_changed.emit()

    def _reload(self) -> None:
        chat_id = self._chat_id
        self._messages = self._store.messages(chat_id) if chat_id is not None else []
        self._told_from_id = self._store.told_from(chat_id) if chat_id is not None else 0
        self._summary = self._store.summary(chat_id) if chat_id is not None else ""
        self._preset_name = self._store.preset(chat_id) if chat_id is not None else ""
        self.messages_changed.emit()

    def _on_presets_changed(self) -> None:
        self._count_draft()
        self.asking_changed.emit()

    def _on_preset_renamed(self, before: str, after: str) -> None:
        self._store.rename_everywhere(NameColumn.PRESET, before, after)
        if self._preset_name == before:
            self._preset_name = after
        self.asking_changed.emit()
