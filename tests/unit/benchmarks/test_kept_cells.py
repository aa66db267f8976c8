"""A stopped run of the drive benchmark goes on with what it measured."""

from pathlib import Path

from drive_kept import KeptCells, Rows

ROWS: Rows = [{"what": "a cell", "ours": 2.5}]
SETTINGS = {"pairs": "5", "commit": "abc"}


def test_cells_are_found_by_the_next_run_with_the_same_settings(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "cells.json"
    KeptCells(path, SETTINGS).keep("fast, random, 50", ROWS)
    after = KeptCells(path, SETTINGS)
    assert after.rows("fast, random, 50") == ROWS
    assert after.rows("fast, random, 75") is None


def test_cells_of_another_commit_or_other_settings_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "cells.json"
    KeptCells(path, SETTINGS).keep("fast, random, 50", ROWS)
    for change in ({"commit": "abd"}, {"pairs": "2"}):
        assert KeptCells(path, SETTINGS | change).rows("fast, random, 50") is None


def test_a_torn_file_holds_nothing_and_is_written_over(tmp_path: Path) -> None:
    path = tmp_path / "cells.json"
    for text in ("", '{"settings": {', "[]"):
        path.write_text(text, encoding="utf-8")
        kept = KeptCells(path, SETTINGS)
        assert kept.rows("fast, random, 50") is None
        kept.keep("fast, random, 50", ROWS)
        assert KeptCells(path, SETTINGS).rows("fast, random, 50") == ROWS


def test_a_finished_run_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "cells.json"
    kept = KeptCells(path, SETTINGS)
    kept.keep("fast, random, 50", ROWS)
    kept.forget()
    assert KeptCells(path, SETTINGS).rows("fast, random, 50") is None
