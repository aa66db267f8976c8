"""Where the window keeps its files, and where the demo model lies."""

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path

import platformdirs

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
    def chats_file(self) -> Path:
        """All conversations."""
        return self.data / "chats.db"

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


def demo_folder(environment: Mapping[str, str], root: Path = _ROOT) -> Path:
    """Return where the demo model should be: named, built beside the source, or installed."""
    named = environment.get("LARDER_DEMO_DIR", "")
    if named:
        return Path(named).expanduser().absolute()
    built = root / "build" / "demo" / "larder-demo"
    return built if built.is_dir() else root / "resources" / "demo" / "larder-demo"


def same_folder(first: str, second: str) -> bool:
    """Whether two paths are written for the same folder, as far as their text says."""
    return os.path.normcase(os.path.normpath(first)) == os.path.normcase(os.path.normpath(second))
