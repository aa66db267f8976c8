"""The fixed words of the window, by area. ``ChatWords.SEND`` reads as text, translated on use.

What has numbers or names in it is in ``phrases``; errors are in ``errors``.
"""

from app.text.translate import tr


class Word:
    """One text of a class of words; reading it gives the words of the language in use."""

    def __init__(self, english: str) -> None:
        self._english = english

    def __get__(self, instance: object, owner: type) -> str:
        """Return the words for the text."""
        return tr(self._english)


class ShellWords:
    """The frame around the pages."""

    PROGRAM = Word("Larder")
    CHAT = Word("Chat")
    MODELS = Word("Models")
    MONITOR = Word("Monitor")
    SETTINGS = Word("Settings")
    DROP_HERE = Word("Drop the model here")
    DROP_ONLY_FOLDERS = Word("Drop one folder or file that holds a model.")
    UNDO = Word("Undo")
    CANCEL = Word("Cancel")
    DETAILS = Word("Details")
    COPY_DETAILS = Word("Copy details")
    RESTART = Word("Start it again")
    LOAD_AGAIN = Word("Load it again")


class ChatWords:
    """The Chat page."""

    NEW_CHAT = Word("New chat")
    SEARCH = Word("Search chats")
    CHATS = Word("Chats")
    MESSAGES = Word("Messages of this chat")
    NO_CHATS = Word("Your chats will be listed here.")
    NOTHING_FOUND = Word("No chat has these words.")
    ASK = Word("Ask anything.  Enter sends · Shift+Enter new line · Esc stops · drop files here")
    ASK_UNLOADED = Word("Load a model first, then ask it anything.")
    QUESTION = Word("Your question")
    ATTACH = Word("Add a text file (or drop it here)")
    MOVE_TO_NEW = Word("Ask in a new chat")
    LEAVE_OUT = Word("Leave out the oldest")
    SHORTEN = Word("Sum up the oldest")
    SHORTEN_EXPLAINED = Word("The model writes a summary and is told that in their place")
    SHORTENING = Word("The model is summing up what came before…")
    SHORTEN_NOTHING = Word(
        "The model wrote no summary, so nothing was changed. Leave out the oldest messages, or "
        "choose a longer context."
    )
    READ_SUMMARY = Word("Read the summary")
    TELL_ALL = Word("Tell it all again")
    LONGER_CONTEXT = Word("Choose a longer context")
    ANSWER = Word("Answer")
    SEND = Word("Send")
    STOP = Word("Stop")
    REGENERATE = Word("Write another answer")
    CONTINUE = Word("Continue")
    CONTINUE_EXPLAINED = Word("Let the answer go on where it was cut")
    EDIT = Word("Ask in other words")
    COPY = Word("Copy")
    PREVIOUS_VARIANT = Word("Previous version")
    NEXT_VARIANT = Word("Next version")
    RENAME = Word("Rename…")
    DELETE = Word("Delete")
    EXPORT = Word("Save…")
    IMPORT = Word("Bring in chats…")
    PIN = Word("Pin to the top")
    UNPIN = Word("Unpin")
    PINNED = Word("Pinned")
    DELETED = Word("The chat was deleted.")
    EMPTY_TITLE = Word("What would you like to know?")
    EMPTY_TEXT = Word("The model runs on this PC. Nothing you write leaves it.")
    NO_MODEL_TITLE = Word("No model is loaded")
    NO_MODEL_TEXT = Word("Choose one on the Models page, or drop a model folder on this window.")
    CHOOSE_MODEL = Word("Choose a model")
    THINKING = Word("Thinking")
    THOUGHT = Word("Thought")
    STOPPED_THINKING = Word("Stopped while thinking")
    READING = Word("Reading your question")
    NO_ANSWER = Word("The model ended without an answer. Write another one, or ask in other words.")
    NO_ROOM_TO_ANSWER = Word(
        "The limit of tokens per answer was reached before the answer began. Raise it in the"
        " settings and write another answer."
    )
    STOPPED = Word("stopped")
    LENGTH = Word("stopped at the limit of tokens per answer")
    CONTEXT_FULL = Word("the context is full: start a new chat or load with a longer context")
    CUT_OFF = Word("cut off: the model stopped running")
    EARLIER = Word("Show earlier messages")


