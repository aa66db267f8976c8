"""Models to which several paths lead, as links do: they are one, shown by where it really lies."""

from collections.abc import Iterable

from app.state.library_file import Entry, model_key


def place_key(entry: Entry) -> str:
    """Return what is the same for all paths that lead to a model."""
    return model_key(_real_folder(entry) or entry.folder)


def gathered(entries: Iterable[Entry]) -> list[list[Entry]]:
    """Return the entries that are to be shown: those of one model together, the shown one first.

    A model that was taken off the list comes back by a path that a person drops, and not by one
    that a search finds.
    """
    places: dict[str, list[Entry]] = {}
    for entry in entries:
        places.setdefault(place_key(entry), []).append(entry)
    groups = (_shown(together) for together in places.values())
    return [group for group in groups if group]


def is_link(entry: Entry) -> bool:
    """Whether links lead to the model by this path, as far as it was looked at."""
    return bool(_real_folder(entry))


def _shown(together: list[Entry]) -> list[Entry]:
    is_off = any(entry.is_hidden for entry in together)
    group = [entry for entry in together if not (entry.is_hidden or (is_off and entry.root))]
    return sorted(group, key=lambda entry: (entry.is_missing, is_link(entry)))


def _real_folder(entry: Entry) -> str:
    return entry.report.real_folder if entry.report is not None else ""
