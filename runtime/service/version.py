"""The version of this program."""

import importlib.metadata


def runtime_version() -> str:
    """Return the installed version, ``development`` when run from a source tree alone."""
    try:
        return importlib.metadata.version("larder")
    except importlib.metadata.PackageNotFoundError:
        return "development"
