"""Words of the first start."""

from app.text.phrases import DOT
from app.text.translate import tr, trn
from app.text.units import size
from app.text.words import Word
from runtime.protocol.machine import DriveReport, MachineReport


class WelcomeWords:
    """Fixed words."""

    NAME = Word("First start")
    SKIP = Word("Skip")
    BACK = Word("Back")
    NEXT = Word("Next")
    WHAT_TITLE = Word("Models larger than your memory, on this PC")
    WHAT_TEXT = Word(
        "Larder runs Mixture-of-Experts language models. Such a model is made of many experts and "
        "asks only a few of them for each word, so what is used most lies where it is fast:"
    )
    WHAT_VRAM = Word("VRAM, the memory of the graphics card, holds what is used all the time")
    WHAT_RAM = Word("RAM holds what is used often")
    WHAT_DRIVE = Word("the drive holds the rest, which is read when it is needed")
    WHAT_END = Word("Nothing you write leaves this PC.")
    PC_TITLE = Word("Your PC")
    PC_TEXT = Word("How fast a model answers here follows from these, and is told before it loads.")
    PROCESSOR = Word("Processor")
    RAM = Word("RAM")
    CARD = Word("Graphics card")
    DRIVE = Word("Drive")
    MEASURING = Word("measuring…")
    MEASURED = Word("All of it is measured.")
    NO_CARD = Word("none that can be used: the processor computes alone")
    NO_RATE = Word("its speed is measured with the first model that lies on it")
    FAILED = Word("It could not be measured now. The first plan of a model tries again.")
    MODEL_TITLE = Word("Your first model")
    DEMO_TEXT = Word(
        "The demo model comes with Larder. It is small and knows little, and shows how everything "
        "works."
    )
    OWN_TEXT = Word(
        "Or take a model of yours: any folder with .safetensors files, or a .gguf file. You see "
        "whether it runs and how fast before anything is loaded."
    )
    TAKE_DEMO = Word("Talk to the demo model")
    CHOOSE = Word("Choose a folder…")
    DISCOVER = Word("Find a model to download")


def step_line(step: int, num_steps: int) -> str:
    """For example ``1 of 3``."""
    return tr("{n} of {all}").format(n=step + 1, all=num_steps)


def processor_line(machine: MachineReport) -> str:
    """Name the processor and its cores."""
    number = machine.num_physical_cores
    cores = trn("{count} core", "{count} cores", number).format(count=number)
    return DOT.join((machine.cpu_name, cores))


def ram_line(machine: MachineReport) -> str:
    """Say how much there is, how much of it is free, and how fast it is read if known."""
    most = machine.ram_limit or machine.ram_total
    parts = [
        size(most.value),
        tr("{size} free").format(size=size(machine.ram_available.value)),
    ]
    if machine.ram_read_bytes_per_s is not None:
        parts.append(_rate(machine.ram_read_bytes_per_s.value))
    return DOT.join(parts)


def card_line(machine: MachineReport) -> str:
    """Name the card that is used, with its memory."""
    device = next((each for each in machine.devices if each.is_used), None)
    if device is None:
        return WelcomeWords.NO_CARD
    return DOT.join((device.name, size(device.total_bytes)))


def drive_line(drive: DriveReport | None) -> str:
    """Say what is free on the drive and how fast it is read."""
    if drive is None:
        return WelcomeWords.NO_RATE
    free = tr("{size} free").format(size=size(drive.free_bytes))
    rate = drive.read_bytes_per_s
    return DOT.join((free, _rate(rate.value) if rate is not None else WelcomeWords.NO_RATE))


def _rate(bytes_per_s: float) -> str:
    return tr("reads {rate} GB/s").format(rate=f"{bytes_per_s / 1e9:.1f}")
