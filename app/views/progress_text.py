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
        ProgressKind.TRY_PARTS: MixWords.TRYING_PARTS,
        ProgressKind.TRY_FORMATS: MixWords.TRYING_FORMATS,
        ProgressKind.PREPARE: ModelWords.PREPARING,
        ProgressKind.START: ModelWords.LOADING_START,
        ProgressKind.DENSE: ModelWords.LOADING_DENSE,
        ProgressKind.EXPERTS: ModelWords.LOADING_EXPERTS,
    }
    done, total, left_s = progress.done_bytes, progress.total_bytes, progress.seconds_left
    if progress.kind is ProgressKind.READ_TEXT:
        line = mix_words.tokens_read(done, total, left_s)
    elif progress.kind is ProgressKind.TRY_PARTS:
        line = mix_words.parts_tried(done, total, left_s)
    else:
        line = phrases.progress_line(done, total, progress.bytes_per_s, left_s)
    return phrases.DOT.join(part for part in (names[progress.kind], line) if part)
