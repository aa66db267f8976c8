"""Expert maps with the shape of real use: few experts often, most of them rarely."""

import random

from runtime.protocol.telemetry import ExpertMap


def some_expert_map(
    num_layers: int = 48,
    num_experts: int = 128,
    *,
    vram: float = 0.2,
    ram: float = 0.45,
    seed: int = 1,
) -> ExpertMap:
    """Return a map in which the most used experts of each layer lie in VRAM, the next in RAM."""
    draw = random.Random(seed)
    use, tier, bits, hits = bytearray(), bytearray(), bytearray(), bytearray()
    for _ in range(num_layers):
        levels = [
            min(255, max(0, round(170 * (1 - rank / num_experts) ** 1.5 + draw.gauss(0, 6))))
            for rank in range(num_experts)
        ]
        shift = draw.gauss(0, 0.06)
        num_vram = round(num_experts * min(1.0, max(0.0, vram + shift)))
        num_ram = round(num_experts * min(1.0, max(0.0, ram + draw.gauss(0, 0.05))))
        places = [
            0 if rank < num_vram else 1 if rank < num_vram + num_ram else 2
            for rank in range(num_experts)
        ]
        order = list(range(num_experts))
        draw.shuffle(order)
        row_use, row_tier = bytearray(num_experts), bytearray(num_experts)
        for rank, expert in enumerate(order):
            row_use[expert] = levels[rank]
            row_tier[expert] = places[rank]
        in_tier = [
            sum(levels[rank] for rank in range(num_experts) if places[rank] == tier_index)
            for tier_index in range(3)
        ]
        hits += bytes(round(255 * part / (sum(in_tier) or 1)) for part in in_tier)
        use += row_use
        tier += row_tier
        bits += bytes([4 if place == 2 else 8 for place in row_tier])
    return ExpertMap(
        num_layers=num_layers,
        num_experts=num_experts,
        use=bytes(use),
        tier=bytes(tier),
        bits=bytes(bits),
        layer_hits=bytes(hits),
    )
