"""What a chat needs beside weights: tokenizer, template, the ids that end a turn."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from runtime.errors import LarderError
from runtime.inspect.bounded_json import read_object
from runtime.inspect.config import ConfigReader
from runtime.inspect.files import open_regular, shown, unreadable
from runtime.inspect.lookalike import START_BYTES, mistaken_for
from runtime.protocol.chat import SamplingSettings
from runtime.protocol.errors import ErrorCode

TOKENIZER_NAME = "tokenizer.json"
OTHER_TOKENIZER_NAMES = ("tokenizer.model", "tiktoken.model")
"""Of sentencepiece and tiktoken, read where there is no ``tokenizer.json``."""
TIKTOKEN_ENDING = ".tiktoken"
MAX_CONFIG_BYTES = 16_000_000
MAX_TOKENIZER_BYTES = 512_000_000
TEMPLATE_FILES = ("chat_template.jinja", "chat_template.json")


def read_config(folder: Path, name: str) -> ConfigReader:
    """Return a JSON file of the folder; raises ``FileNotFoundError`` or ``LarderError``."""
    path = folder / name
    return ConfigReader(read_object(path, MAX_CONFIG_BYTES), str(path))


def optional_config(folder: Path, name: str) -> tuple[ConfigReader, list[LarderError]]:
    """Return a JSON file that may be absent, empty then, and what is wrong with it."""
    try:
        return read_config(folder, name), []
    except FileNotFoundError:
        return ConfigReader({}, name), []
    except LarderError as error:
        return ConfigReader({}, name), [error]


def find_other_tokenizer(folder: Path) -> Path | None:
    """Return the file that has the vocabulary where there is no ``tokenizer.json``, if one has."""
    for name in OTHER_TOKENIZER_NAMES:
        if (folder / name).is_file():
            return folder / name
    found = [path for path in folder.glob(f"*{TIKTOKEN_ENDING}") if path.is_file()]
    return found[0] if len(found) == 1 else None


def tokenizer_problems(folder: Path) -> Iterable[LarderError]:
    """Yield an error if the tokenizer file is missing or plainly not one; it is not parsed here."""
    path = folder / TOKENIZER_NAME
    is_json = path.exists() or path.is_symlink()
    if not is_json:
        path = find_other_tokenizer(folder) or path
    try:
        with open_regular(path) as file:
            size_bytes = os.fstat(file.fileno()).st_size
            start = file.read(START_BYTES)
            file.seek(max(0, size_bytes - 64))
            end = file.read(64)
    except FileNotFoundError:
        yield LarderError(ErrorCode.TOKENIZER_MISSING, file=TOKENIZER_NAME)
        return
    except LarderError as error:
        yield error
        return
    except OSError as cause:
        yield unreadable(path, cause)
        return
    reason = ""
    if size_bytes > MAX_TOKENIZER_BYTES:
        reason = f"it has {size_bytes} bytes, at most {MAX_TOKENIZER_BYTES} are read"
    elif not is_json:
        reason = mistaken_for(start)
    elif not (start.lstrip().startswith(b"{") and end.rstrip().endswith(b"}")):
        reason = mistaken_for(start) or "it is not a complete JSON object"
    if reason:
        yield LarderError(ErrorCode.TOKENIZER_INVALID, file=shown(str(path)), reason=reason)


def template_problems(folder: Path, names: list[str]) -> Iterable[LarderError]:
    """Yield an error if no file says how a conversation becomes a prompt."""
    config, problems = optional_config(folder, "tokenizer_config.json")
    yield from problems
    if problems:
        return
    template = config["chat_template"]
    if not template and not any(name in names for name in TEMPLATE_FILES):
        yield LarderError(ErrorCode.CHAT_TEMPLATE_MISSING, folder=shown(str(folder)))


_RANGES: Mapping[str, tuple[float, float]] = {
    "temperature": (0.0, 5.0),
    "top_k": (0, 1 << 20),
    "top_p": (0.01, 1.0),
    "min_p": (0.0, 1.0),
    "repetition_penalty": (0.5, 5.0),
}
"""What is taken of a recommendation; anything else is as if it were not there."""


def usable_sampling(values: Mapping[str, object]) -> dict[str, float]:
    """Return those of some values, by the names of settings, that can be meant."""
    found: dict[str, float] = {}
    for name, (least, most) in _RANGES.items():
        value = values.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if least <= value <= most:
            found[name] = int(value) if name == "top_k" else float(value)
    return found


def read_recommended_sampling(folder: Path) -> SamplingSettings | None:
    """Return what ``generation_config.json`` recommends, None if it says nothing about sampling."""
    generation, _ = optional_config(folder, "generation_config.json")
    is_greedy = generation["do_sample"] is False
    found = usable_sampling(generation.values)
    if is_greedy:
        penalty = float(found.get("repetition_penalty", 1.0))
        return SamplingSettings(temperature=0.0, repetition_penalty=penalty)
    if not found and generation["do_sample"] is not True:
        return None
    return msgspec.convert({"temperature": 1.0, **found}, SamplingSettings)


def read_eos_ids(folder: Path, config: ConfigReader) -> tuple[tuple[int, ...], list[LarderError]]:
    """Return the ids that end an answer, from ``generation_config.json`` or else the config."""
    generation, problems = optional_config(folder, "generation_config.json")
    eos_ids = generation.integers("eos_token_id") or config.integers("eos_token_id")
    return eos_ids, [*problems, *generation.problems]
