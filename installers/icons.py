"""The program's icon in the forms that systems want, drawn from the one SVG."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

from installers.description import RecipeError

PNG_SIZES = (16, 32, 48, 64, 128, 256, 512)
_ICO_SIZES = (16, 32, 48, 64, 128, 256)
_ICNS_KINDS = {16: b"icp4", 32: b"icp5", 64: b"icp6", 128: b"ic07", 256: b"ic08", 512: b"ic09"}
# In a process of its own, so that the builder needs no screen and stays free of Qt.
_DRAW = """
import sys
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QImage, QPainter
from PySide6.QtSvg import QSvgRenderer
application = QGuiApplication([])
drawing = QSvgRenderer(sys.argv[1])
assert drawing.isValid()
for size in map(int, sys.argv[3:]):
    image = QImage(size, size, QImage.Format.Format_ARGB32)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    drawing.render(painter)
    painter.end()
    assert image.save(f"{sys.argv[2]}/{size}.png")
"""


def draw(svg: Path, folder: Path) -> dict[int, Path]:
    """Write the icon as PNG in every size; return the files by their edge in pixels."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-P", "-c", _DRAW, str(svg), str(folder), *map(str, PNG_SIZES)]
    done = subprocess.run(
        command,
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RecipeError(f"{svg.name} could not be drawn: {done.stderr.strip()[-300:]}")
    return {size: folder / f"{size}.png" for size in PNG_SIZES}


def ico(pictures: dict[int, Path]) -> bytes:
    """Return a Windows icon that holds PNG pictures."""
    bodies = {size: pictures[size].read_bytes() for size in _ICO_SIZES}
    offset = 6 + 16 * len(bodies)
    entries = b""
    for size, body in bodies.items():
        edge = size % 256  # 256 is written as 0
        entries += struct.pack("<BBBBHHII", edge, edge, 0, 0, 1, 32, len(body), offset)
        offset += len(body)
    return struct.pack("<HHH", 0, 1, len(bodies)) + entries + b"".join(bodies.values())


def icns(pictures: dict[int, Path]) -> bytes:
    """Return a macOS icon that holds PNG pictures."""
    parts = b""
    for size, kind in _ICNS_KINDS.items():
        body = pictures[size].read_bytes()
        parts += kind + struct.pack(">I", len(body) + 8) + body
    return b"icns" + struct.pack(">I", len(parts) + 8) + parts
