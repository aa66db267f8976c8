"""Chats of long files and archives: read piece by piece, and refused where they could do harm."""

import io
import json
import tracemalloc
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from app.state import chat_archive, chat_stream, import_flow
from app.state.chat import ChatState
from app.state.chat_archive import ArchiveRefusedError, ChatArchive, Member
from app.state.chat_import import ChatImportError, ImportedChat, ImportedMessage
from app.state.chat_reading import HeldChats, ImportEnd, chats_of, open_chats
from app.state.import_flow import ImportFlow
from runtime.protocol.chat import Role


def chat_of(title: str, text: str = "Why sour?") -> dict[str, Any]:
    messages = [{"role": "user", "content": text}, {"role": "assistant", "content": "Acids."}]
    return {"title": title, "messages": messages}


def read(path: Path) -> list[ImportedChat]:
    reading = open_chats(path)
    try:
        return [chat for chat in reading if chat is not None]
    finally:
        reading.close()


def titles(path: Path) -> list[str]:
    return [chat.title for chat in read(path)]


def zipped(path: Path, files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ([chat_of("a"), chat_of("b")], ["a", "b"]),
        ({"chats": [chat_of("a"), 3, [chat_of("x")], chat_of("b")], "more": 1}, ["a", "b"]),
        ({"version": 1, "chats": [], **chat_of("own")}, []),
        ([[chat_of("inner")], 5, chat_of("a"), "text", {}], ["a"]),
        (chat_of("one"), ["one"]),
        ({"chats": {"no": "list"}, **chat_of("own")}, ["own"]),
    ],
)
def test_chats_are_cut_out_wherever_they_lie(
    tmp_path: Path, content: object, expected: list[str]
) -> None:
    file = tmp_path / "chats.json"
    file.write_text(json.dumps(content))
    if expected:
        assert titles(file) == expected
        return
    with pytest.raises(ChatImportError, match="JSON without messages: an object with version"):
        read(file)


def test_lines_are_chats_or_the_messages_of_one(tmp_path: Path) -> None:
    file = tmp_path / "chats.jsonl"
    file.write_text("\n".join(json.dumps(chat_of(name)) for name in "abc"))
    assert titles(file) == ["a", "b", "c"]
    file.write_text("\n".join(json.dumps(row) for row in chat_of("x")["messages"]))
    (chat,) = read(file)
    assert [message.text for message in chat.messages] == ["Why sour?", "Acids."]


def test_long_file_is_read_in_little_memory(tmp_path: Path) -> None:
    file = tmp_path / "chats.json"
    one = json.dumps(chat_of("a", "sourdough " * 2000))
    with file.open("w") as out:
        out.write("[" + one)
        for _ in range(400):
            out.write("," + one)
        out.write("]")
    assert file.stat().st_size > 8_000_000
    tracemalloc.start()
    try:
        reading = open_chats(file)
        num_chats = sum(chat is not None for chat in reading)
        ratio, (_, peak_bytes) = reading.ratio, tracemalloc.get_traced_memory()
        reading.close()
    finally:
        tracemalloc.stop()
    assert num_chats == 401
    assert ratio == 1.0
    assert peak_bytes < 2_000_000


class Pieces(io.BytesIO):
    """A file that counts how often it is read."""

    num_reads = 0

    def read(self, size: int | None = -1) -> bytes:
        self.num_reads += 1
        return super().read(size)


def test_one_long_text_is_read_in_few_pieces_and_one_without_end_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    content = json.dumps([chat_of("a", "x" * 8_000_000), chat_of("b")]).encode()
    file = Pieces(content)
    found = [each for each in chat_stream.ChatCutter(file) if each is not None]
    assert [each["title"] for each in found] == ["a", "b"]
    # The parser begins a text anew with each piece; in equal ones these would be 120.
    assert file.num_reads < 20
    monkeypatch.setattr(chat_stream, "MAX_TEXT_BYTES", 1_000_000)
    for endless in (content, b" " * 3_000_000 + content):
        file = Pieces(endless)
        with pytest.raises(chat_stream.NotJsonError, match="more than 1000000 bytes"):
            list(chat_stream.ChatCutter(file))
        assert file.tell() < 3_000_000


def test_chat_that_is_too_large_or_too_deep_is_left_out_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_stream, "MAX_CHAT_BYTES", 20_000)
    file = tmp_path / "chats.json"
    deep: Any = "x"
    for _ in range(chat_stream.MAX_NESTING + 5):
        deep = [deep]
    chats = [chat_of("a"), chat_of("large", "x" * 30_000), {**chat_of("deep"), "more": deep}]
    file.write_text(json.dumps([*chats, chat_of("b")]))
    reading = open_chats(file)
    assert [chat.title for chat in reading if chat is not None] == ["a", "b"]
    assert reading.num_too_large == 2
    monkeypatch.setattr("app.state.chat_reading.MAX_CHAT_BYTES", 2000)
    file.write_text(json.dumps(chat_of("a")["messages"] * 20))
    with pytest.raises(ChatImportError, match="too many to hold"):
        read(file)


