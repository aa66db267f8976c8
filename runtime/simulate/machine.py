"""What a replay needs to know of a machine, and where that comes from."""

import dataclasses

from runtime.plan.cost import rates_of, weights_per_s
from runtime.plan.cost_constants import DEFAULT_COSTS, CostConstants
from runtime.protocol.machine import MachineReport
from runtime.protocol.values import WeightFormat
from runtime.simulate.resources import AffineCost


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MachineCosts:
    """Costs of each resource; bytes are those of an expert, of a layer's dense part, of a row."""

    drive: AffineCost
    drive_depth: int = 4
    expert: AffineCost
    """The processor computes one expert of a token."""
    dense: AffineCost
    """The processor, or the device if there is one, computes the rest of a layer."""
    link: AffineCost | None = None
    """A hidden state goes to the device or back; None without a device."""
    token_s: float = 0.0
    """Further time of a token, between its layers and those of the next."""


def costs_of(
    machine: MachineReport, folder: str = "", constants: CostConstants = DEFAULT_COSTS
) -> MachineCosts:
    """Return the costs of a machine, measured ones where it has them, else those of the forecast.

    Experts are taken to be stored in 4 bits, which decides how much of the plain rate of reading
    RAM the kernels reach.
    """
    device = next((device for device in machine.devices if device.is_used), None)
    rates = rates_of(machine, folder, device, constants)
    compute_per_s = weights_per_s(rates, WeightFormat.Q4_G32, constants)
    dense_per_s, layer_s, link = compute_per_s, constants.layer_s, None
    if rates.device is not None:
        link = AffineCost(0.0, 1 / rates.device.link_bytes_per_s)
        layer_s += constants.device_layer_s
        if rates.device.read_bytes_per_s is not None:
            dense_per_s = rates.device.read_bytes_per_s * constants.device_efficiency
    return MachineCosts(
        drive=AffineCost(constants.miss_s, 1 / rates.drive_bytes_per_s),
        expert=AffineCost(0.0, 1 / compute_per_s),
        dense=AffineCost(layer_s, 1 / dense_per_s),
        link=link,
        token_s=constants.token_s,
    )
