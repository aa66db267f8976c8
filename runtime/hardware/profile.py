"""Machine profiles: a file that states totals, free amounts, speeds and an accelerator.

``LARDER_MACHINE`` names the file; without it, one that lies among the settings counts. Its fields
are described in ``docs/machine-profiles.md``.
"""

import contextlib
import dataclasses
import difflib
import json
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from runtime.errors import LarderError
from runtime.hardware.energy_terms import BATTERY, COUNTER
from runtime.protocol.errors import ErrorCode

MACHINE_VARIABLE = "LARDER_MACHINE"
MACHINE_FILE = "machine.json"
"""Name of the profile among the settings."""
_MAX_FILE_BYTES = 1024 * 1024
_MAX_DEVICES = 16
_MAX_NUMBER = 1e6
MAX_THREADS = 1024
MAX_DRIVE_READERS = 8
NO_SOURCE = "none"
"""What ``energy_sources`` says where no counter is to count."""
INSTRUCTION_SETS = ("avx512", "avx2", "portable")
"""Those that kernels are there for, the widest first; one that is stated is used."""
_GIB = 1024**3
_GB_PER_S = 1e9
_START, _END = "its start", "its end"
"""Places in a file where no field is to name."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedDevice:
    """An accelerator that is not there: a second arena behind a link of a stated speed."""

    device: str
    name: str
    total_bytes: int
    free_bytes: int
    link_bytes_per_s: float
    is_link_measured: bool = False
    """Whether its link is taken as it was measured, like a real card's, and not as stated."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StatedCard:
    """What a profile states of a card that is there; None leaves the card's own figure."""

    device: str
    total_bytes: int | None
    free_bytes: int | None
    link_bytes_per_s: float | None
    link_back_bytes_per_s: float | None
    read_bytes_per_s: float | None
    work_watts: float | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MachineProfile:
    """What a profile states; None leaves this PC's own figure."""

    path: str
    ram_total_bytes: int | None = None
    ram_available_bytes: int | None = None
    ram_limit_bytes: int | None = None
    ram_read_bytes_per_s: float | None = None
    drive_total_bytes: int | None = None
    drive_free_bytes: int | None = None
    drive_read_bytes_per_s: float | None = None
    drive_most_bytes_per_s: float | None = None
    num_drive_readers: int | None = None
    """Readers of what a computation waits for; None lets the drive's own curve choose."""
    drive_j_per_gb: float | None = None
    num_physical_cores: int | None = None
    num_threads: int | None = None
    """Threads that compute; None takes one for each core."""
    pc_watts: float | None = None
    """Power of the whole PC at work without its graphics card, at the socket."""
    rest_watts: float | None = None
    """Power of what is beside processor and memory."""
    energy_sources: frozenset[str] | None = None
    """Which counters of the processor count, and whether the battery does; None: all."""
    instruction_set: str = ""
    cards: tuple[StatedCard, ...] = ()
    devices: tuple[SimulatedDevice, ...] = ()


def profile_of(env: Mapping[str, str]) -> MachineProfile | None:
    """Return the profile that the environment names, None if it names none."""
    path = env.get(MACHINE_VARIABLE, "")
    return load_profile(path) if path else None


def load_profile(path: str) -> MachineProfile:
    """Read and check a profile; raise ``LarderError`` with ``MACHINE_FILE_INVALID``.

    It names the file, where in it, what was found there and what is expected.
    """
    return checked_profile(load_document(path), path)


def load_document(path: str) -> dict[str, Any]:
    """Read the object that a profile's file holds; what is in it is not looked at."""
    with _naming(path):
        try:
            state = Path(path).stat()
            if not (stat.S_ISREG(state.st_mode) or stat.S_ISDIR(state.st_mode)):
                # Opening or reading it might never end.
                _refuse("this place", "a pipe or a device", "a JSON file")
            if state.st_size > _MAX_FILE_BYTES:
                _refuse(_END, "more than 1 MiB", "a small JSON file")
            document: object = json.loads(Path(path).read_text(encoding="utf-8-sig"))
        except OSError as error:
            found = f"nothing that can be read ({error.strerror or error})"
            _refuse("this place", found, "a JSON file", error)
        except UnicodeDecodeError as error:
            _refuse(f"byte {error.start + 1}", "what is not UTF-8", "text in UTF-8", error)
        except json.JSONDecodeError as error:
            place = f"line {error.lineno}, column {error.colno}"
            _refuse(place, f"a mistake ({error.msg})", "correct JSON", error)
        except (ValueError, RecursionError) as error:
            _refuse(_START, f"what cannot be taken in ({error})", "a small JSON file", error)
        if not isinstance(document, dict):
            _refuse(_START, _shown(document), "an object with fields in braces")
        return document


