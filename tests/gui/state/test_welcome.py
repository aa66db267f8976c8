"""The first start: three steps, measured meanwhile, shown once."""

from pathlib import Path

import msgspec
import pytest

from app.state.session import Session
from app.state.settings import SettingsState
from app.state.welcome import NUM_STEPS, Welcome
from runtime.protocol.machine import DriveReport, Measured
from runtime.protocol.messages import CommandFailed, DescribeMachine, MachineDescribed
from tests.support.fake_client import FakeClient
from tests.support.window_values import some_error, some_machine


@pytest.fixture
def welcome(client: FakeClient, session: Session, settings: SettingsState) -> Welcome:
    return Welcome(client, session, settings, ["/data"])


def test_welcome_measures_as_soon_as_the_runtime_answers(
    welcome: Welcome, session: Session, client: FakeClient
) -> None:
    seen: list[bool] = []
    welcome.changed.connect(lambda: seen.append(welcome.is_measured))
    welcome.begin()
    assert welcome.is_open
    assert welcome.machine is None
    session.start()
    client.open()
    asked = client.last(DescribeMachine)
    assert asked.folders == ["/data"]
    machine = some_machine()
    client.answer(MachineDescribed(request_id=client.sent[0].request_id, machine=machine))
    assert welcome.machine == machine
    assert not welcome.is_measured
    drive = DriveReport(
        folder="/data",
        file_system="ext4",
        free_bytes=1,
        total_bytes=2,
        read_bytes_per_s=Measured(value=3e9, method="measured"),
    )
    whole = msgspec.structs.replace(machine, drives=[drive])
    client.answer(MachineDescribed(request_id=asked.request_id, machine=whole))
    assert welcome.machine == whole
    assert welcome.is_measured
    assert seen[-1]
    num_sent = len(client.sent)
    welcome.begin()
    assert len(client.sent) == num_sent, "measured once"


def test_welcome_goes_on_where_nothing_can_be_measured(
    welcome: Welcome, session: Session, client: FakeClient
) -> None:
    welcome.begin()
    session.start()
    client.open()
    asked = client.last(DescribeMachine)
    client.answer(CommandFailed(request_id=asked.request_id, error=some_error()))
    assert welcome.is_measured
    assert welcome.machine is None


def test_welcome_is_gone_through_and_never_shown_again(
    welcome: Welcome, settings: SettingsState, session: Session, client: FakeClient, tmp_path: Path
) -> None:
    ended: list[bool] = []
    welcome.ended.connect(lambda: ended.append(True))
    welcome.go(1)
    assert welcome.step == 0, "it is not shown yet"
    welcome.begin()
    welcome.go(1)
    assert welcome.step == 1
    welcome.go(-1)
    assert welcome.step == 0
    welcome.go(NUM_STEPS)
    assert not welcome.is_open
    welcome.finish()
    assert ended == [True]
    assert settings.values.is_welcomed
    settings.save()
    assert SettingsState(tmp_path / "settings.json").values.is_welcomed
    session.start()
    client.open()
    assert client.last(DescribeMachine).folders == [], "nothing is measured for it any more"
    settings.reset()
    assert settings.values.is_welcomed
