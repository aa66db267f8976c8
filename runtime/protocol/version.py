"""The version of the protocol and the limits of one frame."""

from typing import Final

PROTOCOL_VERSION: Final = 1
"""Raised by one with every change that an older peer could misread."""

MAX_FRAME_BYTES: Final = 16 * 1024 * 1024
"""Largest payload of one frame; a longer one is refused by both sides before it is allocated."""
