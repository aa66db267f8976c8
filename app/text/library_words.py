"""Words of the list of models: the places that are looked through, and what was found."""

from collections.abc import Sequence

from app.state.library_search import SearchRoot
from app.state.model_removal import Removal, RemovalResult
from app.text.phrases import DOT
from app.text.translate import tr, trn
from app.text.units import count, size
from app.text.words import ModelWords, Word
from runtime.protocol.model import PreparedCopy
from runtime.protocol.search import DeletionObstacle, FolderWeight, RootState
from runtime.protocol.values import WeightFormat


class LibraryWords:
    """Fixed words."""

    PLACES = Word("Places…")
    PLACES_TITLE = Word("Where models are looked for")
    PLACES_TEXT = Word(
        "Nothing is copied or changed there. A model is found wherever a .gguf file, or a "
        "config.json with its .safetensors files, lies, up to twelve folders deep."
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
    FILTER = Word("Find a model by its name")
    BACK = Word("Back to the list")
    LOOK_IN_IT = Word("List the models in it")
    MORE = Word("More for this model")
    OPEN_FOLDER = Word("Open folder")
    FORGET = Word("Take off the list (its files stay)")


class DeleteWords:
    """Deleting a model."""

    DELETE = Word("Delete…")
    UNLOAD_FIRST = Word("Delete… (unload it first)")
    TITLE = Word("What should go to the trash?")
    MODEL = Word("The model")
    KEEP = Word("Keep everything")
    TRASH_TEXT = Word(
        "Nothing is deleted for good: it lies in the trash of its drive until you empty that, and "
        "only then is the space free."
    )
    CHOOSE = Word("Choose what should go")
    NOT_THERE = Word("The folder is not there now. Take it off the list, or connect its drive.")
    NOT_ALONE = Word(
        "Other models or very many files lie in this folder, so it is not deleted from here. Use "
        "your file manager."
    )
    UNREADABLE = Word(
        "Some of this folder may not be read, so nobody knows what would go. Use your file manager."
    )


def searching_line(num_folders: int) -> str:
    """While a search goes on: ``Looking for models · 1,204 folders so far``."""
    folders = trn("{count} folder so far", "{count} folders so far", num_folders)
    return DOT.join((tr("Looking for models"), folders.format(count=count(num_folders))))


def more_models(num_models: int) -> str:
    """The button below a long list."""
    return tr("Show more ({count} are not shown)").format(count=count(num_models))


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
        WeightFormat.Q6_G32: ModelWords.SIX_BIT,
        WeightFormat.Q3_G16: ModelWords.THREE_BIT,
        WeightFormat.Q2_G16: ModelWords.TWO_BIT,
    }
    return names.get(copy.expert_format, copy.expert_format.value)


def prepared_line(copies: list[PreparedCopy]) -> str:
    """For example ``prepared: 8 bits 31 GiB, 4 bits 16 GiB``; empty without copies."""
    if not copies:
        return ""
    listed = ", ".join(f"{copy_name(copy)} {size(copy.size_bytes)}" for copy in copies)
    return tr("prepared: {copies}").format(copies=listed)


def weight_line(weight: FolderWeight) -> str:
    """What would go with a model, or why it stays."""
    obstacles = {
        DeletionObstacle.NOT_THERE: DeleteWords.NOT_THERE,
        DeletionObstacle.NOT_A_MODEL_ALONE: DeleteWords.NOT_ALONE,
        DeletionObstacle.UNREADABLE: DeleteWords.UNREADABLE,
    }
    if weight.obstacle is not None:
        return obstacles[weight.obstacle]
    if weight.link_target:
        return tr("Only this link goes; the files stay in {folder}.").format(
            folder=weight.link_target
        )
    files = trn("{count} file", "{count} files", weight.num_files)
    return DOT.join((size(weight.num_bytes), files.format(count=count(weight.num_files))))


def removal_paths(removal: Removal) -> str:
    """What goes by its path; where it really lies, and which links then lead to nothing."""
    weight = removal.weight
    lines = [weight.folder]
    if weight.obstacle is None and not weight.link_target:
        if removal.real_folder:
            lines.append(tr("The files lie in {path}.").format(path=removal.real_folder))
        lines += (
            tr("The link {path} leads to nothing then.").format(path=each) for each in removal.links
        )
    return "\n".join(lines)


def copy_title(copy: PreparedCopy) -> str:
    """For example ``The prepared copy in 8 bits``."""
    return tr("The prepared copy in {format}").format(format=copy_name(copy))


def paths_told(folder: str, links: Sequence[str]) -> str:
    """Where a model lies, and which links lead there too, a line each."""
    return "\n".join((folder, *(tr("linked from {path}").format(path=each) for each in links)))


def trash_button(num_bytes: int) -> str:
    """For example ``Move 60.8 GiB to the trash``."""
    return tr("Move {size} to the trash").format(size=size(num_bytes))


def removal_line(result: RemovalResult) -> str:
    """What came of deleting."""
    if result.refused:
        return tr(
            "{folders} could not be moved to the trash and is still there. Its drive may have no "
            "trash, or you may not change that folder: delete it in your file manager."
        ).format(folders=", ".join(result.refused))
    return tr("{name} lies in the trash. {size} are free once you empty it.").format(
        name=result.name, size=size(result.num_bytes)
    )
