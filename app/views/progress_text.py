"""The words of a long job, from its numbers."""

from app.state.progress import Progress, ProgressKind
from app.text import mix_words, phrases
from app.text.mix_words import MixWords
from app.text.words import ModelWords


def progress_name(progress: Progress | None) -> str:
    """Return what is being done, how much of it, how fast, and the time left."""
    if progress is None:
        return ModelWords.LOADING_START
    names = {
        ProgressKind.READ_TEXT: MixWords.READING_TEXT,
        ProgressKind.TRY_FORMATS: MixWords.TRYING_FORMATS,
        ProgressKind.PREPARE: ModelWords.PREPARING,
        ProgressKind.START: ModelWords.LOADING_START,
        ProgressKind.DENSE: ModelWords.LOADING_DENSE,
        ProgressKind.EXPERTS: ModelWords.LOADING_EXPERTS,
    }
    if progress.kind is ProgressKind.READ_TEXT:
        line = mix_words.tokens_read(
            progress.done_bytes, progress.total_bytes, progress.seconds_left
        )
        return phrases.DOT.join((MixWords.READING_TEXT, line))
    line = phrases.progress_line(
        progress.done_bytes, progress.total_bytes, progress.bytes_per_s, progress.seconds_left
    )
    return phrases.DOT.join(part for part in (names[progress.kind], line) if part)
