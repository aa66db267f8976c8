"""Fixed words of single widgets, beside those of the pages in ``words``."""

from app.text.words import Word


class CodeWords:
    """A block of code in an answer."""

    CODE = Word("Code")
    COPY = Word("Copy")
    COPIED = Word("Copied")
    COPY_CODE = Word("Copy this code")


class TableWords:
    """A table in an answer."""

    TABLE = Word("Table")


class LinkWords:
    """Before a link leaves the program."""

    TITLE = Word("Open this address in your browser?")
    OPEN = Word("Open")
    KEEP = Word("Stay here")


class MonitorWords:
    """The Monitor page."""

    LAST_ANSWER = Word("The last answer")
    TIME = Word("Where the time went")
    EMPTY_TITLE = Word("Nothing has been measured yet")
    EMPTY_TEXT = Word("Load a model and ask it something: what the machine did is drawn here.")
    NO_ANSWER = Word("Ask something, then this fills.")


class DialogWords:
    """Small dialogs."""

    RENAME_TITLE = Word("Rename the chat")
    RENAME_LABEL = Word("Name")
    SAVE_TITLE = Word("Save the chat")
    CHAT_FILES = Word("Markdown, to read (*.md);;JSON, to bring in again (*.json)")
    IMPORT_TITLE = Word("Bring in chats of a file")
    IMPORT_FILES = Word("Chats (*.json *.jsonl *.zip);;All files (*)")
    STOP_IMPORT = Word("Stop reading")
    LIST_MENU = Word("More for all chats")
    SHOW_THINKING = Word("Show or hide the thinking")
    HIDE_NOTICE = Word("Hide this notice")
    SEED = Word("Seed (empty: a new one each time)")
    RETRY = Word("Try again")
    SHOW_LESS = Word("Show less")
    TAKE_OUT = Word("Take it out")
    ATTACH_TITLE = Word("Add text files to the question")
    NOT_SAVED = Word("The chat could not be saved; choose another place.")
    FOLDERS = Word("Open folder")
    ABOUT_TEXT = Word(
        "Larder runs on this PC alone and sends nothing anywhere. Apache-2.0. Typeface: Inter, "
        "SIL Open Font License 1.1."
    )
