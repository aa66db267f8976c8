"""The graphics cards as torch sees them."""

from runtime.device.modules import KINDS, DeviceModule, module_of
from runtime.hardware.cards import SeenCard


def see_cards(used: str) -> list[SeenCard]:
    """Return the cards that torch can drive, none without one.

    Only of the device in use the free memory is told: asking takes memory of a card. What shares
    the memory of the processor is no card: copying experts to it would bring nothing.
    """
    cards: list[SeenCard] = []
    for kind in KINDS:
        module = module_of(kind)
        if module is None:
            continue
        for index in range(module.device_count()):
            facts = module.get_device_properties(index)
            if not getattr(facts, "is_integrated", False):
                cards.append(_card(module, f"{kind}:{index}", facts, used))
    return cards


def _card(module: DeviceModule, device: str, facts: object, used: str) -> SeenCard:
    free_bytes = module.mem_get_info(device)[0] if device == used else None
    name, total_bytes = getattr(facts, "name", ""), getattr(facts, "total_memory", 0)
    return SeenCard(device, str(name), int(total_bytes), free_bytes)
