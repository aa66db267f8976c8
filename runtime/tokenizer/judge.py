"""Whether a model's chat template can be used, found out before a person waits for the model."""

import functools
from pathlib import Path

from runtime.errors import LarderError
from runtime.protocol.errors import ErrorCode
from runtime.tokenizer.source import tokenizer_files
from runtime.tokenizer.template import ChatTemplate

MAX_TEMPLATE_CHARACTERS = 1 << 20
_QUESTION = {"role": "user", "content": "Hello"}


def template_problem(folder: Path) -> LarderError | None:
    """Return why no first question could be written down, None if it can.

    The template is compiled and run once, in its sandbox and within its bounds. One that refuses
    this conversation in its own words is in order.
    """
    try:
        files = tokenizer_files(folder)
    except LarderError as error:
        return error
    return _judge(files.template, tuple(files.special_tokens.items()))


@functools.lru_cache(maxsize=16)
def _judge(source: str, special_tokens: tuple[tuple[str, str], ...]) -> LarderError | None:
    if len(source) > MAX_TEMPLATE_CHARACTERS:
        reason = f"it has {len(source)} characters, at most {MAX_TEMPLATE_CHARACTERS} are read"
        return LarderError(ErrorCode.CHAT_TEMPLATE_INVALID, reason=reason)
    try:
        ChatTemplate(source, dict(special_tokens)).render([_QUESTION], add_generation_prompt=True)
    except LarderError as error:
        return None if error.code is ErrorCode.CONVERSATION_INVALID else error
    return None
