"""The state objects around a runtime that the test plays."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication

from app.state.chat import ChatState
from app.state.chat_store import ChatStore
from app.state.library import LibraryState
from app.state.session import Session
from app.state.settings import SettingsState
from runtime.protocol.messages import LoadModel, ModelLoaded, ModelPlanned, PlanModel
from runtime.protocol.plan import PlanKind
from tests.support.chat_talks import Clock
from tests.support.fake_client import FakeClient
from tests.support.window_values import FOLDER, some_loaded, some_plan, some_report


@pytest.fixture
def client(qapp: QCoreApplication) -> FakeClient:
    return FakeClient()


@pytest.fixture
def settings(qapp: QCoreApplication, tmp_path: Path) -> Iterator[SettingsState]:
    state = SettingsState(tmp_path / "settings.json")
    yield state
    state.close()


@pytest.fixture
def library(qapp: QCoreApplication, tmp_path: Path) -> LibraryState:
    return LibraryState(tmp_path / "library.json")


@pytest.fixture
def session(client: FakeClient, settings: SettingsState, library: LibraryState) -> Session:
    return Session(client, settings, library)


@pytest.fixture
def open_session(session: Session, client: FakeClient) -> Session:
    """A session whose runtime is up and has nothing to do."""
    session.start()
    client.open()
    return session


@pytest.fixture
def ready_session(open_session: Session, client: FakeClient) -> Session:
    """A session with a loaded model and nothing under *Models*."""
    open_session.load_folder(FOLDER)
    open_session.close_candidate()
    plan = some_plan()
    client.answer(
        ModelPlanned(
            request_id=client.sent[1].request_id,
            report=some_report(),
            plans=[plan],
            recommended=PlanKind.EXACT,
        )
    )
    client.answer(ModelLoaded(request_id=client.last(LoadModel).request_id, model=some_loaded()))
    assert client.count(PlanModel) == 1
    return open_session


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "chats.db"


@pytest.fixture
def store(path: Path, clock: Clock) -> Iterator[ChatStore]:
    store = ChatStore(path, clock)
    yield store
    store.close()


@pytest.fixture
def chat(ready_session: Session, settings: SettingsState, tmp_path: Path) -> Iterator[ChatState]:
    state = ChatState(tmp_path / "chats.db", ready_session, settings)
    yield state
    state.close()
