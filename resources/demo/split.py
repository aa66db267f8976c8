"""Exact split of a dense feed-forward block into a shared expert and routed experts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from resources.demo.failure import DemoBuildError
from resources.demo.rounding import FloatArray

SHARED = 255
"""Mark, in an assignment, of a channel that belongs to the shared expert."""

SHARED_GATE_COMPENSATION = np.float32(2.0)
"""A shared-expert gate of zero weighs its expert by sigmoid(0) = 1/2."""

ROUTER_SCALE = np.float32(2.0**-19)
"""Factor that makes router logits so small that the softmax is flat but keeps their order.

Derived routers give logits of standard deviation about 1. A larger factor would lean the sum over
all experts away from the dense block; a smaller one would let more experts tie in float32.
"""


@dataclass(frozen=True)
class SplitShape:
    """How many experts of which width a feed-forward block is split into."""

    num_experts: int
    expert_size: int
    shared_size: int
    top_k: int

    def check(self, feed_forward_size: int) -> None:
        """Raise DemoBuildError when the split cannot be exact."""
        if self.num_experts & (self.num_experts - 1):
            raise DemoBuildError(
                "The number of experts is no power of two, so scaling would round."
            )
        if self.shared_size + self.num_experts * self.expert_size != feed_forward_size:
            raise DemoBuildError("The experts do not add up to the width of the dense model.")


def channels_by_expert(
    assignment: npt.NDArray[np.uint8], shape: SplitShape
) -> tuple[npt.NDArray[np.intp], list[npt.NDArray[np.intp]]]:
    """Return the shared expert's channels and every routed expert's, each in rising order."""
    shared = np.flatnonzero(assignment == SHARED)
    routed = [np.flatnonzero(assignment == expert) for expert in range(shape.num_experts)]
    if len(shared) != shape.shared_size or any(len(own) != shape.expert_size for own in routed):
        raise DemoBuildError("The committed assignment does not fit the split of the model.")
    return shared, routed


def split_feed_forward(
    gate: FloatArray,
    up: FloatArray,
    down: FloatArray,
    assignment: npt.NDArray[np.uint8],
    router: FloatArray,
    shape: SplitShape,
) -> dict[str, FloatArray]:
    """Return the block's tensors by their name inside ``mlp.``.

    The dense weights must be rounded already to what is stored: all that is done to them here is
    taking rows and columns and multiplying by powers of two, so with every expert chosen the sum
    is the dense block's.
    """
    shape.check(gate.shape[0])
    shared, routed = channels_by_expert(assignment, shape)
    tensors = {
        "gate.weight": router * ROUTER_SCALE,
        "shared_expert.gate_proj.weight": gate[shared],
        "shared_expert.up_proj.weight": up[shared],
        "shared_expert.down_proj.weight": down[:, shared] * SHARED_GATE_COMPENSATION,
        "shared_expert_gate.weight": np.zeros((1, gate.shape[1]), np.float32),
    }
    for expert, own in enumerate(routed):
        prefix = f"experts.{expert}."
        tensors[prefix + "gate_proj.weight"] = gate[own]
        tensors[prefix + "up_proj.weight"] = up[own]
        # The flat softmax weighs every expert by 1 / num_experts.
        tensors[prefix + "down_proj.weight"] = down[:, own] * np.float32(shape.num_experts)
    return tensors
