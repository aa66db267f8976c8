"""Words of the list of models: the places that are looked through, and what was found."""

from app.state.library_search import SearchRoot
from app.text.phrases import DOT
from app.text.translate import tr, trn
from app.text.units import count, size
from app.text.words import ModelWords, Word
from runtime.protocol.model import PreparedCopy
from runtime.protocol.search import RootState
from runtime.protocol.values import WeightFormat


class LibraryWords:
    """Fixed words."""

    PLACES = Word("Places…")
    PLACES_TITLE = Word("Where models are looked for")
    PLACES_TEXT = Word(
        "Nothing is copied or changed there. A model is found wherever its config.json and its "
        ".safetensors files lie, up to twelve folders deep."
    )
    ADD_PLACE = Word("Add a place…")
    REMOVE_PLACE = Word("Look there no more")
    LOOK_AGAIN = Word("Look again")
    STOP_LOOKING = Word("Stop looking")
    STOPPING = Word("Stopping…")
    NOT_LOOKED = Word("not looked through yet")
    AWAY = Word("not there now; it is looked for again by itself")
    EMPTY = Word("empty, or its drive is not connected; it is looked for again by itself")
    UNREADABLE = Word("may not be read by you; change its rights, then look again")
    TOO_LARGE = Word("too large or deep to be looked through whole; add the folder with the models")
    USUAL = Word("kept by other programs")
    LOOK_IN_IT = Word("List the models in it")
    MORE = Word("More for this model")
    OPEN_FOLDER = Word("Open folder")
    FORGET = Word("Take off the list (its files stay)")


def searching_line(num_folders: int) -> str:
    """While a search goes on: ``Looking for models · 1,204 folders so far``."""
    folders = trn("{count} folder so far", "{count} folders so far", num_folders)
    return DOT.join((tr("Looking for models"), folders.format(count=count(num_folders))))


def root_line(root: SearchRoot) -> str:
    """What the last search found out about a place."""
    result = root.result
    if result is None:
        return LibraryWords.NOT_LOOKED
    states = {
        RootState.MISSING: LibraryWords.AWAY,
        RootState.EMPTY: LibraryWords.EMPTY,
        RootState.UNREADABLE: LibraryWords.UNREADABLE,
    }
    if result.state in states:
        return states[result.state]
    number = result.num_models
    parts = [trn("{count} model", "{count} models", number).format(count=count(number))]
    if result.num_gguf_folders:
        number = result.num_gguf_folders
        text = trn(
            "{count} folder with GGUF files, which cannot be read yet",
            "{count} folders with GGUF files, which cannot be read yet",
            number,
        )
        parts.append(text.format(count=count(number)))
    if result.num_unreadable:
        number = result.num_unreadable
        text = trn("{count} folder may not be read", "{count} folders may not be read", number)
        parts.append(text.format(count=count(number)))
    if not result.is_complete:
        parts.append(LibraryWords.TOO_LARGE)
    return DOT.join(parts)


def copy_name(copy: PreparedCopy) -> str:
    """The format of a prepared copy: ``8 bits``."""
    names = {
        WeightFormat.Q8_G32: ModelWords.EIGHT_BIT,
        WeightFormat.Q4_G32: ModelWords.FOUR_BIT,
        WeightFormat.Q4A_G32: ModelWords.FOUR_BIT,
    }
    return names.get(copy.expert_format, copy.expert_format.value)


def prepared_line(copies: list[PreparedCopy]) -> str:
    """For example ``prepared: 8 bits 31 GiB, 4 bits 16 GiB``; empty without copies."""
    if not copies:
        return ""
    listed = ", ".join(f"{copy_name(copy)} {size(copy.size_bytes)}" for copy in copies)
    return tr("prepared: {copies}").format(copies=listed)
