"""What a model did with a text: how often experts were used, and how large their numbers were.

It is measured once (``runtime.generate.calibrating``), kept in one file and read when a mix of
formats is chosen. All sums are over the rows, that is tokens, of the text; each counts by 1 by the
square of the stream that enters its layer and, of matrices whose results are added to it, of what
they add.
"""

import dataclasses
import json
import math
import os
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from runtime.prepare.disk import disk_error, replacing
from runtime.prepare.place import safe_name
from runtime.protocol.messages import PreparePhase
from runtime.protocol.model import ModelReport

VERSION = 5
CALIBRATION_ENDING = ".calibration.npz"
BLOCK_ENDS = ("o_proj.", "down_proj.", "out_proj.", "dense.")
"""Dense matrices that give what a block adds to the stream."""
_DENSE = "dense/"
_MAX_FILE_BYTES = 8 << 30
_RECORD_BYTES = 512
"""At most what a file takes for an array beside its numbers: headers, and its name twice."""
_UNREADABLE = (
    *(OSError, ValueError, KeyError, TypeError, OverflowError, EOFError, zipfile.BadZipFile),
    # One wrong bit makes a file of another method of packing, or a locked one.
    RuntimeError,
)
Floats = npt.NDArray[np.float32]
Sums = npt.NDArray[np.float64]
Counts = npt.NDArray[np.uint64]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Identity:
    """What was calibrated with what; a file of another identity is of no use."""

    fingerprint: str
    """Of the model."""
    text: str
    """Checksum of the token ids."""
    total_tokens: int


@dataclasses.dataclass(frozen=True, slots=True)
class CalibrationStep:
    """How far a calibration is: tokens that were read, or groups that were tried."""

    phase: PreparePhase
    done: int
    total: int
    per_s: float
    """How many of what is left go in a second; 0 while that is not known."""

    @property
    def seconds_left(self) -> float | None:
        """What is left of this phase; None while that is not known."""
        return (self.total - self.done) / self.per_s if self.per_s > 0 else None


CalibrationReport = Callable[[CalibrationStep], None]


@dataclasses.dataclass(slots=True, eq=False)
class Calibration:
    """Sums that grow while a text is read; complete when every token was."""

    identity: Identity
    num_tokens: int
    uses: Counts
    """Rows that chose each expert: ``[MoE layers, experts]``."""
    inputs: Sums
    """Squares of what experts are given, by channel: ``[MoE layers, hidden]``."""
    hidden: Floats
    """Squares of what the last matrix of each expert is given, by channel, times the square of the
    router's weight: ``[MoE layers, experts, width]``."""
    outputs: Sums
    """Squares of what each expert adds to the stream: ``[MoE layers, experts]``."""
    stream: Sums
    """Rows whose stream entered each layer: ``[layers]``, so that outputs by it are parts of the
    stream."""
    dense: dict[str, Sums]
    """Of each dense matrix the squares of what it is given, by channel, and in the last place of
    what it gives."""
    trials: dict[str, float]
    """Of each group of matrices (``sensitivity``) how far answers moved when it was rounded: the
    mean KL divergence of next tokens, in nats."""
    is_tried: bool = False
    """Whether every group was."""

    @property
    def is_read(self) -> bool:
        """Whether the whole text was read."""
        return self.num_tokens == self.identity.total_tokens

    @property
    def is_complete(self) -> bool:
        """Whether the whole text was read and every group tried."""
        return self.is_read and self.is_tried


def calibration_path(data_folder: str | os.PathLike[str], report: ModelReport) -> Path:
    """Return where the calibration of a model is kept."""
    name = f"{safe_name(report.name)}-{report.fingerprint[:12]}{CALIBRATION_ENDING}"
    return Path(data_folder) / "calibrations" / name


def write_calibration(path: Path, found: Calibration) -> None:
    """Write the file, whole or not at all; what was kept before stays there until then.

    Raises ``DISK_FULL``, ``DISK_NOT_WRITABLE`` or ``COPY_WRITE_FAILED``.
    """
    told = {
        "version": VERSION,
        **dataclasses.asdict(found.identity),
        "done": found.num_tokens,
        "trials": found.trials,
        "is_tried": found.is_tried,
    }
    arrays: dict[str, npt.NDArray[Any]] = {
        "told": np.frombuffer(json.dumps(told).encode(), np.uint8),
        "uses": found.uses,
        "inputs": found.inputs,
        "hidden": found.hidden,
        "outputs": found.outputs,
        "stream": found.stream,
        **{_DENSE + name: sums for name, sums in found.dense.items()},
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            np.savez(file, allow_pickle=False, **arrays)
    except OSError as cause:
        needed_bytes = sum(each.nbytes + _RECORD_BYTES for each in arrays.values())
        kept_bytes = path.stat().st_size if path.exists() else 0
        raise disk_error(path.parent, cause, needed_bytes, kept_bytes) from cause


def read_calibration(path: Path, fingerprint: str) -> Calibration | None:
    """Return what was kept of a model; None where there is nothing that could be used.

    A file that is damaged, of another version or of another model is none.
    """
    try:
        if path.stat().st_size > _MAX_FILE_BYTES:
            return None
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            found = _calibration_of({name: arrays[name] for name in arrays.files})
    except _UNREADABLE:
        return None
    return found if found.identity.fingerprint == fingerprint else None


def _calibration_of(arrays: dict[str, npt.NDArray[Any]]) -> Calibration:
    told = json.loads(arrays["told"].tobytes())
    if told["version"] != VERSION:
        raise ValueError(f"version {told['version']}")
    identity = Identity(str(told["fingerprint"]), str(told["text"]), int(told["total_tokens"]))
    found = Calibration(
        identity=identity,
        num_tokens=int(told["done"]),
        uses=arrays["uses"].astype(np.uint64),
        inputs=arrays["inputs"].astype(np.float64),
        hidden=arrays["hidden"].astype(np.float32),
        outputs=arrays["outputs"].astype(np.float64),
        stream=arrays["stream"].astype(np.float64),
        dense={
            name.removeprefix(_DENSE): sums.astype(np.float64)
            for name, sums in arrays.items()
            if name.startswith(_DENSE)
        },
        trials={str(name): float(kl) for name, kl in dict(told["trials"]).items()},
        is_tried=bool(told["is_tried"]),
    )
    num_layers, num_experts = found.uses.shape
    fits = (
        0 <= found.num_tokens <= identity.total_tokens
        and found.outputs.shape == (num_layers, num_experts)
        and found.inputs.ndim == 2
        and len(found.inputs) == num_layers
        and found.hidden.shape[:2] == (num_layers, num_experts)
        and found.stream.ndim == 1
        and all(sums.ndim == 1 for sums in found.dense.values())
        and all(np.isfinite(sums).all() for sums in _sums(found))
        and all(map(math.isfinite, found.trials.values()))
    )
    if not fits:
        raise ValueError("arrays that do not belong together")
    return found


def _sums(found: Calibration) -> Iterable[npt.NDArray[Any]]:
    """Return all sums that were kept."""
    return (found.inputs, found.hidden, found.outputs, found.stream, *found.dense.values())
