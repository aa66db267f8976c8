"""Benchmarks are scripts beside each other: their folder is put on the path here."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))
