"""The budgets of the command line."""

import argparse

from runtime.cli.client import Client
from runtime.cli.screen import gib_bytes
from runtime.protocol.messages import DescribeMachine, MachineDescribed
from runtime.protocol.values import Budgets

_USUAL_DEVICE = "cuda:0"
"""Named where plans use no device, so that the planner says which one is missing."""


def read_budgets(client: Client, options: argparse.Namespace) -> Budgets:
    """Return the budgets of the command line; the VRAM one is for the device that plans use."""
    ram_bytes = None if options.ram is None else gib_bytes(options.ram)
    if options.vram is None:
        return Budgets(ram_bytes=ram_bytes)
    machine = client.ask(DescribeMachine(request_id=client.new_id()), MachineDescribed).machine
    used = next((each for each in machine.devices if each.is_used), None)
    device = used.device if used is not None else _USUAL_DEVICE
    return Budgets(ram_bytes=ram_bytes, vram_bytes={device: gib_bytes(options.vram)})
