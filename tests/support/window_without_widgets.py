"""The window's state and link around a real runtime, as a program of its own, until killed.

Prints the process id of the runtime once a model is loaded.
"""

import sys
from pathlib import Path

from PySide6.QtCore import QCoreApplication

from app.link.client import RuntimeClient
from app.link.process import RuntimeCommand, RuntimeProcess
from app.state.library import LibraryState
from app.state.session import Session
from app.state.settings import SettingsState


def main() -> int:
    """Load the folder of the first argument with the scripted engine."""
    folder = Path(sys.argv[1])
    application = QCoreApplication([])
    process = RuntimeProcess(RuntimeCommand(("--engine", "scripted")))
    session = Session(
        RuntimeClient(process),
        SettingsState(folder / "settings.json"),
        LibraryState(folder / "library.json"),
    )

    def tell(_: object) -> None:
        sys.stdout.write(f"{process.process_id}\n")
        sys.stdout.flush()

    session.model_loaded.connect(tell)
    session.start()
    session.load_folder(str(folder))
    return application.exec()


if __name__ == "__main__":
    sys.exit(main())
