"""Links of cards measured in a child: what it finds, and children that hang, crash or babble."""

import json
import sys
from pathlib import Path

import pytest

from runtime.hardware.cards import cards_path, kept_cards
from runtime.hardware.profile import MACHINE_VARIABLE
from runtime.hardware.rates import RateCache, link_key
from runtime.protocol.machine import DeviceReport, Measured
from runtime.service import card_links, measuring
from runtime.service.card_links import CardLinks
from runtime.service.local_planning import LocalPlanning
from runtime.service.prepared_places import PreparedPlaces
from tests.support.fake_nvml import fake_nvml

GIB = 1 << 30
CARD = DeviceReport(device="cuda:0", name="Card", total_bytes=GIB, free_bytes=GIB)
OTHER = DeviceReport(device="amd:0", name="AMD graphics", total_bytes=GIB, free_bytes=GIB)
FOUND = json.dumps(
    {
        "cards": [{"device": "cuda:0", "name": "Card", "total_bytes": GIB, "free_bytes": GIB}],
        "rates": {"link:cuda:0": {"value": 1e10, "method": "measured, 128 MiB copied"}},
        "problems": {"amd:0": "an error of its own"},
    }
)
NO_RATE = json.dumps({"cards": [], "rates": {"link:cuda:0": {"value": 0.0, "method": ""}}})
LOG = "runtime.service.card_links"


def program(text: str) -> tuple[str, ...]:
    """Return the command of a child that runs a few lines of Python, and starts soon."""
    return (sys.executable, "-I", "-S", "-c", text)


def links(
    rates_path: Path, text: str, limit_s: float = 30.0, builds: tuple[str, ...] = ("hip",)
) -> CardLinks:
    return CardLinks(rates_path, program(text), limit_s, lambda: frozenset(builds))


@pytest.fixture
def rates_path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "rates.json"


@pytest.mark.expects_log(LOG)
def test_what_a_child_finds_is_kept_and_not_asked_for_again(rates_path: Path) -> None:
    noted = rates_path.parent.parent / "starts"
    text = f"open({str(noted)!r}, 'a').write('x'); print('a banner\\n' + {FOUND!r})"

    assert links(rates_path, text).measure([CARD, OTHER], {})

    kept = RateCache(rates_path)
    rate = kept.rate(link_key("cuda:0"))
    assert rate is not None
    assert (rate.value, rate.method) == (1e10, "measured, 128 MiB copied")
    assert [card.device for card in kept_cards(cards_path(rates_path))] == ["cuda:0"]
    failure = kept.failure(link_key("amd:0"))
    assert failure is not None
    assert failure.reason == "an error of its own"
    assert not links(rates_path, text).measure([OTHER], {}), "it failed just now"
    assert noted.read_text() == "x"


@pytest.mark.parametrize(
    ("text", "limit_s", "reason"),
    [
        ("import time; time.sleep(600)", 0.2, "no answer in 0.2 s"),
        (
            "import sys; sys.exit('a library is not there')",
            30.0,
            "the process ended with status 1: a library is not there",
        ),
        ("import os; os.kill(os.getpid(), 9)", 30.0, "the process ended with status -9"),
        ("print('no JSON')", 30.0, "an answer that cannot be read: "),
        ("", 30.0, "an answer that cannot be read: "),
        (
            f"print({NO_RATE!r})",
            30.0,
            "an answer that cannot be: a rate",
        ),
    ],
)
@pytest.mark.expects_log(LOG)
def test_a_child_that_tells_nothing_is_tried_again_after_a_day_or_when_asked(
    rates_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, limit_s: float, reason: str
) -> None:
    monkeypatch.setattr(card_links, "_GRACE_S", 0.0)
    first = links(rates_path, text, limit_s)

    assert first.measure([CARD], {})

    failure = RateCache(rates_path).failure(link_key("cuda:0"))
    assert failure is not None
    assert failure.reason.startswith(reason)
    working = links(rates_path, f"print({FOUND!r})")
    assert not first.measure([CARD], {})
    assert not working.measure([CARD], {}), "at the next start"
    monkeypatch.setattr(card_links, "AGAIN_AFTER_S", 0.0)
    assert not first.measure([CARD], {}), "once in the life of a process"
    assert working.measure([CARD], {})
    assert RateCache(rates_path).failure(link_key("cuda:0")) is None


