"""What came of writing a file where a person chose."""

from app.text.translate import tr


def saved_as(path: str) -> str:
    """Said when a file was written."""
    return tr("Saved as {path}.").format(path=path)


def not_saved(path: str, reason: str) -> str:
    """Said when a file could not be written."""
    return tr("{path} could not be written ({reason}); choose another place.").format(
        path=path, reason=reason
    )
