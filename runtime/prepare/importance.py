"""How much the error of each column counts: as much as what a text multiplied it with."""

import dataclasses
import hashlib

import numpy as np

from runtime.prepare.calibration import Calibration, Floats
from runtime.spec.model import ModelSpec
from runtime.spec.tensors import ExpertId, ExpertPart

VERSION = 1
"""Raised when the same calibration is heeded in another way."""
_PRIOR_ROWS = 8
"""An expert that was used for fewer tokens counts nearly as if all its columns were alike."""
_LEAST = 0.02
"""Least importance of a column, the mean being 1: texts differ."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class CalibratedImportance:
    """The importance of columns as a calibration has it."""

    found: Calibration
    spec: ModelSpec

    @property
    def identity(self) -> str:
        """A name that two different ones never share."""
        digest = hashlib.sha256(f"{VERSION}".encode())
        arrays = (self.found.inputs, self.found.hidden, *self.found.dense.values())
        for array in arrays:
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()[:32]

    def of_expert(self, expert: ExpertId, part: ExpertPart) -> Floats:
        """Return that of a matrix of an expert, the mean being about 1."""
        layer = self.spec.moe_layers.index(expert.layer)
        if part is not ExpertPart.DOWN:
            return normal(self.found.inputs[layer])
        known = float(self.found.uses[layer, expert.expert])
        own = normal(self.found.hidden[layer, expert.expert])
        return ((own * known + _PRIOR_ROWS) / (known + _PRIOR_ROWS)).astype(np.float32)

    def of_dense(self, name: str) -> Floats | None:
        """Return that of a dense matrix; None of one whose rows are looked up."""
        sums = self.found.dense.get(name)
        return None if sums is None else normal(sums[:-1])


def normal(sums: np.ndarray) -> Floats:
    """Return importances with a mean of about 1; all the same where nothing was seen."""
    mean = float(sums.mean())
    if not mean > 0:
        return np.ones(len(sums), np.float32)
    return np.maximum(sums / mean, _LEAST).astype(np.float32)