def checked_profile(document: dict[str, Any], path: str) -> MachineProfile:
    """Return what a document states; raise ``LarderError`` as ``load_profile`` does."""
    with _naming(path):
        return _profile(document, path)


def _profile(document: dict[str, Any], path: str) -> MachineProfile:
    top = _Section("", document)
    ram, drive = top.section("ram"), top.section("drive")
    profile = MachineProfile(
        path=path,
        ram_total_bytes=ram.gib("total_gib"),
        ram_available_bytes=ram.gib("available_gib"),
        ram_limit_bytes=ram.gib("limit_gib"),
        ram_read_bytes_per_s=ram.gb_per_s("read_gb_per_s"),
        drive_total_bytes=drive.gib("total_gib"),
        drive_free_bytes=drive.gib("free_gib"),
        drive_read_bytes_per_s=drive.gb_per_s("read_gb_per_s"),
        drive_most_bytes_per_s=drive.gb_per_s("most_gb_per_s"),
        num_drive_readers=drive.count("num_readers"),
        drive_j_per_gb=drive.joules("joules_per_gb"),
        num_physical_cores=top.count("num_physical_cores"),
        num_threads=top.count("num_threads"),
        pc_watts=top.watts("pc_watts"),
        rest_watts=top.watts("rest_watts"),
        energy_sources=_sources(top.text("energy_sources")),
        instruction_set=top.text("instruction_set"),
        cards=tuple(_card(section, index) for index, section in enumerate(top.sections("cards"))),
        devices=tuple(
            _device(section, index) for index, section in enumerate(top.sections("devices"))
        ),
    )
    for section in (ram, drive, top):
        section.refuse_unknown()
    _refuse_more("ram.available_gib", profile.ram_available_bytes, profile.ram_total_bytes)
    _refuse_more("ram.limit_gib", profile.ram_limit_bytes, profile.ram_total_bytes)
    _refuse_more("drive.free_gib", profile.drive_free_bytes, profile.drive_total_bytes)
    _refuse_faster_reads(profile)
    if profile.num_threads is not None and profile.num_threads > MAX_THREADS:
        _refuse("num_threads", profile.num_threads, f"at most {MAX_THREADS}")
    if profile.num_drive_readers is not None and profile.num_drive_readers > MAX_DRIVE_READERS:
        _refuse("drive.num_readers", profile.num_drive_readers, f"at most {MAX_DRIVE_READERS}")
    _refuse_twice(profile.cards)
    return profile


def _refuse_twice(cards: Sequence[StatedCard]) -> None:
    """Refuse two sections of one card, of which only one would count."""
    seen: set[str] = set()
    for index, card in enumerate(cards):
        if card.device in seen:
            _refuse(f"cards[{index}].device", card.device, "each card once")
        seen.add(card.device)


def _sources(text: str) -> frozenset[str] | None:
    """Return the counters that a list with commas names; None for no text."""
    names = frozenset(filter(None, (name.strip() for name in text.split(","))))
    if not names:
        return None
    if names == {NO_SOURCE}:
        return frozenset()
    wrong = sorted(name for name in names if name != BATTERY and not name.startswith(COUNTER))
    if wrong:
        expected = f"{NO_SOURCE} alone, or {BATTERY} and counters like {COUNTER}package-0"
        _refuse("energy_sources", ", ".join(wrong), expected)
    return names


def _card(section: "_Section", index: int) -> StatedCard:
    card = StatedCard(
        device=section.text("device"),
        total_bytes=section.gib("total_gib"),
        free_bytes=section.gib("free_gib"),
        link_bytes_per_s=section.gb_per_s("link_gb_per_s"),
        link_back_bytes_per_s=section.gb_per_s("link_back_gb_per_s"),
        read_bytes_per_s=section.gb_per_s("read_gb_per_s"),
        work_watts=section.watts("work_watts"),
    )
    section.refuse_unknown()
    if not card.device:
        _refuse(f"cards[{index}].device", "nothing", "its name, for example cuda:0")
    _refuse_more(f"cards[{index}].free_gib", card.free_bytes, card.total_bytes)
    return card


def _device(section: "_Section", index: int) -> SimulatedDevice:
    total = section.gib("total_gib")
    if total is None:
        _refuse(f"devices[{index}].total_gib", "nothing", "a number of GiB")
    free = section.gib("free_gib")
    device = SimulatedDevice(
        device=f"simulated:{index}",
        name=section.text("name") or f"Simulated card {index}",
        total_bytes=total,
        free_bytes=total if free is None else free,
        link_bytes_per_s=section.gb_per_s("link_gb_per_s") or 16 * _GB_PER_S,
        is_link_measured=section.is_so("is_link_measured"),
    )
    section.refuse_unknown()
    _refuse_more(f"devices[{index}].free_gib", device.free_bytes, device.total_bytes)
    return device


