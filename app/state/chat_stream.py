"""Cuts a file of JSON into what may be chats, holding no more than one of them at a time.

::

    [ {chat}, {chat}, ... ]      {"chats": [ {chat}, ... ]}      {chat}      {chat} newline {chat}
"""

from collections.abc import Iterator, Mapping
from typing import Protocol

MAX_CHAT_BYTES = 48 << 20
"""What one chat may take in memory while it is read."""
MAX_TEXT_BYTES = MAX_CHAT_BYTES
"""What may come in one piece before the reading is given up: a text, or a gap."""
MAX_NESTING = 100
_VALUE_BYTES = 100
"""What a value takes beside its text."""
_NUM_BETWEEN = 2000
"""Pieces of a file after which whoever reads may do something else."""
_PIECE_BYTES = 1 << 16
_OPENING, _CLOSING = ("start_map", "start_array"), ("end_map", "end_array")
_MARK = b"\xef\xbb\xbf"
Candidate = Mapping[str, object]


class Source(Protocol):
    """What is read."""

    def read(self, num_bytes: int, /) -> bytes:
        """Return the next bytes, fewer at the end."""
        ...


class NotJsonError(Exception):
    """The file is no JSON, or is broken at some place; the text says where."""


class _Item:
    """One value that is being put together, unless it gets too large."""

    def __init__(self) -> None:
        import ijson

        self._builder = ijson.ObjectBuilder()
        self.num_bytes = 0
        self.is_too_large = False

    @property
    def value(self) -> object:
        return self._builder.value

    def take(self, event: str, value: object, nesting: int) -> None:
        if self.is_too_large:
            return
        self.num_bytes += _VALUE_BYTES + (len(value) if isinstance(value, str) else 0)
        self._builder.event(event, value)
        if self.num_bytes > MAX_CHAT_BYTES or nesting > MAX_NESTING:
            self.is_too_large = True
            # Of what was put together nothing is kept.
            self._builder = type(self._builder)()


class ChatCutter:
    """The values of one file, each once it is whole; says afterwards what the file was like."""

    def __init__(self, file: Source) -> None:
        self._file = file
        self._depth = 0
        self._list_depth = 0
        """How deep the items of the list lie that is being read; 0 outside of one."""
        self._top: _Item | None = None
        self._item: _Item | None = None
        self._key = ""
        self._has_inner = False
        """The object that is being read had a list of chats."""
        self._num_values = 0
        self.num_too_large = 0
        self.num_bytes = 0
        """What all objects took that were yielded."""
        self.outline = "nothing"
        """What the file holds, for a person who looks into it."""

    def __iter__(self) -> Iterator[Candidate | None]:
        """Yield each object of the file, and now and then None; raise ``NotJsonError``."""
        import ijson

        start = self._file.read(len(_MARK))
        source = _Pieces(b"" if start == _MARK else start, self._file)
        events = ijson.basic_parse(
            source, multiple_values=True, use_float=True, buf_size=MAX_TEXT_BYTES
        )
        try:
            for number, (event, value) in enumerate(events):
                source.num_waiting_bytes = 0
                found = self._take(event, value)
                if found is not None and (whole := self._finished(found)) is not None:
                    yield whole
                if number % _NUM_BETWEEN == 0:
                    yield None
        except ijson.JSONError as error:
            raise NotJsonError(" ".join(str(error).split())) from error
        if self._list_depth == 0 and self.outline.startswith("a list"):
            self.outline = f"a list of {self._num_values}"

    def _finished(self, item: _Item) -> Candidate | None:
        if item.is_too_large:
            self.num_too_large += 1
            return None
        self.num_bytes += item.num_bytes
        return item.value if isinstance(item.value, dict) else None

    def _take(self, event: str, value: object) -> _Item | None:
        """Take one piece of the file; return the item that it ended."""
        if event in _CLOSING:
            self._depth -= 1
        found = self._passed_on(event, value)
        if event in _OPENING:
            self._depth += 1
        return found

    def _passed_on(self, event: str, value: object) -> _Item | None:
        depth, is_end = self._depth, event in _CLOSING
        if self._item is not None:
            self._item.take(event, value, depth)
            if is_end and depth == self._list_depth:
                found, self._item = self._item, None
                return found
        elif self._list_depth:
            self._in_list(event, value)
        elif self._top is not None:
            return self._in_top(event, value)
        elif event == "start_map":
            self._top = _Item()
            self._top.take(event, value, depth)
            self.outline, self._has_inner = "an object with nothing in it", False
        else:
            if event == "start_array":
                self._list_depth, self._num_values = 1, 0
            self.outline = "a list" if event == "start_array" else f"one {event}"
        return None

    def _in_list(self, event: str, value: object) -> None:
        """Take what lies between the items of a list, or begin one."""
        if event in _CLOSING and self._depth == self._list_depth - 1:
            self._list_depth = 0
            return
        if self._depth != self._list_depth:
            return
        self._num_values += event != "end_array"
        if event == "start_map":
            self._item = _Item()
            self._item.take(event, value, self._depth)

    def _in_top(self, event: str, value: object) -> _Item | None:
        """Take a piece of an object that is a chat, or has a list of them."""
        assert self._top is not None
        if event == "map_key" and self._depth == 1:
            self._key = str(value)
            self.outline = _with_key(self.outline, self._key)
        if event == "start_array" and self._depth == 1 and self._key == "chats":
            self._list_depth, self._has_inner = 2, True
            self._top.take("null", None, 0)
            return None
        self._top.take(event, value, self._depth)
        if event in _CLOSING and self._depth == 0:
            found, self._top = self._top, None
            return None if self._has_inner else found
        return None


class _Pieces:
    """A file whose first bytes were read already, in pieces for the parser.

    The parser begins a text anew with each piece until its end is there, so that pieces grow while
    it waits.
    """

    def __init__(self, start: bytes, file: Source) -> None:
        self._start = start
        self._file = file
        self.num_waiting_bytes = 0
        """What was read since the last value."""

    def read(self, num_bytes: int) -> bytes:
        if self.num_waiting_bytes > MAX_TEXT_BYTES:
            raise NotJsonError(f"more than {MAX_TEXT_BYTES} bytes without a value that ends")
        start, self._start = self._start[:num_bytes], self._start[num_bytes:]
        wanted = min(num_bytes, max(_PIECE_BYTES, self.num_waiting_bytes))
        piece = start or self._file.read(wanted)
        self.num_waiting_bytes += len(piece)
        return piece


def _with_key(outline: str, key: str) -> str:
    empty = "an object with nothing in it"
    if outline == empty:
        return f"an object with {key[:40]}"
    return outline if outline.count(", ") >= 5 else f"{outline}, {key[:40]}"
