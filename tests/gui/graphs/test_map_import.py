"""The import of what draws maps: in a thread of its own, with the collector at rest meanwhile."""

from __future__ import annotations

import gc
import sys
import threading

import pytest
from pytestqt.qtbot import QtBot

from app.graphs import map_import
from app.graphs.map_import import MapImport


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Have an import last until the event is set."""
    gate = threading.Event()
    monkeypatch.setattr(map_import, "_import", gate.wait)
    return gate


def test_map_import_brings_the_map_in_another_thread(qtbot: QtBot) -> None:
    importing = MapImport()
    with qtbot.waitSignals([importing.running_changed, importing.running_changed]):
        importing.begin()
    assert not importing.is_running
    assert "app.graphs.expert_grid" in sys.modules


def test_map_import_collects_nothing_while_it_runs(gate: threading.Event, qtbot: QtBot) -> None:
    importing = MapImport()
    assert gc.isenabled()
    importing.begin()
    assert importing.is_running
    assert not gc.isenabled()
    gate.set()
    qtbot.waitUntil(lambda: not importing.is_running)
    assert gc.isenabled()


def test_map_import_begun_again_starts_nothing(gate: threading.Event, qtbot: QtBot) -> None:
    importing = MapImport()
    importing.begin()
    num_threads = threading.active_count()
    importing.begin()
    assert threading.active_count() == num_threads
    gate.set()
    qtbot.waitUntil(lambda: not importing.is_running)
    with qtbot.assertNotEmitted(importing.running_changed):
        importing.begin()


def test_map_import_closed_waits_for_its_end(gate: threading.Event, qtbot: QtBot) -> None:
    importing = MapImport()
    importing.close()
    importing.begin()
    threading.Timer(0.05, gate.set).start()
    importing.close()
    assert not importing.is_running
    assert gc.isenabled()
