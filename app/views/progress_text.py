"""The words of a long job, from its numbers."""

from app.state.progress import Progress, ProgressKind
from app.text import phrases
from app.text.words import ModelWords


def progress_name(progress: Progress | None) -> str:
    """Return what is being done, how much of it, how fast, and the time left."""
    if progress is None:
        return ModelWords.LOADING_START
    names = {
        ProgressKind.PREPARE: ModelWords.PREPARING,
        ProgressKind.START: ModelWords.LOADING_START,
        ProgressKind.DENSE: ModelWords.LOADING_DENSE,
        ProgressKind.EXPERTS: ModelWords.LOADING_EXPERTS,
    }
    line = phrases.progress_line(
        progress.done_bytes, progress.total_bytes, progress.bytes_per_s, progress.seconds_left
    )
    return phrases.DOT.join(part for part in (names[progress.kind], line) if part)
