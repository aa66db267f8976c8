"""What tensors are called in checkpoints that hold more than a language model."""

import dataclasses

_BODY, _HEAD = "model", "lm_head"


@dataclasses.dataclass(frozen=True, slots=True)
class Naming:
    """What stands in names instead of ``model`` and ``lm_head``, with which they begin alone."""

    body: str = _BODY
    head: str = _HEAD

    def published(self, name: str) -> str:
        """Return what a checkpoint calls the tensor that a language model alone calls ``name``."""
        first, dot, rest = name.partition(".")
        begins = {_BODY: self.body, _HEAD: self.head}
        return f"{begins.get(first, first)}{dot}{rest}"