@pytest.mark.parametrize(
    "end",
    [
        "import os; os.kill(os.getpid(), 11)",
        "import time; time.sleep(600)",
        "print('a library says goodbye')",
        # What it has started holds its pipes, and ends by itself.
        "import subprocess, sys; subprocess.Popen([sys.executable, '-c', WAITING])",
    ],
)
def test_what_was_told_counts_however_the_child_ends(
    rates_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    monkeypatch.setattr(card_links, "_GRACE_S", 0.0)
    text = f"WAITING = 'import time; time.sleep(1)'\nprint({FOUND!r}, flush=True)\n{end}"

    assert links(rates_path, text, 0.7).measure([CARD], {})

    rate = RateCache(rates_path).rate(link_key("cuda:0"))
    assert rate is not None
    assert rate.value == 1e10


@pytest.mark.expects_log(LOG)
def test_of_a_child_that_prints_without_end_only_the_last_is_kept(
    rates_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(card_links, "_GRACE_S", 0.0)
    tails: list[card_links._Tail] = []
    plain_start = card_links._Tail.start

    def start(tail: card_links._Tail) -> None:
        tails.append(tail)
        plain_start(tail)

    monkeypatch.setattr(card_links._Tail, "start", start)
    text = "import os\nwhile True: os.write(1, b'x' * 65536)"
    assert links(rates_path, text, 0.3).measure([CARD], {})
    assert {len(tail.kept) for tail in tails} == {0, card_links._MAX_OUTPUT_BYTES}


@pytest.mark.expects_log(LOG)
def test_a_child_that_cannot_be_started_is_told(tmp_path: Path, rates_path: Path) -> None:
    nothing = CardLinks(rates_path, [str(tmp_path / "none")], builds=lambda: frozenset({"cuda"}))
    assert nothing.measure([CARD], {})
    failure = RateCache(rates_path).failure(link_key("cuda:0"))
    assert failure is not None
    assert failure.reason.startswith("no process could be started: ")


@pytest.mark.expects_log(LOG)
def test_one_that_was_asked_anew_forgets_what_it_tried(rates_path: Path) -> None:
    failing = links(rates_path, "raise SystemExit(1)")
    assert failing.measure([CARD], {})
    RateCache(rates_path).forget()
    assert not failing.measure([CARD], {})
    assert failing.anew().measure([CARD], {})


@pytest.mark.parametrize("builds", [(), ("cuda",), ("hip",)])
def test_a_pc_without_a_card_starts_no_child(rates_path: Path, builds: tuple[str, ...]) -> None:
    assert not links(rates_path, "", builds=builds).measure([], {})
    assert not rates_path.exists()


@pytest.mark.expects_log(LOG)
def test_a_hanging_child_ends_itself_and_logs_where(
    rates_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", LOG)
    text = (
        "import faulthandler, sys, time\n"
        "faulthandler.dump_traceback_later(float(sys.argv[1]), exit=True)\n"
        "def copy_to_a_card_that_hangs(): time.sleep(600)\n"
        "copy_to_a_card_that_hangs()"
    )
    assert links(rates_path, text, 0.2).measure([CARD], {})
    failure = RateCache(rates_path).failure(link_key("cuda:0"))
    assert failure is not None
    assert failure.reason == "no answer in 0.2 s"
    assert "copy_to_a_card_that_hangs" in caplog.text


def test_measuring_again_asks_for_this_pcs_own_cards_whatever_is_pretended(
    tmp_path: Path, rates_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = tmp_path / "machine.json"
    profile.write_text(json.dumps({"devices": [{"total_gib": 1}]}))
    monkeypatch.setenv(MACHINE_VARIABLE, str(profile))
    monkeypatch.setattr(measuring, "load_native", lambda: None)
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml(nvmlDeviceGetCount=lambda: 1))
    noted = tmp_path / "starts"
    text = (
        "import os\n"
        f"open({str(noted)!r}, 'a').write(repr(os.environ[{MACHINE_VARIABLE!r}]))\n"
        f"print({FOUND!r})"
    )
    asking = links(rates_path, text)
    planning = LocalPlanning(PreparedPlaces(tmp_path / "data"), rates_path, card_links=asking)

    def found() -> Measured | None:
        figures = planning.figures("", is_fresh=True).figures
        return next(each.found for each in figures if each.name == "cards[cuda:0].link_gb_per_s")

    assert planning.describe([]).devices[0].is_simulated
    assert not noted.exists()
    for times in (1, 2):
        link = found()
        assert link is not None
        assert (link.value, link.method) == (10.0, "measured, 128 MiB copied")
        assert noted.read_text() == "''" * times
