"""Which hub is asked, and what is sent along; the hub's own variables are honoured."""

import os
import urllib.parse
from collections.abc import Mapping

from runtime.errors import LarderError
from runtime.protocol.errors import ErrorCode

_OFFLINE_VARIABLES = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
_YES = frozenset({"1", "on", "yes", "true"})


def hub_address(endpoint: str, environment: Mapping[str, str] | None = None) -> str:
    """Return the address of the hub, without a slash at its end.

    That is ``endpoint``; else what ``HF_ENDPOINT`` says; else the hub library's own. Raises
    ``LarderError`` with ``HUB_OFFLINE`` or ``SETTING_INVALID``.
    """
    environment = os.environ if environment is None else environment
    if any(environment.get(name, "").lower() in _YES for name in _OFFLINE_VARIABLES):
        raise LarderError(ErrorCode.HUB_OFFLINE)
    address = endpoint.strip() or environment.get("HF_ENDPOINT", "").strip()
    if not address:
        from huggingface_hub import constants

        address = constants.ENDPOINT
    try:
        parts = urllib.parse.urlsplit(address)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_good = False
    if not is_good or not address.isprintable():
        raise LarderError(
            ErrorCode.SETTING_INVALID,
            name="hub address",
            found=address,
            expected="an address that begins with https://",
        )
    return address.rstrip("/")


def shown_host(address: str) -> str:
    """Return a hub's name as a person reads it."""
    return urllib.parse.urlsplit(address).netloc.rpartition("@")[2]


def request_headers() -> dict[str, str]:
    """Return what every request carries: our name, and the person's token if there is one."""
    from huggingface_hub import get_token

    headers = {"User-Agent": "larder", "Accept-Encoding": "identity"}
    if token := get_token():
        headers["Authorization"] = f"Bearer {token}"
    return headers