def test_archives_of_other_programs_are_read_without_unpacking(tmp_path: Path) -> None:
    named = {
        "export/conversations.json": json.dumps([chat_of("a"), chat_of("b")]).encode(),
        "export/conversations-001.json": json.dumps([chat_of("c")]).encode(),
        "export/user.json": b'{"email": "x"}',
        "export/picture.png": b"\x89PNG" * 100,
    }
    assert titles(zipped(tmp_path / "export.zip", named)) == ["a", "b", "c"]
    others = {
        "one/": b"",
        "one/chat-1.json": json.dumps(chat_of("d")).encode(),
        "__MACOSX/one/._chat-1.json": b"\0\5\x16\7Mac OS X",
        "one/chat-2.json": json.dumps(chat_of("e")).encode(),
        "notes.txt": b"x",
    }
    assert titles(zipped(tmp_path / "other.zip", others, zipfile.ZIP_STORED)) == ["d", "e"]
    assert sorted(path.name for path in tmp_path.rglob("*.json")) == []


def bomb(path: Path) -> Path:
    return zipped(path, {"conversations.json": b"[" + b" " * 20_000_000 + b"]"})


def many(path: Path) -> Path:
    return zipped(path, {f"{number}.json": b"{}" for number in range(12)}, zipfile.ZIP_STORED)


def cut(path: Path) -> Path:
    zipped(path, {"conversations.json": json.dumps([chat_of("a")]).encode()})
    path.write_bytes(path.read_bytes()[:-30])
    return path


def short_end(path: Path) -> Path:
    path.write_bytes(b"PK\x03\x04" + bytes(100) + b"PK\x05\x06" + bytes(5))
    return path


def lying(path: Path) -> Path:
    path.write_bytes(
        b"PK\x03\x04" + bytes(100) + b"PK\x05\x06" + bytes(4) + b"\1\0\1\0" + b"\xff" * 10
    )
    return path


def damaged(path: Path) -> Path:
    """Change what is stored in the middle of a file."""
    text = json.dumps([chat_of("a"), chat_of("b", "x" * 100_000)]).encode()
    zipped(path, {"conversations.json": text}, zipfile.ZIP_STORED)
    data = bytearray(path.read_bytes())
    data[60_000] ^= 1
    path.write_bytes(data)
    return path


def oddly_packed(path: Path) -> Path:
    """Name a way of packing that nobody has."""
    zipped(path, {"conversations.json": b"[]"}, zipfile.ZIP_STORED)
    data = bytearray(path.read_bytes())
    data[8:10] = b"\x63\0"
    at = data.index(b"PK\x01\x02") + 10
    data[at : at + 2] = b"\x63\0"
    path.write_bytes(data)
    return path


def locked(path: Path) -> Path:
    """Mark the file as encrypted, in its own header and in the directory."""
    zipped(path, {"conversations.json": b"[]"}, zipfile.ZIP_STORED)
    data = bytearray(path.read_bytes())
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (bomb, "would be 20000002 bytes"),
        (many, "an archive of 12 files or more"),
        (cut, "without an end"),
        (short_end, "without an end"),
        (lying, "no archive that can be read"),
        (lambda path: zipped(path, {"a.txt": b"x"}), "without a file of JSON"),
        (lambda path: zipped(path, {}), "without a file of JSON"),
        (locked, "password"),
        (damaged, "not JSON"),
        (oddly_packed, "compression"),
    ],
)
def test_archive_that_could_do_harm_or_is_damaged_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Any, told: str
) -> None:
    monkeypatch.setattr(chat_archive, "MAX_FILES", 10)
    with pytest.raises(ChatImportError, match=told):
        read(make(tmp_path / "a.zip"))


def test_archive_of_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_archive, "MAX_UNPACKED_BYTES", 100)
    with pytest.raises(ArchiveRefusedError, match="GiB of chats"):
        ChatArchive(zipped(tmp_path / "a.zip", {"a.json": b"[%s]" % (b"1," * 100)}))


def test_file_of_an_archive_that_vanished_is_told(tmp_path: Path) -> None:
    archive = ChatArchive(zipped(tmp_path / "a.zip", {"a.json": b"[]"}))
    archive.members = [Member("a.json", 2)]
    (tmp_path / "a.zip").write_bytes(b"")
    with pytest.raises(ArchiveRefusedError):
        archive.open(archive.members[0])
    archive.close()