class _WrongError(Exception):
    """Something in a profile that cannot be: where, what is there, and what should be."""

    def __init__(self, place: str, found: str, expected: str) -> None:
        super().__init__(place, found, expected)
        self.parameters = {"place": place, "found": found, "expected": expected}


def _refuse(
    place: str, found: object, expected: str, cause: BaseException | None = None
) -> NoReturn:
    raise _WrongError(place, str(found)[:300], expected) from cause


@contextlib.contextmanager
def _naming(path: str) -> Iterator[None]:
    """Name the file in what is refused."""
    try:
        yield
    except _WrongError as error:
        raise LarderError(
            ErrorCode.MACHINE_FILE_INVALID, file=path, **error.parameters
        ) from error.__cause__


def _refuse_faster_reads(profile: MachineProfile) -> None:
    read, most = profile.drive_read_bytes_per_s, profile.drive_most_bytes_per_s
    if read is not None and most is not None and read > most:
        expected = f"at most drive.most_gb_per_s, {most / _GB_PER_S:g}"
        _refuse("drive.read_gb_per_s", f"{read / _GB_PER_S:g} GB/s", expected)


def _refuse_more(field: str, part_bytes: int | None, whole_bytes: int | None) -> None:
    if part_bytes is not None and whole_bytes is not None and part_bytes > whole_bytes:
        found = f"{part_bytes / _GIB:g} GiB"
        _refuse(field, found, f"at most the total of {whole_bytes / _GIB:g} GiB")


class _Section:
    """One object of the file, which remembers the fields it was asked for."""

    def __init__(self, name: str, value: object) -> None:
        if not isinstance(value, dict):
            _refuse(name or _START, _shown(value), "an object with fields in braces")
        self._prefix = f"{name}." if name else ""
        self._fields: dict[str, object] = value
        self._known: list[str] = []

    def section(self, name: str) -> "_Section":
        return _Section(f"{self._prefix}{name}", self._take(name, {}))

    def sections(self, name: str) -> list["_Section"]:
        items = self._take(name, [])
        if not isinstance(items, list) or len(items) > _MAX_DEVICES:
            _refuse(self._prefix + name, _shown(items), f"a list of at most {_MAX_DEVICES} objects")
        return [_Section(f"{self._prefix}{name}[{at}]", item) for at, item in enumerate(items)]

    def gib(self, name: str) -> int | None:
        value = self._number(name, "a number of GiB from 0 on", is_positive=False)
        return None if value is None else int(value * _GIB)

    def gb_per_s(self, name: str) -> float | None:
        value = self._number(name, "a number of GB/s above 0", is_positive=True)
        return None if value is None else value * _GB_PER_S

    def watts(self, name: str) -> float | None:
        return self._number(name, "a number of watts above 0", is_positive=True)

    def joules(self, name: str) -> float | None:
        return self._number(name, "a number of joules from 0 on", is_positive=False)

    def count(self, name: str) -> int | None:
        value = self._number(name, "a whole number above 0", is_positive=True)
        if value is not None and value != int(value):
            _refuse(self._prefix + name, f"{value:g}", "a whole number above 0")
        return None if value is None else int(value)

    def text(self, name: str) -> str:
        value = self._take(name, "")
        if not isinstance(value, str):
            _refuse(self._prefix + name, _shown(value), "text in quotes")
        return value

    def is_so(self, name: str) -> bool:
        value = self._take(name, False)
        if not isinstance(value, bool):
            _refuse(self._prefix + name, _shown(value), "true or false")
        return value

    def refuse_unknown(self) -> None:
        """Refuse a field that nobody asked for, naming the one that was probably meant."""
        for name in self._fields:
            if name not in self._known:
                close = difflib.get_close_matches(name, self._known, n=1)
                expected = close[0] if close else f"one of {', '.join(sorted(self._known))}"
                _refuse(f"{self._prefix}{name}", "a field that is not known", expected)

    def _number(self, name: str, expected: str, *, is_positive: bool) -> float | None:
        value = self._take(name, None)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            _refuse(self._prefix + name, _shown(value), expected)
        # Comparing comes first: a whole number of JSON may be too large for a float.
        if not 0 <= value <= _MAX_NUMBER or (is_positive and value == 0):
            found = f"{value:g}" if abs(value) <= sys.float_info.max else str(value)
            _refuse(self._prefix + name, found, f"{expected} and at most a million")
        return float(value)

    def _take(self, name: str, default: object) -> object:
        self._known.append(name)
        return self._fields.get(name, default)


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)[:100]
