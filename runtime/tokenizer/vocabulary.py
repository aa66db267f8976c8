"""The tokenizer of a model folder, from whichever file it comes with."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.errors import LarderError
from runtime.protocol.errors import ErrorCode
from runtime.tokenizer.files import TOKENIZER_FILE, DeclaredToken, TokenizerFiles
from runtime.tokenizer.gguf_file import read_gguf_tokenizer
from runtime.tokenizer.sentencepiece_file import read_sentencepiece
from runtime.tokenizer.tiktoken_file import is_tiktoken, read_tiktoken

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MAX_VOCABULARY_BYTES = 32 * 1024 * 1024
"""Of a file that is not ``tokenizer.json``; the largest published ones have a quarter of it."""
MAX_RESERVED = 4096
"""Numbers without a token between those of declared ones."""
_PROBE = "Hello <|world|> 1234 é 猫 \ufb01 \t\n  x"


def read_tokenizer(files: TokenizerFiles) -> "Tokenizer":
    """Return the tokenizer; raise ``LarderError`` with ``TOKENIZER_INVALID`` if there is none."""
    from tokenizers import Tokenizer

    path = files.tokenizer_path
    try:
        with panics_as_errors(path):
            if files.is_gguf:
                tokenizer = read_gguf_tokenizer(path)
            elif path.name == TOKENIZER_FILE:
                tokenizer = Tokenizer.from_file(str(path))
                _add(tokenizer, files.declared_tokens, has_gaps=False)
            else:
                tokenizer = _read_other(files)
                _add(tokenizer, files.declared_tokens, has_gaps=True)
            tokenizer.encode(_PROBE, add_special_tokens=False)
    except LarderError:
        raise
    # The library raises plain Exception for every kind of bad file.
    except Exception as error:
        raise LarderError(ErrorCode.TOKENIZER_INVALID, file=str(path), reason=str(error)) from error
    return tokenizer


@contextlib.contextmanager
def panics_as_errors(path: Path) -> Iterator[None]:
    """Raise ``TOKENIZER_INVALID`` for a panic of the tokenizers library, which bad files cause."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise LarderError(
            ErrorCode.TOKENIZER_INVALID, str(error), file=str(path), reason="its tables are broken"
        ) from error


def _read_other(files: TokenizerFiles) -> "Tokenizer":
    """Return the tokenizer of a file in another format, known by its content."""
    path = files.tokenizer_path
    size_bytes = path.stat().st_size
    if size_bytes > MAX_VOCABULARY_BYTES:
        raise ValueError(f"it has {size_bytes} bytes, at most {MAX_VOCABULARY_BYTES} are read")
    data = path.read_bytes()
    if is_tiktoken(data):
        return read_tiktoken(data, files.model_type)
    return read_sentencepiece(data, is_prefixed_everywhere=files.is_prefixed_everywhere)


def _add(tokenizer: "Tokenizer", declared: Mapping[int, DeclaredToken], *, has_gaps: bool) -> None:
    """Add the declared tokens that the vocabulary does not have yet, each with its number.

    With ``has_gaps`` numbers between them get tokens that nobody writes, and a token that cannot
    have its number raises ``ValueError``; otherwise it is left out.
    """
    from tokenizers import AddedToken

    known = tokenizer.get_added_tokens_decoder()
    for token_id, token in sorted(declared.items()):
        if token_id in known and known[token_id].special == token.is_special:
            continue
        if has_gaps and token_id - tokenizer.get_vocab_size() > MAX_RESERVED:
            raise ValueError(f"the number {token_id} of the token {token.content} is too high")
        while has_gaps and tokenizer.get_vocab_size() < token_id:
            tokenizer.add_special_tokens([f"<|reserved_token_{tokenizer.get_vocab_size()}|>"])
        found = tokenizer.token_to_id(token.content)
        if found != token_id and (found is not None or tokenizer.get_vocab_size() != token_id):
            if has_gaps:
                raise ValueError(f"the token {token.content} cannot have the number {token_id}")
            continue
        added = AddedToken(
            token.content,
            lstrip=token.strips_left,
            rstrip=token.strips_right,
            normalized=token.is_normalized,
            special=token.is_special,
        )
        (tokenizer.add_special_tokens if token.is_special else tokenizer.add_tokens)([added])
