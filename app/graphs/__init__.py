"""Curves and maps of measurements; points are made in pure code, drawn at a fixed rate."""
