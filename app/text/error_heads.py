"""What stands above the sentence of an error, and the one step that its button takes."""

import enum
from collections.abc import Mapping
from types import MappingProxyType

from app.text.words import ChatWords, ShellWords, Word
from runtime.protocol.errors import ErrorCode


class NextStep(enum.Enum):
    """What a button beside an error can do."""

    MODELS = "models"
    """Go where another model is chosen."""
    PLANS = "plans"
    """Go where the model's plans, budgets and copies are."""
    NEW_CHAT = "new_chat"
    STOP = "stop"
    SETTINGS = "settings"
    LOAD_AGAIN = "load_again"
    RESTART = "restart"
    """Start the background process again."""


class HeadWords:
    """The headlines."""

    NOT_ASKED = Word("This question cannot be asked")
    BUSY = Word("Something else is going on")
    NO_MODEL = Word("No model is loaded")
    SETTING = Word("A setting does not fit")
    HUB = Word("Nothing came from the hub")
    DOWNLOAD = Word("The download stopped")
    UPKEEP = Word("The program stays as it is")
    MODEL = Word("This model cannot be used")
    PLAN = Word("The model cannot be loaded like this")
    PREPARE = Word("The model was not prepared")
    COPY = Word("The prepared copy cannot be used")
    DRIVE = Word("The drive could not be read")
    MEMORY = Word("The memory is used up")
    INSTALLATION = Word("Larder is not installed as it should be")
    ENDED = Word("The background process ended")
    WRONG = Word("Something went wrong")


class StepWords:
    """The buttons that have no word elsewhere."""

    MODELS = Word("Choose another model")
    PLANS = Word("See its plans")
    SETTINGS = Word("Open the settings")


_C, _S = ErrorCode, NextStep
# Headlines by their name, because words are translated when they are read.
_GROUPS: tuple[tuple[str, NextStep, tuple[ErrorCode, ...]], ...] = (
    ("NOT_ASKED", _S.NEW_CHAT, (_C.PROMPT_TOO_LONG, _C.CONVERSATION_INVALID)),
    ("BUSY", _S.STOP, (_C.ENGINE_BUSY,)),
    ("BUSY", _S.PLANS, (_C.MODEL_ALREADY_LOADED, _C.COPY_BUSY, _C.DOWNLOAD_BUSY)),
    ("NO_MODEL", _S.MODELS, (_C.NO_MODEL_LOADED,)),
    ("SETTING", _S.SETTINGS, (_C.SETTING_INVALID, _C.MACHINE_FILE_INVALID)),
    ("HUB", _S.SETTINGS, (_C.HUB_OFFLINE, _C.HUB_UNREACHABLE)),
    (
        "HUB",
        _S.MODELS,
        (_C.HUB_ANSWER_INVALID, _C.HUB_MODEL_MISSING, _C.HUB_MODEL_GATED, _C.HUB_MODEL_UNUSABLE),
    ),
    (
        "DOWNLOAD",
        _S.MODELS,
        (_C.DOWNLOAD_MISMATCHED, _C.DOWNLOAD_PLACE_TAKEN, _C.DOWNLOAD_WRITE_FAILED),
    ),
    (
        "UPKEEP",
        _S.SETTINGS,
        (
            _C.UPDATE_UNREACHABLE, _C.UPDATE_INVALID, _C.UPDATE_UNSIGNED,
            _C.ENGINE_PARTS_UNREACHABLE, _C.ENGINE_PARTS_UNUSABLE,
        ),
    ),
    (
        "PLAN",
        _S.PLANS,
        (
            _C.RAM_BUDGET_TOO_SMALL, _C.RAM_NOT_FREE, _C.VRAM_NOT_THERE, _C.CONTEXT_TOO_LONG,
            _C.NOT_PREPARED, _C.PLAN_OUTDATED,
        ),
    ),
    (
        "PREPARE",
        _S.PLANS,
        (
            _C.DISK_FULL, _C.DISK_NOT_WRITABLE, _C.PREPARE_FAILED, _C.NOTHING_TO_PREPARE,
            _C.USED_IN_PLACE, _C.COPY_PLACE_REFUSED, _C.COPY_WRITE_FAILED, _C.COPY_MISWRITTEN,
            _C.TEXT_INVALID,
        ),
    ),
    ("COPY", _S.PLANS, (_C.STORE_INVALID, _C.STORE_DAMAGED)),
    ("COPY", _S.LOAD_AGAIN, (_C.COPY_LOST,)),
    ("DRIVE", _S.LOAD_AGAIN, (_C.DRIVE_READ_FAILED,)),
    ("MEMORY", _S.LOAD_AGAIN, (_C.OUT_OF_MEMORY,)),
    ("INSTALLATION", _S.RESTART, (_C.ENGINE_MISSING, _C.PROTOCOL_MISMATCHED)),
    (
        "ENDED",
        _S.RESTART,
        (_C.FRAME_INVALID, _C.RUNTIME_NOT_STARTED, _C.RUNTIME_ENDED, _C.RUNTIME_SILENT),
    ),
    ("WRONG", _S.RESTART, (_C.INTERNAL,)),
)  # fmt: skip
_BY_CODE: Mapping[ErrorCode, tuple[str, NextStep]] = MappingProxyType(
    {code: (head, step) for head, step, codes in _GROUPS for code in codes}
)
_OF_A_MODEL = ("MODEL", NextStep.MODELS)
"""All others are what was found in a folder."""


def headline(code: ErrorCode) -> str:
    """What an error is about, in a few words."""
    return str(getattr(HeadWords, _BY_CODE.get(code, _OF_A_MODEL)[0]))


def next_step(code: ErrorCode) -> NextStep:
    """What helps with an error most often."""
    return _BY_CODE.get(code, _OF_A_MODEL)[1]


def step_name(step: NextStep) -> str:
    """The word on its button."""
    return {
        NextStep.MODELS: StepWords.MODELS,
        NextStep.PLANS: StepWords.PLANS,
        NextStep.NEW_CHAT: ChatWords.NEW_CHAT,
        NextStep.STOP: ChatWords.STOP,
        NextStep.SETTINGS: StepWords.SETTINGS,
        NextStep.LOAD_AGAIN: ShellWords.LOAD_AGAIN,
        NextStep.RESTART: ShellWords.RESTART,
    }[step]
