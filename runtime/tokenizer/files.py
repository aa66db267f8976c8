"""What a model folder says about its tokenizer: template, special tokens, end tokens.

Nothing here runs code from the folder. Files are read whole only up to a limit.
"""

import dataclasses
import json
from collections.abc import Container, Mapping
from pathlib import Path

from runtime.errors import LarderError
from runtime.inspect.chat_files import find_other_tokenizer
from runtime.protocol.errors import ErrorCode

MAX_CONFIG_BYTES = 32 * 1024 * 1024
MAX_TOKENIZER_BYTES = 512 * 1024 * 1024
TOKENIZER_FILE = "tokenizer.json"
_SPECIAL_NAMES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token")

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


@dataclasses.dataclass(frozen=True, slots=True)
class DeclaredToken:
    """A token that the settings add to a vocabulary."""

    content: str
    is_special: bool
    strips_left: bool = False
    strips_right: bool = False
    is_normalized: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class TokenizerFiles:
    """The texts of a model folder that decide how a conversation becomes ids."""

    tokenizer_path: Path
    template: str
    special_tokens: Mapping[str, str]
    """By name as templates know them, for example ``bos_token``."""
    eos_ids: tuple[int, ...]
    """From ``generation_config.json`` and ``config.json``."""
    declared_tokens: Mapping[int, DeclaredToken] = dataclasses.field(default_factory=dict)
    """By id."""
    model_type: str = ""
    is_prefixed_everywhere: bool = False
    """The tokenizer puts a space behind each special token, as older ones did."""
    is_gguf: bool = False
    """Everything stands in a GGUF file, which ``tokenizer_path`` is."""


def read_tokenizer_files(folder: Path) -> TokenizerFiles:
    """Return what the folder says; raise ``LarderError`` naming the file that is wrong."""
    tokenizer_path = _tokenizer_path(folder)
    if tokenizer_path.stat().st_size > MAX_TOKENIZER_BYTES:
        raise LarderError(
            ErrorCode.TOKENIZER_INVALID,
            file=str(tokenizer_path),
            reason=f"it is larger than {MAX_TOKENIZER_BYTES // 1024**2} MiB",
        )
    settings = _read_object(folder / "tokenizer_config.json")
    special_tokens = _special_tokens_of(folder, settings)
    config = _read_object(folder / "config.json")
    model_type = config.get("model_type")
    return TokenizerFiles(
        tokenizer_path=tokenizer_path,
        template=_template_of(folder, settings),
        special_tokens=special_tokens,
        eos_ids=_eos_ids_of(folder, config),
        declared_tokens=_declared_tokens_of(folder, settings, set(special_tokens.values())),
        model_type=model_type if isinstance(model_type, str) else "",
        is_prefixed_everywhere=settings.get("legacy") is True,
    )


def _tokenizer_path(folder: Path) -> Path:
    """Return the file with the vocabulary; raise ``TOKENIZER_MISSING`` if there is none."""
    path = folder / TOKENIZER_FILE
    found = path if path.is_file() else find_other_tokenizer(folder)
    if found is None:
        raise LarderError(ErrorCode.TOKENIZER_MISSING, file=str(path))
    return found


def _read_text(path: Path) -> str:
    """Return the text of a small file, empty if there is none."""
    try:
        if path.stat().st_size > MAX_CONFIG_BYTES:
            raise LarderError(
                ErrorCode.TOKENIZER_INVALID,
                file=str(path),
                reason=f"it is larger than {MAX_CONFIG_BYTES // 1024**2} MiB",
            )
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise LarderError(
            ErrorCode.TOKENIZER_INVALID,
            file=str(path),
            reason=f"it is not UTF-8 text from byte {error.start} on",
        ) from error
    except OSError as error:
        raise LarderError(ErrorCode.TOKENIZER_INVALID, file=str(path), reason=str(error)) from error


def _read_object(path: Path) -> dict[str, Json]:
    """Return the JSON object of a file, empty if there is no such file."""
    text = _read_text(path)
    if not text:
        return {}
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LarderError(
            ErrorCode.TOKENIZER_INVALID, file=str(path), reason=f"it is not JSON: {error}"
        ) from error
    if not isinstance(value, dict):
        raise LarderError(
            ErrorCode.TOKENIZER_INVALID, file=str(path), reason="it holds no JSON object"
        )
    return value


def _template_of(folder: Path, settings: Mapping[str, Json]) -> str:
    """Return the chat template; a file of its own goes before the settings."""
    candidates: tuple[Json, ...] = (
        _read_text(folder / "chat_template.jinja"),
        _read_object(folder / "chat_template.json").get("chat_template"),
        settings.get("chat_template"),
    )
    for candidate in candidates:
        if template := _one_template(candidate):
            return template
    raise LarderError(ErrorCode.CHAT_TEMPLATE_MISSING, folder=str(folder))


def _one_template(value: Json) -> str:
    """Return a template given as text or as a list of named ones (``default``, else the first)."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        named = {name: text for name, text in value.items() if isinstance(text, str)}
    elif isinstance(value, list):
        named = {
            str(item.get("name")): text
            for item in value
            if isinstance(item, dict) and isinstance(text := item.get("template"), str)
        }
    else:
        return ""
    return named.get("default") or next(iter(named.values()), "")


def _special_tokens_of(folder: Path, settings: Mapping[str, Json]) -> dict[str, str]:
    """Return the named special tokens; ``tokenizer_config.json`` goes before the older map."""
    older = _read_object(folder / "special_tokens_map.json")
    tokens: dict[str, str] = {}
    for name in _SPECIAL_NAMES:
        for source in (settings, older):
            value = source.get(name)
            if isinstance(value, dict):
                value = value.get("content")
            if isinstance(value, str) and value:
                tokens[name] = value
                break
    return tokens


def _declared_tokens_of(
    folder: Path, settings: Mapping[str, Json], special: Container[str]
) -> dict[int, DeclaredToken]:
    """Return the tokens that the settings add, by id; the newer settings go before the older."""
    declared: dict[int, DeclaredToken] = {}
    for content, token_id in _read_object(folder / "added_tokens.json").items():
        if isinstance(token_id, int) and token_id >= 0 and content:
            declared[token_id] = DeclaredToken(content, content in special)
    newer = settings.get("added_tokens_decoder")
    for name, value in newer.items() if isinstance(newer, dict) else ():
        if not (name.isascii() and name.isdigit() and isinstance(value, dict)):
            continue
        text = value.get("content")
        if isinstance(text, str) and text:
            declared[int(name)] = DeclaredToken(
                text,
                value.get("special") is True,
                value.get("lstrip") is True,
                value.get("rstrip") is True,
                value.get("normalized") is True,
            )
    return declared


def _eos_ids_of(folder: Path, config: Mapping[str, Json]) -> tuple[int, ...]:
    """Return the end tokens that the generation settings and the config name, in that order."""
    found: dict[int, None] = {}
    text_config = config.get("text_config")
    for source in (
        _read_object(folder / "generation_config.json"),
        config,
        text_config if isinstance(text_config, dict) else {},
    ):
        value = source.get("eos_token_id")
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, int) and not isinstance(item, bool) and item >= 0:
                found[item] = None
    return tuple(found)
