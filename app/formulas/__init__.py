"""Formulas in LaTeX to vectors, set by a process of their own."""
