"""What a search for models says of a place, and what would go if a model were deleted."""

import enum

from runtime.protocol.values import Value


class RootState(enum.StrEnum):
    """Whether a place could be looked through."""

    THERE = "there"
    EMPTY = "empty"
    """Nothing lies in it: often the place of a drive that is not connected."""
    MISSING = "missing"
    UNREADABLE = "unreadable"


class DeletionObstacle(enum.StrEnum):
    """Why a folder is not to be deleted by this program."""

    NOT_THERE = "not_there"
    NOT_A_MODEL_ALONE = "not_a_model_alone"
    """It is a drive or a home, or holds other models or very many files."""
    UNREADABLE = "unreadable"
    """Some of it may not be read, so that nobody knows what would go."""


class FolderWeight(Value):
    """What would go with a model."""

    folder: str
    """The folder, file or link that would go: of a cached model its whole repository."""
    files: list[str] = []
    """Of a model among others in its folder: the files and links that would go instead."""
    num_bytes: int = 0
    """Of files; what links in it lead to stays."""
    num_files: int = 0
    link_target: str = ""
    """Set if only a link would go: what it leads to, which stays."""
    obstacle: DeletionObstacle | None = None
