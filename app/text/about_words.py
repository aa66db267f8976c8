"""Words of the page about the program, and of the report."""

from app.text.translate import tr
from app.text.words import Word


class AboutWords:
    """Fixed words."""

    TITLE = Word("About Larder")
    PARTS = Word("Made with")
    LICENCE = Word("The text of its licence")
    SHOW_PARTS = Word("Versions and licences")
    REPORT = Word("Save a report…")
    REPORT_EXPLAINED = Word(
        "For whoever helps you: versions, this PC, settings, logs. Nothing that you or a model "
        "wrote is in it, and it is sent nowhere."
    )
    REPORT_FILES = Word("Reports (*.zip)")


def version_line(version: str, python: str, qt: str) -> str:
    """For example ``Version 0.1.0 · Python 3.11.7 · Qt 6.11.3``."""
    return tr("Version {version} · Python {python} · Qt {qt}").format(
        version=version, python=python, qt=qt
    )
