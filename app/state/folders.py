"""Where the window keeps its files, and where models lie: the demo, and other programs'."""

import dataclasses
import functools
import os
from collections.abc import Mapping
from pathlib import Path

import platformdirs

PREPARED_FILE = "larder-manifest.json"
"""In each prepared copy: the file that desktops open with this program."""
_APPLICATION = "larder"
_ROOT = Path(__file__).resolve().parents[2]


@dataclasses.dataclass(frozen=True, slots=True)
class AppFolders:
    """The folders of one person's files; none has to exist yet."""

    settings: Path
    data: Path
    logs: Path

    @property
    def settings_file(self) -> Path:
        """What the person chose."""
        return self.settings / "settings.json"

    @property
    def library_file(self) -> Path:
        """The known model folders."""
        return self.data / "library.json"

    @property
    def forecasts_file(self) -> Path:
        """What answers were expected to be, and were."""
        return self.data / "forecasts.json"

    @property
    def energy_file(self) -> Path:
        """What answers took, by month."""
        return self.data / "energy.json"

    @property
    def chats_file(self) -> Path:
        """All conversations."""
        return self.data / "chats.db"

    @property
    def translations(self) -> Path:
        """Languages that the person added, one ``.po`` file each."""
        return self.data / "translations"

    @property
    def models(self) -> Path:
        """Where downloaded models go unless the person says otherwise."""
        return self.data / "models"

    @property
    def downloads_file(self) -> Path:
        """The downloads that are not finished."""
        return self.data / "downloads.json"

    @property
    def hub_log(self) -> Path:
        """What the runtime for hubs writes on its error stream."""
        return self.logs / "hub.log"

    @property
    def runtime_log(self) -> Path:
        """What the runtime writes on its error stream."""
        return self.logs / "runtime.log"

    @property
    def crash_log(self) -> Path:
        """The stacks of a window process that crashed."""
        return self.logs / "window-crash.log"


def app_folders(environment: Mapping[str, str]) -> AppFolders:
    """Return the folders: all below ``LARDER_HOME`` if that is set, else the system's usual."""
    home = environment.get("LARDER_HOME", "")
    if home:
        root = Path(home).expanduser().absolute()
        return AppFolders(root / "settings", root / "data", root / "logs")
    dirs = platformdirs.PlatformDirs(_APPLICATION, appauthor=False)
    return AppFolders(dirs.user_config_path, dirs.user_data_path, dirs.user_log_path)


def model_place(path: str) -> str:
    """Return the folder that stands for what was opened: of a prepared copy's file its folder."""
    opened = Path(path)
    return str(opened.parent) if opened.name == PREPARED_FILE else path


def demo_folder(environment: Mapping[str, str], root: Path = _ROOT) -> Path:
    """Return where the demo model should be: named, built beside the source, or installed."""
    named = environment.get("LARDER_DEMO_DIR", "")
    if named:
        return Path(named).expanduser().absolute()
    built = root / "build" / "demo" / "larder-demo"
    return built if built.is_dir() else root / "resources" / "demo" / "larder-demo"


def same_folder(first: str, second: str) -> bool:
    """Whether two paths are written for the same folder, as far as their text says."""
    return plain_path(first) == plain_path(second)


@functools.lru_cache(maxsize=10_000)
def plain_path(path: str) -> str:
    """Return a path as all its spellings are compared."""
    return os.path.normcase(os.path.normpath(path))


def usual_roots(environment: Mapping[str, str]) -> list[str]:
    """Return where other programs keep models: the hub's cache and LM Studio's trees.

    Nothing is looked at, so that not all of them have to exist.
    """
    home = Path("~").expanduser()
    hub_home = environment.get("HF_HOME") or str(
        Path(environment.get("XDG_CACHE_HOME") or home / ".cache") / "huggingface"
    )
    cache = (
        environment.get("HF_HUB_CACHE")
        or environment.get("HUGGINGFACE_HUB_CACHE")
        or str(Path(hub_home) / "hub")
    )
    return [
        str(Path(os.path.expandvars(cache)).expanduser().absolute()),
        str(home / ".lmstudio" / "models"),
        str(home / ".cache" / "lm-studio" / "models"),
    ]
