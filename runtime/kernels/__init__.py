"""Arithmetic on weights where they lie: native code, and the torch reference that defines it."""
