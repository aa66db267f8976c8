"""The language that the window and the runtime speak: frames, messages, and the values they carry.

This package depends on the standard library and msgspec only, so that both processes may import it.
"""
