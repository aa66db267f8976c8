"""A stand-in for the engine for graphics cards: two packages, one of which names the card."""

import hashlib
import zipfile
from pathlib import Path

from runtime.protocol.engine_messages import EnginePart

TORCH = """
from helper import CARD
__version__ = "2.13.0+cu130"
class cuda:
    is_available = staticmethod(lambda: bool(CARD))
    get_device_name = staticmethod(lambda _number: CARD)
class ones:
    def __init__(self, number, device): self.number = number
    def __mul__(self, other): self.number *= other; return self
    def sum(self): return self.number
"""


def wheel(path: Path, files: dict[str, str]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)


def write_engine(folder: Path, card: str) -> None:
    """Put the packages into a folder; an empty card is none."""
    wheel(folder / "torch.whl", {"torch/__init__.py": TORCH, "torch-2.data/scripts/x": "no"})
    wheel(folder / "helper.whl", {"helper-1.data/purelib/helper.py": f"CARD = {card!r}"})


def engine_parts(folder: Path, address: str) -> list[EnginePart]:
    """The packages of a folder as a program would be told of them."""
    return [
        EnginePart(
            file=path.name,
            url=f"{address}/{path.name}",
            size_bytes=path.stat().st_size,
            sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
        )
        for path in sorted(folder.glob("*.whl"))
    ]
