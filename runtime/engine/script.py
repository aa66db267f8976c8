"""What the scripted engine does, as data."""

import dataclasses
import enum
from pathlib import Path

import msgspec

from runtime.errors import LarderError
from runtime.protocol.errors import ErrorCode

_PARIS = """\
The capital of France is **Paris**. It lies on the Seine, in the north of the country.

| fact | value |
|---|---|
| river | Seine |
| people | about 2 million |

```python
print("Bonjour, Paris")
```
"""
_LARDER = """\
A larder is a cool room for food. This answer is *scripted*: no model was asked, and every figure
under it is made up.

1. Hot things stand on the counter.
2. Warm ones are in the larder.
3. Cold ones are in the cellar: naïve, café, 日本語, 🥐.
"""


TOP_K = 8
"""Experts of each layer that the made-up model uses for a token, where it has so many."""


class Pieces(enum.StrEnum):
    """How an answer is cut into tokens."""

    WORDS = "words"
    CHARACTERS = "characters"
    LINES = "lines"


class FaultKind(enum.StrEnum):
    """What goes wrong."""

    CRASH = "crash"
    """The process ends at once."""
    HANG = "hang"
    """The engine never comes back, and cancelling does not help."""
    FAIL = "fail"
    """A sentence for the person: the drive could not be read."""
    BUG = "bug"
    """An unexpected exception."""


class FaultPlace(enum.StrEnum):
    """Where it goes wrong."""

    LOAD = "load"
    PREFILL = "prefill"
    DECODE = "decode"


@dataclasses.dataclass(frozen=True, slots=True)
class Fault:
    """Something that goes wrong after a number of steps or tokens."""

    kind: FaultKind
    place: FaultPlace = FaultPlace.DECODE
    after: int = 0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """Answers, speeds and faults; a file holds the same fields as JSON."""

    answers: tuple[str, ...] = (_PARIS, _LARDER)
    """Given one after the other, from the first again after the last."""
    pieces: Pieces = Pieces.WORDS
    decode_tokens_per_s: float = 30.0
    """0 is as fast as possible, also for the next."""
    prompt_tokens_per_s: float = 2000.0
    load_s: float = 0.5
    load_steps: int = 20
    prepare_s: float = 1.0
    context_tokens: int = 4096
    num_layers: int = 30
    num_experts: int = 32
    """Experts of each layer of the made-up model."""
    device_gib: float = 1.0
    """Memory of the made-up accelerator; 0: there is none."""
    fault: Fault | None = None


def read_script(path: Path) -> Script:
    """Return the script of a JSON file; raise ``SETTING_INVALID`` if it is none."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Script)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise LarderError(
            ErrorCode.SETTING_INVALID,
            detail=str(error),
            name="script",
            found=str(path),
            expected="a JSON file with the fields of a script",
        ) from error
