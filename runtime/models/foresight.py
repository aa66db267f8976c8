"""Guessing which experts the next layer will choose, from what this layer's router sees."""

from collections.abc import Mapping

import torch

from runtime.models.base import ExpertSource, Routes


def look_ahead(
    layer: int, x: torch.Tensor, routers: Mapping[int, Routes], experts: ExpertSource
) -> None:
    """Tell what the layer after ``layer``, whose router sees ``x``, will ask for, surest first.

    A residual stream changes little from one layer to the next, so that the next router finds in a
    layer's own input nearly what it will see itself. A guess changes when experts are read, and
    never what is computed.
    """
    router = routers.get(layer + 1)
    if router is None or not experts.takes_guesses:
        return
    ids, weights = router(x)
    order = weights[0].argsort(descending=True)
    experts.guess(layer + 1, ids[0][order].tolist())
