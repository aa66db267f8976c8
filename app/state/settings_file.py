"""Reading the settings file: what is good is taken, what is not is named."""

import dataclasses
import difflib
import enum
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec

from runtime.protocol.chat import SamplingSettings
from runtime.protocol.plan import PlanKind


class ThemeChoice(enum.StrEnum):
    """Which colours the window has."""

    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"
    CONTRAST = "contrast"
    """High contrast, light or dark as the system is."""


class Preset(msgspec.Struct, frozen=True, kw_only=True):
    """A system prompt and a sampling under a name."""

    name: str
    system_prompt: str = ""
    sampling: SamplingSettings | None = None
    """None takes what the settings say."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings with their defaults; immutable, replaced as a whole."""

    theme: ThemeChoice = ThemeChoice.SYSTEM
    language: str = ""
    """The code of a language; empty takes the system's."""
    zoom_percent: int = 100
    """How large text and controls are."""
    reduce_motion: bool = False
    is_welcomed: bool = False
    """The first start was shown, and is not shown again."""
    last_folder: str = ""
    """The model that was loaded last; empty before the first."""
    last_plan: PlanKind | None = None
    load_last_model: bool = True
    """Load ``last_folder`` when the program starts."""
    unload_after_min: int = 0
    """Minutes without a question after which the model's memory is given back; 0 keeps it."""
    model_roots: list[str] = []
    """Places below which models are looked for, beside the usual ones."""
    left_out_roots: list[str] = []
    """Usual places that are not looked through."""
    is_hub_allowed: bool = False
    """Whether a hub of models may be asked over the network."""
    is_update_allowed: bool = False
    """Whether newer versions of the program are looked for at each start."""
    hub_address: str = ""
    """Empty takes ``HF_ENDPOINT``, or the usual one."""
    download_folder: str = ""
    """Where downloaded models go; empty is the usual place."""
    ram_budget_bytes: int | None = None
    """None lets the planner choose."""
    vram_budget_bytes: dict[str, Annotated[int, msgspec.Meta(ge=0)]] = {}
    """By device; of one that is not named the planner chooses, and 0 leaves it unused."""
    context_tokens: int = 0
    """0 lets the planner choose."""
    is_sampling_of_model: bool = True
    """Take what the loaded model's makers recommend, where they do; ``sampling`` otherwise."""
    sampling: SamplingSettings = SamplingSettings()
    system_prompt: str = ""
    presets: list[Preset] = []
    model_presets: dict[str, str] = {}
    """The name of a preset by the folder of the model that has it."""
    energy_price_per_kwh: float = 0.30
    currency: str = "€"
    max_drive_energy_ratio: float = 0.25
    """Above it a person is told what reading from the drive costs."""
    drive_endurance_tb: float = 0.0
    """What the drive is made to bear, in TB written; 0 takes what is typical."""
    quiet_drive_models: list[str] = []
    """Folders of models of which that is not told."""
    window_geometry: str = ""
    """Base64 of what Qt saved; empty before the first time."""


class SettingProblem(enum.Enum):
    """What can be wrong with a settings file."""

    DAMAGED = "damaged"
    """It is not JSON, or not an object: all defaults are in force."""
    UNREADABLE = "unreadable"
    UNKNOWN = "unknown"
    """There is no such setting."""
    WRONG = "wrong"
    """The value is not allowed: the default is in force."""
    NOT_SAVED = "not_saved"


@dataclasses.dataclass(frozen=True, slots=True)
class SettingNotice:
    """One thing about settings that a person has to know."""

    problem: SettingProblem
    name: str
    """The setting or the file."""
    hint: str = ""
    """The setting that was probably meant, or the reason."""


Filled = TypeVar("Filled", bound=msgspec.Struct)
_DEFAULTS = Settings()
_LIMITS: dict[str, tuple[float, float]] = {
    "ram_budget_bytes": (0, 1 << 50),
    "context_tokens": (0, 1 << 30),
    "unload_after_min": (0, 10_000),
    "zoom_percent": (100, 300),
    "energy_price_per_kwh": (0, 1000),
    "max_drive_energy_ratio": (0.01, 1),
    "drive_endurance_tb": (0, 100_000),
    "temperature": (0, 5),
    "top_k": (0, 1 << 30),
    "top_p": (0, 1),
    "min_p": (0, 1),
    "repetition_penalty": (0.5, 5),
    "max_tokens": (0, 1 << 30),
}


def checked(name: str, value: object, owner: type[msgspec.Struct]) -> object:
    """Return a setting's value in its type; raises ``ValueError`` if it is not allowed."""
    fields = {field.name: field for field in msgspec.structs.fields(owner)}
    try:
        found: object = msgspec.convert(value, fields[name].type)
    except msgspec.ValidationError as error:
        raise ValueError(f"{name}: {error}") from error
    if isinstance(found, msgspec.Struct):
        for inner in msgspec.structs.fields(found):
            checked(inner.name, getattr(found, inner.name), type(found))
    low, high = _LIMITS.get(name, (0, 0))
    if name in _LIMITS and isinstance(found, int | float) and not low <= found <= high:
        raise ValueError(f"{name}: {found} is not between {low:g} and {high:g}")
    return found


def read_settings(path: Path) -> tuple[Settings, list[SettingNotice]]:
    """Return what a file says, defaults for the rest, and what was wrong with it."""
    try:
        raw = msgspec.json.decode(path.read_bytes())
    except FileNotFoundError:
        return _DEFAULTS, []
    except OSError as error:
        return _DEFAULTS, [
            SettingNotice(SettingProblem.UNREADABLE, str(path), error.strerror or str(error))
        ]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _DEFAULTS, [SettingNotice(SettingProblem.DAMAGED, str(path), str(error))]
    if not isinstance(raw, dict):
        return _DEFAULTS, [SettingNotice(SettingProblem.DAMAGED, str(path), "not an object")]
    return _filled(_DEFAULTS, raw)


def _filled(default: Filled, raw: dict[str, object]) -> tuple[Filled, list[SettingNotice]]:
    """Return a struct with the allowed values of ``raw``."""
    names = [field.name for field in msgspec.structs.fields(default)]
    good: dict[str, object] = {}
    notices: list[SettingNotice] = []
    for name, value in raw.items():
        if name not in names:
            close = difflib.get_close_matches(name, names, n=1)
            notices.append(SettingNotice(SettingProblem.UNKNOWN, name, "".join(close)))
            continue
        inner = getattr(default, name)
        if isinstance(inner, msgspec.Struct) and isinstance(value, dict):
            good[name], found = _filled(inner, value)
            notices += found
            continue
        try:
            good[name] = checked(name, value, type(default))
        except ValueError as error:
            notices.append(SettingNotice(SettingProblem.WRONG, name, str(error)))
    return msgspec.structs.replace(default, **good), notices
