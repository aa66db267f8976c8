"""Where the scripted engine's made-up experts lie and how often they are used."""

import math
import random

from runtime.protocol.plan import PlacementPlan
from runtime.protocol.telemetry import ExpertMap
from runtime.spec.tensors import STORED_BITS

_VRAM, _RAM, _DRIVE = range(3)
_ONE_USE_MORE = bytes(
    min(255, math.ceil(16 * math.log2(2 ** (value / 16) + 1) - 1e-9)) for value in range(256)
)
_A_LITTLE_LESS = bytes(max(0, value - 1) for value in range(256))
_SAMPLES_PER_FADE = 12
_HITS_KEPT = 0.98
_LAYERS_PER_MOVE = 8
"""Of so many layers one exchanges experts between tiers with each sample."""
_SWAPS_PER_SAMPLE = 2


class ScriptedExperts:
    """A router that likes some experts better, and whose likings drift.

    The use of an expert is kept on the log scale of ``ExpertMap``, so that fading is a subtraction.

    Threads: one thread at a time.
    """

    def __init__(self, num_layers: int, num_experts: int, top_k: int) -> None:
        self._num_layers = num_layers
        self._num_experts = num_experts
        self._top_k = top_k
        self._random = random.Random(0)  # noqa: S311 - for show, and the same each time
        self._liked = [
            self._random.sample(range(num_experts), num_experts) for _ in range(num_layers)
        ]
        self._use = bytearray(num_layers * num_experts)
        self._tier = bytearray(num_layers * num_experts)
        self._hits = [[0.0, 0.0, 0.0] for _ in range(num_layers)]
        self._placed_for: PlacementPlan | None = None
        self._num_samples = 0

    def step(self, num_tokens: int, plan: PlacementPlan) -> ExpertMap:
        """Let some tokens pass under a plan; return the complete map afterwards."""
        self._num_samples += 1
        if self._num_samples % _SAMPLES_PER_FADE == 0:
            self._use = self._use.translate(_A_LITTLE_LESS)
        if num_tokens:
            for layer in range(self._num_layers):
                self._route(layer)
        if plan is not self._placed_for:
            self._placed_for = plan
            for layer in range(self._num_layers):
                self._place(layer, plan)
        elif num_tokens:
            turn = self._num_samples % _LAYERS_PER_MOVE
            for layer in range(turn, self._num_layers, _LAYERS_PER_MOVE):
                self._place(layer, plan)
        num_all = self._num_layers * self._num_experts
        return ExpertMap(
            num_layers=self._num_layers,
            num_experts=self._num_experts,
            use=bytes(self._use),
            tier=bytes(self._tier),
            bits=bytes([STORED_BITS[plan.expert_format]]) * num_all,
            layer_hits=bytes(
                round(255 * number / (sum(hits) or 1.0)) for hits in self._hits for number in hits
            ),
        )

    def _route(self, layer: int) -> None:
        """Use ``top_k`` experts, mostly liked ones; then let the likings drift."""
        liked = self._liked[layer]
        self._hits[layer] = [_HITS_KEPT * number for number in self._hits[layer]]
        start = layer * self._num_experts
        for _ in range(self._top_k):
            at = start + liked[int(self._num_experts * self._random.random() ** 3)]
            self._use[at] = _ONE_USE_MORE[self._use[at]]
            if self._placed_for is not None:
                self._hits[layer][self._tier[at]] += 1.0
        for _ in range(_SWAPS_PER_SAMPLE):
            one, other = (int(self._num_experts * self._random.random()) for _ in range(2))
            liked[one], liked[other] = liked[other], liked[one]

    def _place(self, layer: int, plan: PlacementPlan) -> None:
        """Put the most used experts into VRAM, the next into RAM, the others on the drive."""
        start = layer * self._num_experts
        use = self._use[start : start + self._num_experts]
        by_use = sorted(range(self._num_experts), key=use.__getitem__, reverse=True)
        in_vram = plan.vram_slots_per_layer[layer] if plan.vram_slots_per_layer else 0
        in_memory = in_vram + plan.slots_per_layer[layer]
        for rank, expert in enumerate(by_use):
            tier = _VRAM if rank < in_vram else _RAM if rank < in_memory else _DRIVE
            self._tier[start + expert] = tier
