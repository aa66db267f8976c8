"""Which experts of a model were resident when it was used last, so that they come first again."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from runtime.hardware.kept_file import kept_text, path_of_model, replace_file

Order = Mapping[int, Sequence[int]]
"""Experts by MoE layer, the most used first."""


class _LastUse(msgspec.Struct, forbid_unknown_fields=True):
    fingerprint: str
    num_experts: int
    layers: dict[int, list[int]]


class LastUses:
    """One small file for each model in a folder, named by the model's fingerprint.

    A file that is missing, damaged or of another model counts as nothing: it only says what is read
    first. What cannot be written is told in the log.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, fingerprint: str, num_experts: int) -> Order:
        """Return the experts of the last use, nothing if it is not known."""
        try:
            found = msgspec.json.decode(
                kept_text(path_of_model(self._folder, fingerprint)), type=_LastUse
            )
        except (ValueError, RecursionError):
            return {}
        if (found.fingerprint, found.num_experts) != (fingerprint, num_experts):
            return {}
        for experts in found.layers.values():
            if len(set(experts)) < len(experts) or not all(0 <= x < num_experts for x in experts):
                return {}
        return found.layers

    def write(self, fingerprint: str, num_experts: int, order: Order) -> None:
        """Keep the experts of a use that ends."""
        path = path_of_model(self._folder, fingerprint)
        layers = {layer: list(experts) for layer, experts in order.items()}
        content = msgspec.json.encode(_LastUse(fingerprint, num_experts, layers)).decode()
        replace_file(path, content, "experts of the last use")
