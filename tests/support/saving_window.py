"""What a window under test is told to do: save one number everywhere without end, or download."""

import datetime as dt
import os
from pathlib import Path

import msgspec
from PySide6.QtCore import QTimer

from app.main import Program
from app.state.chat_store import ChatStore
from app.state.downloads import Downloads, DownloadStage
from app.state.energy_book import EnergyBook
from app.state.hub_link import HubLink
from app.state.library_file import read_entries
from app.state.settings import SettingsState
from app.state.settings_file import Preset, read_settings
from runtime.protocol.hub import HubCard
from tests.support.fake_client import FakeClient
from tests.support.window_values import some_stats

MODEL_ID = "maker/saved"
ROOMY_BYTES = 8 << 30
"""With this the made-up model loads at the next start."""
PROMPT = "number {number}. " * 4000
"""Long, so that its file is written in more than one piece."""
TITLE = "number {number}. " * 40


def save_for_ever(larder: Program, model: str, record: str, number: int) -> None:
    """Save the number and those after it, and write each down once it is saved everywhere."""
    written = os.open(record, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    store = larder.chat._store
    headings = store.headings()
    chat_id = headings[0].chat_id if headings else store.new_chat("number 0.")

    def save(number: int) -> None:
        text = PROMPT.format(number=number)
        larder.settings.change(
            ram_budget_bytes=ROOMY_BYTES + number,
            presets=[Preset(name=str(number), system_prompt=text)],
        )
        larder.settings.save()
        larder.library.note_rate(model, float(number))
        larder.library.save()
        larder.monitor.energy.take_answer(msgspec.structs.replace(some_stats(), generated_tokens=1))
        larder.downloads.add(HubCard(model_id=MODEL_ID, revision="a", size_bytes=number), "/m")
        store.rename_chat(chat_id, TITLE.format(number=number))
        os.write(written, b"%d\n" % number)
        QTimer.singleShot(0, larder, lambda: save(number + 1))

    save(number)


def go_on_downloading(larder: Program, card: HubCard, root: str, hub: str) -> None:
    """Download a model, or go on with it where it stands still, as a person would.

    It does where the window saw its runtime die before it was killed itself.
    """
    larder.settings.change(is_hub_allowed=True, hub_address=hub)
    item = larder.downloads.of(card.model_id)
    if item is None:
        larder.downloads.add(card, root)
    elif item.stage in (DownloadStage.PAUSED, DownloadStage.FAILED):
        larder.downloads.resume(card.model_id)


def saved_numbers(home: Path) -> dict[str, int]:
    """Return the number that each file holds; fail if one is neither old nor new but between."""
    data, found = home / "data", {}
    values, notices = read_settings(home / "settings" / "settings.json")
    assert notices == []
    (preset,) = values.presets
    found["settings"] = (values.ram_budget_bytes or 0) - ROOMY_BYTES
    found["presets"] = int(preset.name)
    assert preset.system_prompt == PROMPT.format(number=preset.name)
    (entry,) = read_entries(data / "library.json").values()
    found["library"] = int(entry.measured_tokens_per_s)
    found["energy"] = EnergyBook(data / "energy.json", dt.date.today).month.num_tokens
    settings = SettingsState(home / "settings" / "settings.json")
    client = FakeClient()
    (item,) = Downloads(data / "downloads.json", HubLink(client), settings).items
    found["downloads"] = item.total_bytes
    store = ChatStore(data / "chats.db")
    assert store.take_notices() == []
    (heading,) = store.headings()
    store.close()
    found["chats"] = int(heading.title.split()[1].rstrip("."))
    assert heading.title == TITLE.format(number=found["chats"])
    assert not list(data.glob("*damaged*"))
    return found
