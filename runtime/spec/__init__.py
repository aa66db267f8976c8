"""Frozen value types that stay inside the runtime."""
