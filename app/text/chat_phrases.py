"""Words with numbers and names about writing a question, and about chats in files."""

import re

from app.state.chat_reading import ImportEnd
from app.state.text_file import MAX_FILE_BYTES, TextFileError, TextFileProblem
from app.text.phrases import context_line
from app.text.translate import tr, trn
from app.text.units import count, percent, size

_FENCE = re.compile(r"`{3,}\w*")


def counted_line(prompt_tokens: int, context_tokens: int) -> str:
    """The meter while a question is written: what it and the chat before it take together."""
    if prompt_tokens < context_tokens:
        return tr("{count} with this question").format(
            count=context_line(prompt_tokens, context_tokens)
        )
    return tr(
        "With this question the chat has {count} tokens; "
        "the context has room for {most} and an answer"
    ).format(count=count(prompt_tokens), most=count(max(0, context_tokens - 1)))


def question_too_long(num_characters: int, max_characters: int) -> str:
    """Why a text was not taken into a question."""
    return tr(
        "That would be {number} characters. A question can have {most} at most; ask about a part."
    ).format(number=count(num_characters), most=count(max_characters))


def pasted(text: str) -> str:
    """A text that goes with a question: ``Goes with it, 12,345 characters: “Once upon…”``."""
    beginning = " ".join(_FENCE.sub(" ", text[:200]).split())[:60]
    return tr("Goes with it, {number} characters: “{beginning}…”").format(
        number=count(len(text)), beginning=beginning
    )


def not_attached(name: str, error: TextFileError) -> str:
    """Why a file was not taken into a question, and what to do."""
    texts = {
        TextFileProblem.UNREADABLE: tr(
            "{name} cannot be read ({reason}). Check that it is there, or choose another file."
        ),
        TextFileProblem.TOO_LARGE: tr(
            "{name} is larger than {most}, too long for a question. Paste the part you ask about."
        ),
        TextFileProblem.NOT_TEXT: tr(
            "{name} is no text file. Save it as plain text first, or paste the words."
        ),
        TextFileProblem.EMPTY: tr("{name} has no words in it. Choose another file."),
    }
    return texts[error.problem].format(name=name, reason=error.reason, most=size(MAX_FILE_BYTES))


def imported(end: ImportEnd, name: str) -> str:
    """Said when the chats of a file are in the list: ``12 chats were brought in.``."""
    kept = trn("{count} chat was brought in.", "{count} chats were brought in.", end.num_kept)
    parts = [kept.format(count=count(end.num_kept))]
    if end.num_too_large:
        large = trn(
            "{count} chat was left out, because it is too large to be read.",
            "{count} chats were left out, because they are too large to be read.",
            end.num_too_large,
        )
        parts.append(large.format(count=count(end.num_too_large)))
    if end.error:
        broken = tr("Then {name} breaks off. Export it once more to bring in the rest.")
        parts.append(broken.format(name=name))
    if end.is_stopped:
        parts.append(tr("The rest of {name} was not read.").format(name=name))
    return " ".join(parts)


def importing(name: str, ratio: float, num_chats: int) -> str:
    """Said while a long file is read."""
    told = trn(
        "Reading {name}: {percent}, {count} chat brought in so far.",
        "Reading {name}: {percent}, {count} chats brought in so far.",
        num_chats,
    )
    return told.format(name=name, percent=percent(ratio), count=count(num_chats))


def not_imported(path: str) -> str:
    """Why the chats of a file were not taken; the details say what it holds."""
    return tr(
        "No chats were found in {path}. Choose a JSON file that Larder saved, or the export of "
        "another chat program: a .zip file, or one that is often named conversations.json."
    ).format(path=path)


def unreadable(path: str, reason: str) -> str:
    """A file that a person chose cannot be read."""
    return tr(
        "{path} cannot be read ({reason}). Check that it is still there, or choose another."
    ).format(path=path, reason=reason)


def untold(num_messages: int) -> str:
    """Said while the model does not see the beginning of a chat."""
    return trn(
        "The model is not told the oldest message of this chat.",
        "The model is not told the oldest {count} messages of this chat.",
        num_messages,
    ).format(count=count(num_messages))


def summed_up(num_messages: int) -> str:
    """Said while the model is told a summary of the beginning of a chat."""
    return trn(
        "The model is told a summary of the oldest message of this chat.",
        "The model is told a summary of the oldest {count} messages of this chat.",
        num_messages,
    ).format(count=count(num_messages))
