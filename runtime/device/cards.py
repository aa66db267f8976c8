"""The graphics cards as torch sees them."""

import torch

from runtime.hardware.cards import SeenCard


def see_cards(used: str) -> list[SeenCard]:
    """Return the cards that torch can drive, none without one.

    Only of the device in use the free memory is told: asking takes memory of a card.
    """
    if not torch.cuda.is_available():
        return []
    return [_card(index, used) for index in range(torch.cuda.device_count())]


def _card(index: int, used: str) -> SeenCard:
    device = f"cuda:{index}"
    facts = torch.cuda.get_device_properties(index)
    free_bytes = torch.cuda.mem_get_info(index)[0] if device == used else None
    return SeenCard(device, str(facts.name), int(facts.total_memory), free_bytes)
