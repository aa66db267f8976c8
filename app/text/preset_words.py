"""Words of presets and of folders of chats."""

from app.text.translate import tr, trn
from app.text.units import count
from app.text.words import Word


class PresetWords:
    """Presets."""

    PRESET = Word("Preset")
    EXPLAINED = Word("Instructions and sampling for this chat")
    NONE = Word("As in the settings")
    EDIT = Word("Presets…")
    TITLE = Word("Presets")
    PURPOSE = Word("A preset keeps instructions and sampling under a name, for a chat or a model.")
    NEW = Word("New")
    NEW_NAME = Word("New preset")
    DELETE = Word("Delete")
    IMPORT = Word("Bring in…")
    EXPORT = Word("Save as a file…")
    CLOSE = Word("Done")
    NAME = Word("Name")
    NAME_TAKEN = Word("Another preset has this name, or there is none: choose another.")
    INSTRUCTIONS = Word("Instructions")
    OWN_SAMPLING = Word("A sampling of its own")
    FILES = Word("Presets (*.json);;All files (*)")


class FolderWords:
    """Folders of chats."""

    MOVE = Word("Move to a folder")
    NO_FOLDER = Word("No folder")
    NEW = Word("New folder…")
    NEW_TITLE = Word("A new folder")
    RENAME = Word("Rename the folder…")
    RENAME_TITLE = Word("Rename the folder")
    DISSOLVE = Word("Take the folder away (its chats stay)")


def always_with(model: str) -> str:
    """The menu entry that gives a model a preset of its own."""
    return tr("Always with {model}").format(model=model)


def preset_not_read(path: str) -> str:
    """Say that a file has no presets in it, and what would."""
    return tr(
        "No preset was found in {path}. Choose a JSON file that Larder saved with “Save as a file”."
    ).format(path=path)


def folder_name(name: str, number: int, *, is_open: bool) -> str:
    """What a screen reader says of a folder."""
    text = trn("Folder {name}, {count} chat", "Folder {name}, {count} chats", number)
    state = tr("open") if is_open else tr("closed")
    return ", ".join((text.format(name=name, count=count(number)), state))
