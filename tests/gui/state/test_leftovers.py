"""What a killed program leaves half written is taken away later; everything else stays."""

import os
from pathlib import Path

from app.state.leftovers import MIN_AGE_S, remove_leftovers


def test_leftovers_of_killed_programs_go_and_nothing_else(tmp_path: Path) -> None:
    stay = {"settings.json", "chats.db", "my.new", "chats.db-wal", "young.json.7.new"}
    gone = {"settings.json.12.new", "chats.backup.db.9.new", "chats.backup.db.9.new-wal"}
    folder = tmp_path / "data"
    folder.mkdir()
    for name in stay | gone:
        (folder / name).write_bytes(b"x")
        os.utime(folder / name, (1000.0, 1000.0))
    os.utime(folder / "young.json.7.new", (9000.0, 9000.0))
    remove_leftovers(folder, tmp_path / "not there", now_s=9000.0 + MIN_AGE_S)
    assert {path.name for path in folder.iterdir()} == stay
    remove_leftovers(folder)
    assert {path.name for path in folder.iterdir()} == stay - {"young.json.7.new"}
