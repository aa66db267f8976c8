"""What a person reads for errors of a hub and of downloads; part of ``sentences``."""

from collections.abc import Mapping
from types import MappingProxyType

from runtime.protocol.errors import ErrorCode

HUB_TEMPLATES: Mapping[ErrorCode, str] = MappingProxyType(
    {
        ErrorCode.HUB_OFFLINE: (
            "This program was started with HF_HUB_OFFLINE set, so it asks no hub. Start it without"
            " that variable to search and download."
        ),
        ErrorCode.HUB_UNREACHABLE: (
            "{host} cannot be reached: {reason}. Check the connection and the hub's address in the"
            " settings, then try again; what was downloaded is kept."
        ),
        ErrorCode.HUB_ANSWER_INVALID: (
            "{host} answered with something that cannot be used: {reason}. Check the hub's address"
            " in the settings, or try again later."
        ),
        ErrorCode.HUB_MODEL_MISSING: (
            "{host} has no {model}, or shows it only to some. Check the name; if it is private, set"
            " HF_TOKEN to a token that may read it."
        ),
        ErrorCode.HUB_MODEL_GATED: (
            "The owner of {model} gives its files only to those who asked. Start this program with"
            " HF_TOKEN set to your token once you may have them, which its page at {host} tells."
        ),
        ErrorCode.HUB_MODEL_UNUSABLE: (
            "{model} cannot be used: {reason}. Choose a version of it with GGUF files, or with"
            " config.json and safetensors files."
        ),
        ErrorCode.DOWNLOAD_MISMATCHED: (
            "{file} arrived twice with other bytes than {host} names, and was thrown away. Try"
            " again later; if it happens again, have the RAM and the drive tested."
        ),
        ErrorCode.DOWNLOAD_PLACE_TAKEN: (
            "There is something else in {folder} already. Rename that folder, or choose"
            " another folder for downloads in the settings."
        ),
        ErrorCode.DOWNLOAD_BUSY: (
            "{model} is being downloaded by another window or terminal. Wait until that is done."
        ),
        ErrorCode.DOWNLOAD_WRITE_FAILED: (
            "Writing to {folder} failed: {reason}. Check that the drive is connected and sound,"
            " then resume; what was downloaded is kept."
        ),
        ErrorCode.UPDATE_UNREACHABLE: (
            "{host} cannot be reached: {reason}. Larder works as before. Try again once there is a"
            " connection."
        ),
        ErrorCode.UPDATE_INVALID: (
            "What {host} says of newer versions cannot be used: {reason}. Nothing was changed. Try"
            " again later."
        ),
        ErrorCode.UPDATE_UNSIGNED: (
            "What {host} says of newer versions is not signed by those who made this program, so"
            " nothing was downloaded. Download newer versions by hand from where you got this one."
        ),
        ErrorCode.ENGINE_PARTS_UNREACHABLE: (
            "The engine for graphics cards could not be had from {host}: {reason}. Larder computes"
            " on the processor as before. Try again later; what was downloaded is kept."
        ),
        ErrorCode.ENGINE_PARTS_UNUSABLE: (
            "The engine for graphics cards was tried and does not work here: {reason}. It is not"
            " used, and Larder computes on the processor as before. Install the card's newest"
            " driver, then try again."
        ),
    }
)