def ends_of(flow: ImportFlow) -> list[ImportEnd]:
    ends: list[ImportEnd] = []
    flow.ended.connect(ends.append)
    return ends


def test_import_of_a_file_that_breaks_off_keeps_what_came(
    chat: ChatState, qtbot: QtBot, tmp_path: Path
) -> None:
    file = tmp_path / "chats.json"
    file.write_text(json.dumps([chat_of("a"), chat_of("b")])[:-3])
    with qtbot.waitSignal(chat.imported) as imported:
        chat.import_chats(open_chats(file))
    (end,) = imported.args
    assert end.num_kept == 1
    assert "EOF" in end.error
    assert [heading.title for heading in chat.chats] == ["a"]


class Slow:
    """A file that never ends, or cannot be read on."""

    num_too_large = 1
    ratio = 0.25

    def __init__(self, num_chats: int | None = None) -> None:
        self._num_chats = num_chats
        self.is_closed = False

    def __iter__(self) -> Iterator[ImportedChat | None]:
        number = 0
        while self._num_chats is None or number < self._num_chats:
            number += 1
            yield None if number % 2 else ImportedChat("x", (ImportedMessage(Role.USER, "x"),))
        raise OSError(5, "Input/output error")

    def close(self) -> None:
        self.is_closed = True


def test_long_import_is_told_as_it_goes_on_and_can_be_stopped(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_flow, "TELL_INTERVAL_S", 0.0)
    kept: list[ImportedChat] = []
    flow, slow = ImportFlow(kept.append), Slow()
    ends = ends_of(flow)
    with qtbot.waitSignal(flow.progressed) as told:
        flow.start(slow)
    assert told.args is not None
    assert told.args[0] == 0.25
    flow.stop()
    assert ends == [ImportEnd(len(kept), 1, "", is_stopped=True)]
    assert slow.is_closed
    flow.stop()
    assert len(ends) == 1


def test_drive_that_fails_ends_the_import_and_the_next_file_is_read(qtbot: QtBot) -> None:
    kept: list[ImportedChat] = []
    flow = ImportFlow(kept.append)
    ends = ends_of(flow)
    flow.start(Slow(4))
    flow.start(HeldChats(kept[:0]))
    qtbot.waitUntil(lambda: len(ends) == 2)
    assert ends == [ImportEnd(2, 1, "Input/output error"), ImportEnd(0)]


def test_end_of_the_program_waits_a_moment_for_what_is_read(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_flow, "LAST_S", 0.05)
    flow = ImportFlow(lambda _: None)
    ends = ends_of(flow)
    flow.start(HeldChats([]))
    flow.start(Slow())
    flow.finish()
    assert ends[0] == ImportEnd(0)
    assert [end.is_stopped for end in ends] == [False, True]
    flow.finish()
    flow._on_time()
    assert len(ends) == 2


def branched(**changes: object) -> list[tuple[str, int | None]]:
    """Return what a chat with two answers to its question has of branches."""
    rows = {
        "messages": [
            {"role": "user", "content": "Why?", "number": 0, "parent": None},
            {"role": "assistant", "content": "New.", "number": 2, "parent": 0},
        ],
        "branches": [
            {"role": "assistant", "content": "Old.", "number": 1, "parent": 0},
            {"role": "user", "content": "More", "number": 3, "parent": 1},
        ],
        **changes,
    }
    (chat,) = chats_of(json.dumps(rows).encode())
    assert [message.text for message in chat.messages][:1] == ["Why?"]
    return [(each.message.text, each.parent) for each in chat.branches]


def test_branches_of_a_file_are_read_unless_they_make_no_sense() -> None:
    assert branched() == [("Why?", None), ("Old.", 0), ("New.", 0), ("More", 1)]
    silent = [
        {"role": "assistant", "content": "", "number": 1, "parent": 0},
        {"role": "user", "content": "More", "number": 3, "parent": 1},
    ]
    assert branched(branches=silent) == [("Why?", None), ("New.", 0), ("More", 0)]
    for number, parent in ((1, 7), (0, None), ("1", 0), (1, "0"), (1, [])):
        row: dict[str, object] = {"role": "assistant", "content": "Old."}
        row |= {"number": number, "parent": parent}
        assert branched(branches=[row]) == []
    apart = [
        {"role": "user", "content": "Why?", "number": 0, "parent": None},
        {"role": "assistant", "content": "New.", "number": 2, "parent": 1},
    ]
    assert branched(messages=apart) == []


