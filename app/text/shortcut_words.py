"""The keys of the window and what each does: one table for the window and for its list."""

import enum

from app.text.translate import tr
from app.text.words import ShellWords, Word


class Shortcut(enum.Enum):
    """Keys that work wherever the focus is; the values are as Qt reads and writes them."""

    CHAT = "Ctrl+1"
    MODELS = "Ctrl+2"
    MONITOR = "Ctrl+3"
    SETTINGS = "Ctrl+4"
    NEW_CHAT = "Ctrl+N"
    OPEN = "Ctrl+O"
    SEARCH = "Ctrl+F"
    STOP = "Esc"
    KEYS = "F1"
    QUIT = "Ctrl+Q"


class ShortcutWords:
    """Fixed words."""

    TITLE = Word("Keys")
    NEW_CHAT = Word("Begin a new chat")
    OPEN = Word("Choose a model folder")
    SEARCH = Word("Search the chats")
    STOP = Word("Stop an answer, or loading a model")
    KEYS = Word("Show these keys")
    QUIT = Word("Close Larder")
    SEND = Word("In the question: send it")
    NEW_LINE = Word("In the question: a new line")
    NEXT = Word("Go to the next control, or back")
    PRESS = Word("Press the button that has the focus")
    INSIDE = Word("Move a slider, in a list, from expert to expert on the map")
    OPEN_ENTRY = Word("In the list of models: look at one")
    DELETE_MODEL = Word("In the list of models: delete one (you are asked first)")
    FOLD = Word("In the list of chats: open or close a folder")
    ENTER = Word("Enter")
    SHIFT_ENTER = Word("Shift+Enter")
    TAB = Word("Tab, Shift+Tab")
    SPACE_ENTER = Word("Space, Enter")
    ARROWS = Word("Arrow keys")
    DELETE = Word("Delete")
    LEFT_RIGHT = Word("Left, Right")


def shortcut_lines() -> list[tuple[str, str]]:
    """Return all keys with what they do, those of the whole window first."""
    pages = {
        Shortcut.CHAT: ShellWords.CHAT,
        Shortcut.MODELS: ShellWords.MODELS,
        Shortcut.MONITOR: ShellWords.MONITOR,
        Shortcut.SETTINGS: ShellWords.SETTINGS,
    }
    actions = {
        Shortcut.NEW_CHAT: ShortcutWords.NEW_CHAT,
        Shortcut.OPEN: ShortcutWords.OPEN,
        Shortcut.SEARCH: ShortcutWords.SEARCH,
        Shortcut.STOP: ShortcutWords.STOP,
        Shortcut.KEYS: ShortcutWords.KEYS,
        Shortcut.QUIT: ShortcutWords.QUIT,
    }
    names = {key: tr("Go to {page}").format(page=name) for key, name in pages.items()} | actions
    return [
        *((key.value, names[key]) for key in Shortcut),
        (ShortcutWords.ENTER, ShortcutWords.SEND),
        (ShortcutWords.SHIFT_ENTER, ShortcutWords.NEW_LINE),
        (ShortcutWords.TAB, ShortcutWords.NEXT),
        (ShortcutWords.SPACE_ENTER, ShortcutWords.PRESS),
        (ShortcutWords.ARROWS, ShortcutWords.INSIDE),
        (ShortcutWords.ENTER, ShortcutWords.OPEN_ENTRY),
        (ShortcutWords.DELETE, ShortcutWords.DELETE_MODEL),
        (ShortcutWords.LEFT_RIGHT, ShortcutWords.FOLD),
    ]


def answer_announced(text: str) -> str:
    """What a screen reader says when an answer is there."""
    return tr("Answer: {text}").format(text=text)


def model_announced(name: str) -> str:
    """What a screen reader says when a model can be asked."""
    return tr("{name} is loaded and can be asked.").format(name=name)
