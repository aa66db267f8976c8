"""What a hub of models says: search results, and one model as it could be downloaded."""

import enum

from runtime.protocol.errors import ErrorReport
from runtime.protocol.values import Forecast, Value


class HubFit(enum.StrEnum):
    """How a model of the hub suits this program and this PC, best first."""

    FITS = "fits"
    """It has experts, its kind can be run, and there is room for it."""
    NO_ROOM = "no_room"
    """It could run, but its drive has less room than it needs."""
    DENSE = "dense"
    """It can be run, but has no experts."""
    UNKNOWN = "unknown"
    """The hub does not say what kind it is."""
    NOT_RUNNABLE = "not_runnable"
    """Its kind cannot be run, or its files are none that are downloaded."""


class HubModel(Value):
    """One model of a search, as far as the hub's list tells; 0 and empty where it does not."""

    model_id: str
    """Owner and name, as in the hub's addresses."""
    fit: HubFit
    model_type: str = ""
    licence: str = ""
    is_gated: bool = False
    """Whether its owner wants to be asked first."""
    num_parameters: int = 0
    size_bytes: int = 0
    """Of the weights, by their number and types."""
    num_downloads: int = 0
    num_likes: int = 0


class HubOutlook(Value):
    """How a listed model would do on this PC; nothing is set where that is not known."""

    forecast: Forecast | None = None
    is_too_large: bool = False
    """No plan fits into the memory, whatever stays on the drive."""


class HubCard(Value):
    """One model as it would be downloaded now."""

    model_id: str
    revision: str
    """The commit, which a download is held to."""
    licence: str = ""
    is_gated: bool = False
    base_model: str = ""
    languages: list[str] = []
    last_modified: str = ""
    """A day, as in ``2026-05-31``."""
    num_downloads: int = 0
    num_files: int = 0
    size_bytes: int = 0
    """Of the files that are needed; the others of its page are not downloaded."""
    left_out_bytes: int = 0
    kept_bytes: int = 0
    """Already here, from a download that was not finished."""
    free_bytes: int = 0
    """On the drive that it would go to."""
    folder: str = ""
    """Where it would lie."""
    is_here: bool = False
    """Whether it lies there already."""
    outline_folder: str = ""
    """A folder with all small files and the beginnings of the weights, which can be planned."""
    problem: ErrorReport | None = None
    """Why its files cannot be had; there is no outline then."""
