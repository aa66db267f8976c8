"""Finding and deleting models in the window, with a runtime process and the system's trash."""

import os
from pathlib import Path

from pytestqt.qtbot import QtBot

from app.views.delete_dialog import DeleteDialog
from app.views.models_view import ModelsView
from app.views.rail import Page
from tests.gui.main.conftest import StartWindow
from tests.support.checkpoint_folders import write_json

WAIT_MS = 30_000


def some_model(folder: Path) -> Path:
    folder.mkdir(parents=True)
    write_json(folder / "config.json", {})
    (folder / "model.safetensors").write_bytes(b"x" * 3000)
    return folder


def test_models_of_a_place_are_found_and_deleted_to_the_trash(
    qtbot: QtBot, start_window: StartWindow, tmp_path: Path
) -> None:
    Path(os.environ["XDG_DATA_HOME"]).mkdir(parents=True, exist_ok=True)
    place = tmp_path / "place"
    kept = some_model(place / "publisher" / "kept")
    packed = [place / "other" / "packed" / f"m-0000{number}-of-00002.gguf" for number in (1, 2)]
    packed[0].parent.mkdir(parents=True)
    for file in packed:
        file.write_bytes(b"GGUF")
    gone = some_model(place / "publisher" / "gone")
    program = start_window(is_loading=False).program
    program.settings.change(model_roots=[str(place)])
    program.window.show_page(Page.MODELS)
    view = program.window.page(Page.MODELS)
    assert isinstance(view, ModelsView)

    def listed() -> list[str]:
        return sorted(card.model.folder for card in view.library_view.cards)

    def delete(folder: Path) -> None:
        card = next(each for each in view.library_view.cards if each.model.folder == str(folder))
        card.delete_wanted.emit(str(folder))
        qtbot.waitUntil(lambda: bool(view.findChildren(DeleteDialog)), timeout=WAIT_MS)
        (dialog,) = view.findChildren(DeleteDialog)
        assert folder.exists()
        dialog.trash.click()
        qtbot.waitUntil(lambda: str(folder) not in listed(), timeout=WAIT_MS)
        qtbot.waitUntil(lambda: not view.findChildren(DeleteDialog), timeout=WAIT_MS)

    qtbot.waitUntil(lambda: listed() == [str(packed[0]), str(gone), str(kept)], timeout=WAIT_MS)
    delete(gone)
    assert not gone.exists()
    delete(packed[0])
    assert not any(file.exists() for file in packed)
    assert kept.exists()
    assert "trash" in program.window.notice.text()
    program.library_search.search()
    qtbot.waitUntil(lambda: not program.library_search.is_searching, timeout=WAIT_MS)
    assert listed() == [str(kept)]
