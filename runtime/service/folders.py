"""Where the runtime keeps files: below ``LARDER_HOME`` if that is set, else in usual places."""

import dataclasses
import os
from collections.abc import Mapping, MutableMapping
from pathlib import Path

import platformdirs

from runtime.hardware.profile import MACHINE_FILE, MACHINE_VARIABLE

HOME_VARIABLE = "LARDER_HOME"


@dataclasses.dataclass(frozen=True, slots=True)
class Folders:
    """The four places; none is made before something is written to it."""

    settings: Path
    data: Path
    """Prepared models and whatever else the person would miss."""
    cache: Path
    """What can be measured or made again."""
    logs: Path


def find_folders(environment: Mapping[str, str] | None = None) -> Folders:
    """Return the places in force for this environment, by default the process's own."""
    home = (os.environ if environment is None else environment).get(HOME_VARIABLE, "")
    if home:
        root = Path(home).expanduser()
        return Folders(root / "settings", root / "data", root / "cache", root / "logs")
    system = platformdirs.PlatformDirs("larder", appauthor=False)
    return Folders(
        system.user_config_path,
        system.user_data_path,
        system.user_cache_path,
        system.user_log_path,
    )


def use_stated_machine(environment: MutableMapping[str, str]) -> None:
    """Name the machine profile among the settings in the environment, unless one is named there.

    One of the settings that is no longer there is named no more. Called by a process that looks at
    machines whenever it does, and inherited by those that it starts.
    """
    place = find_folders(environment).settings / MACHINE_FILE
    named = environment.get(MACHINE_VARIABLE, "")
    if not named and place.is_file():
        environment[MACHINE_VARIABLE] = str(place)
    elif named == str(place) and not os.path.lexists(place):
        del environment[MACHINE_VARIABLE]