def test_all_branches_of_a_chat_come_back(chat: ChatState, qtbot: QtBot) -> None:
    store = chat._store
    first = store.new_chat("Sour")
    question = store.add_message(first, None, Role.USER, "Why?")
    old = store.add_message(first, question, Role.ASSISTANT, "Old.", "tiny")
    store.add_message(first, old, Role.USER, "And then?")
    other = store.add_message(first, None, Role.USER, "How?")
    store.add_message(first, question, Role.ASSISTANT, "New.", "tiny")
    saved = chat.export_json(first)
    assert [row["text"] for row in json.loads(saved)["messages"]] == ["Why?", "New."]
    with qtbot.waitSignal(chat.imported):
        chat.import_chats(HeldChats(chats_of(saved.encode())))
    (second,) = (each.chat_id for each in chat.chats if each.chat_id != first)

    def tree(chat_id: int) -> list[tuple[int | None, str, int, int]]:
        rows = store.all_messages(chat_id)
        places = {message.message_id: place for place, (_, message) in enumerate(rows)}
        return [
            (
                None if parent is None else places[parent],
                each.text,
                each.variant_index,
                each.num_variants,
            )
            for parent, each in rows
        ]

    assert tree(second) == tree(first)
    assert len(tree(second)) == 5
    assert [each.text for each in store.messages(second)] == ["Why?", "New."]
    store.show_branch(first, other)
    assert "branches" in json.loads(chat.export_json(first))
    single = store.new_chat("One")
    store.add_message(single, None, Role.USER, "Why?")
    assert "number" not in chat.export_json(single)


def test_tree_of_another_program_keeps_its_branches() -> None:
    def node(parent: str | None, role: str, text: str, kind: str = "text") -> dict[str, Any]:
        content: dict[str, Any] = {"content_type": kind, "parts": [text]}
        if kind == "thoughts":
            content = {"content_type": kind, "thoughts": [{"content": text}]}
        return {"parent": parent, "message": {"author": {"role": role}, "content": content}}

    nodes = {
        "root": {"parent": None, "message": None},
        "q": node("root", "user", "Why?"),
        "t": node("q", "assistant", "hm", "thoughts"),
        "a": node("t", "assistant", "Old."),
        "b": node("q", "assistant", "New."),
        "more": node("a", "user", "More"),
        "lost": node("gone", "user", "Elsewhere"),
    }
    (chat,) = chats_of(json.dumps({"mapping": nodes, "current_node": "b"}).encode())
    assert [message.text for message in chat.messages] == ["Why?", "New."]
    assert [(each.message.text, each.parent) for each in chat.branches] == [
        ("Why?", None), ("Old.", 0), ("More", 1), ("New.", 0), ("Elsewhere", None),
    ]  # fmt: skip
    assert [each.message.thinking for each in chat.branches][1] == "hm"
    assert chat.shown == (0, 3)


def test_history_of_another_program_keeps_its_branches() -> None:
    def node(parent: str | None, role: str, text: str) -> dict[str, Any]:
        return {"parentId": parent, "role": role, "content": text}

    nodes = {
        "q": node(None, "user", "Why?"),
        "a": node("q", "assistant", "Old."),
        "b": node("q", "assistant", "New."),
    }
    messages = [nodes["q"], nodes["b"]]
    saved = {"history": {"messages": nodes, "currentId": "b"}, "messages": messages}
    (chat,) = chats_of(json.dumps([{"id": "1", "title": "T", "chat": saved}]).encode())
    assert [message.text for message in chat.messages] == ["Why?", "New."]
    assert [(each.message.text, each.parent) for each in chat.branches] == [
        ("Why?", None), ("Old.", 0), ("New.", 0),
    ]  # fmt: skip
    assert chat.shown == (0, 2)
    saved["history"] = {"messages": {**nodes, "b": "none"}, "currentId": "gone"}
    (chat,) = chats_of(json.dumps(saved).encode())
    assert [message.text for message in chat.messages] == ["Why?", "New."]
    assert not chat.branches


def test_versions_that_were_not_chosen_are_branches() -> None:
    answers = [{"role": "assistant", "content": text} for text in ("Old.", "New.")]
    rows = [
        {"role": "user", "content": "Why?"},
        {"versions": answers, "currentlySelected": 0},
        {"role": "user", "content": "More"},
    ]
    (chat,) = chats_of(json.dumps({"messages": rows}).encode())
    assert [message.text for message in chat.messages] == ["Why?", "Old.", "More"]
    assert [(each.message.text, each.parent) for each in chat.branches] == [
        ("Why?", None), ("Old.", 0), ("New.", 0), ("More", 1),
    ]  # fmt: skip
