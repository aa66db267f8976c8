"""Texts of the scripted engine as made-up tokens."""

import zlib
from collections.abc import Sequence

from runtime.engine.script import Pieces
from runtime.protocol.chat import ChatMessage, Role


def cut_text(text: str, pieces: Pieces) -> list[str]:
    """Cut a text so that the pieces joined are the text; words keep the space before them."""
    match pieces:
        case Pieces.CHARACTERS:
            return list(text)
        case Pieces.LINES:
            return text.splitlines(keepends=True)
        case Pieces.WORDS:
            return [f"{' ' if index else ''}{word}" for index, word in enumerate(text.split(" "))]


def token_id_of(piece: str) -> int:
    """Return the id of a piece, always the same."""
    return zlib.crc32(piece.encode("utf-8", "surrogatepass")) % 50_000


def prompt_ids_of(conversation: Sequence[ChatMessage]) -> list[int]:
    """Return ids that begin alike for conversations that do; a last answer is left open."""
    ids: list[int] = []
    for message in conversation:
        ids += [1, token_id_of(message.role), 2]
        ids += message.token_ids or [
            token_id_of(piece) for piece in cut_text(message.text, Pieces.WORDS)
        ]
        ids.append(3)
    if conversation and conversation[-1].role is Role.ASSISTANT:
        return ids[:-1]
    return [*ids, 1, token_id_of(Role.ASSISTANT), 2]


def rest_of(answers: Sequence[str], begun: ChatMessage, pieces: Pieces) -> tuple[str, list[str]]:
    """Return the beginning of an answer that goes on, and the pieces that follow it.

    It is the answer whose first ids those of the message are; an unknown one is followed by the
    first answer.
    """
    number = len(begun.token_ids)
    for answer in answers:
        cut = cut_text(answer, pieces)
        if number and [token_id_of(piece) for piece in cut[:number]] == begun.token_ids:
            return "".join(cut[:number]), cut[number:]
    return begun.text, cut_text(answers[0], pieces) if answers else []


def num_common(left: Sequence[int], right: Sequence[int]) -> int:
    """Return how many ids two sequences share from their beginning."""
    for index, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return index
    return min(len(left), len(right))