class ModelWords:
    """The Models page."""

    ON_THIS_PC = Word("On this PC")
    THIS_MODEL = Word("This model")
    DROP = Word("Drop a model's folder or .gguf file anywhere, or choose a folder")
    CHOOSE_FOLDER = Word("Choose a folder…")
    READY = Word("ready")
    LOADED = Word("loaded")
    NOT_COMPLETE = Word("cannot run")
    MISSING = Word("not there now")
    NEVER_LOOKED = Word("not looked at yet")
    INSPECTING = Word("Reading what the files say…")
    RECOMMENDED = Word("recommended")
    EXACT = Word("Exact")
    EIGHT_BIT = Word("8 bits")
    SIX_BIT = Word("6 bits")
    FOUR_BIT = Word("4 bits")
    THREE_BIT = Word("3 bits")
    TWO_BIT = Word("2 bits")
    MIXED = Word("Mixed bits")
    BALANCED = Word("Balanced")
    FITS_IN_RAM = Word("Fits in RAM")
    SMALLEST = Word("Smallest")
    EXACT_LINE = Word("answers as published")
    NEARLY_EXACT_LINE = Word("answers nearly as published")
    DIFFERS_LITTLE_LINE = Word("answers about as good")
    DIFFERS_LINE = Word("worse answers")
    DIFFERS_MUCH_LINE = Word("clearly worse answers")
    WRITES_NOTHING = Word("writes nothing")
    RAM_BUDGET = Word("RAM budget")
    RAM_AUTOMATIC = Word("Automatic")
    CONTEXT = Word("Context")
    CONTEXT_EXPLAINED = Word("How much of a chat the model can see at once, in tokens.")
    WHY = Word("Why this plan?")
    LOAD = Word("Start")
    PREPARE_AND_LOAD = Word("Prepare and start")
    SWITCH = Word("Switch to this model")
    RELOAD = Word("Start with this plan")
    UNLOAD = Word("Unload")
    PREPARING = Word("Preparing")
    LOADING_START = Word("Starting the engine")
    LOADING_DENSE = Word("Loading the part that every token uses")
    LOADING_EXPERTS = Word("Loading experts")
    EMPTY_TITLE = Word("Drop a model folder on this window")
    EMPTY_TEXT = Word(
        "You see whether it runs, from where and how fast, before anything is loaded."
    )
    PROBLEMS = Word("Why it cannot run")
    NOTES = Word("Good to know")


class StripWords:
    """The strip on top of all pages."""

    NO_RUNTIME = Word("Starting…")
    IDLE = Word("No model loaded")
    INSPECTING = Word("Looking at a model")
    PLANNING = Word("Planning")
    PREPARING = Word("Preparing")
    LOADING = Word("Loading")
    STOPPING = Word("Stopping")
    FAILED = Word("The engine has stopped")
    EXACT = Word("exact")
    NOT_EXACT = Word("not exact")
    VRAM = Word("VRAM")
    RAM = Word("RAM")
    DRIVE = Word("drive")
    SIMULATED = Word("simulated")


class SettingWords:
    """The Settings page."""

    APPEARANCE = Word("Appearance")
    THEME = Word("Colours")
    THEME_SYSTEM = Word("As the system")
    THEME_LIGHT = Word("Light")
    THEME_DARK = Word("Dark")
    START = Word("At the start")
    LOAD_LAST = Word("Load the model that was used last")
    ANSWERS = Word("Answers")
    SYSTEM_PROMPT = Word("Instructions for every chat")
    SYSTEM_PROMPT_HINT = Word("For example: Answer briefly and in plain words.")
    SAMPLING = Word("How words are chosen")
    SAMPLING_OF_MODEL = Word("As the model's makers recommend")
    SAMPLING_OF_MODEL_HINT = Word("Untick to choose the five values below yourself.")
    SAMPLING_NOT_SAID = Word("The loaded model recommends nothing: your own values are used.")
    TEMPERATURE = Word("Temperature")
    TEMPERATURE_HINT = Word("0 always takes the likeliest word; higher varies more.")
    TOP_P = Word("Top-p")
    TOP_P_HINT = Word("Keeps the likeliest words whose chances add up to this; 1 keeps all.")
    TOP_K = Word("Top-k (0 keeps all)")
    TOP_K_HINT = Word("Keeps so many of the likeliest words, for example 40.")
    MIN_P = Word("Min-p")
    MIN_P_HINT = Word(
        "Leaves out words whose chance is below this part of the likeliest one's; 0 leaves out "
        "none."
    )
    REPETITION_PENALTY = Word("Repetition penalty")
    REPETITION_PENALTY_HINT = Word(
        "Above 1, words that were said already become less likely; 1 changes nothing."
    )
    MAX_TOKENS = Word("Most tokens in an answer (0: no limit)")
    MAX_TOKENS_HINT = Word("A token is a piece of a word; 400 are about a page.")
    SEED_HINT = Word("With the same number the same question is answered the same way again.")
    ENERGY = Word("Energy")
    PRICE = Word("Price of a kilowatt-hour")
    CURRENCY = Word("Currency")
    UNLOAD_AFTER = Word("Minutes of rest after which a model gives its memory back")
    UNLOAD_AFTER_HINT = Word("0 keeps it loaded until you unload it or close the window.")
    RESET = Word("Back to the defaults")
    FILES = Word("Files")
    SETTINGS_FILE = Word("Settings")
    CHATS_FILE = Word("Chats")
    LOG_FILE = Word("Logs")
