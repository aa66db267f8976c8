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
    gguf_label: str = ""
    """What the numbers are called of those files in GGUF that are told of, as in ``Q4_K_M``.

    Of such models the size is an estimate. Empty for models in safetensors.
    """
    base_model: str = ""
    """Of a model in GGUF the one it was made from, whose config it shares."""


class HubVariant(Value):
    """One of the models in GGUF on a page: the same weights in other bits."""

    name: str
    """What it goes by among those of its page."""
    label: str = ""
    """What its numbers are called; empty if the names of its files do not say."""
    fit: HubFit = HubFit.FITS
    size_bytes: int = 0
    num_files: int = 1
    """More than one for a set that was split."""
    is_here: bool = False


class HubSketch(Value):
    """What a forecast needs to know of a model none of whose files is here."""

    config: str = ""
    """A whole ``config.json``, of the model that GGUF files were made from too."""
    outline: str = ""
    """In place of a config, the outline of the same model in other bits."""
    gguf_label: str = ""
    """What the numbers of its files in GGUF are called; empty for safetensors."""
    size_bytes: int = 0
    """Of its files in GGUF; 0 where that is not known."""


class HubOutlook(Value):
    """How a listed model would do on this PC; nothing is set where that is not known."""

    forecast: Forecast | None = None
    is_too_large: bool = False
    """No plan fits into the memory, whatever stays on the drive."""
    is_on_drive: bool = False
    """Some of its experts would be read from the drive while it answers."""


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
    """What can be planned: a folder with all small files and the beginnings of the weights, or in
    GGUF the first file."""
    problem: ErrorReport | None = None
    """Why its files cannot be had; there is no outline then."""
    variant: str = ""
    """Which of its models in GGUF this is of; empty for the one in safetensors."""
    variants: list[HubVariant] = []
    """All its models in GGUF, largest first."""
