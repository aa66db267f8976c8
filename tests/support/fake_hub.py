"""A hub of models on this machine: the addresses that are needed, and everything that goes wrong.

Weights are sent on to another address, as hubs do. A fault of a file happens once, in its order,
then the file is served as it should be.
"""

import contextlib
import dataclasses
import enum
import hashlib
import json
import re
import threading
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

COMMIT = "0123456789abcdef0123456789abcdef01234567"
_PIECE_BYTES = 64 * 1024
_OTHERS = bytes(byte ^ 0x55 for byte in range(256))
_RANGE = re.compile(r"bytes=(\d+)-(\d*)")


class Fault(enum.Enum):
    """What can happen to one request for a file."""

    CUT = "cut"
    """Half of what was asked for comes, then the connection ends."""
    STALL = "stall"
    """A few bytes come, then nothing more until the hub closes."""
    BUSY = "busy"
    NO_RANGE = "no range"
    """The whole file comes, whatever was asked for."""
    OTHER_BYTES = "other bytes"
    NOT_THIS_PART = "416"
    WEB_PAGE = "web page"
    LONGER = "longer"


@dataclasses.dataclass
class HubModelFiles:
    """One model that the hub has."""

    folder: Path
    commit: str = COMMIT
    facts: dict[str, Any] = dataclasses.field(default_factory=dict)
    """What the hub's interface says beside the files."""
    is_closed: bool = False
    """Its files are given to nobody."""
    extra: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    """Files of its list that are not there."""


class FakeHub:
    """A server on 127.0.0.1. Threads: its own; tests set faults before they ask."""

    def __init__(self) -> None:
        self.models: dict[str, HubModelFiles] = {}
        self.faults: dict[str, list[Fault]] = {}
        self.requests: list[tuple[str, str, str]] = []
        """Path with query, ``Range`` and ``Authorization`` of each request."""
        self.files: Path | None = None
        """A folder whose files are below ``/updates``."""
        self.closing = threading.Event()
        self.pause_after: dict[str, threading.Event] = {}
        """By file: after a half of it, the rest waits for this."""
        self.bytes_per_s = 0.0
        """How fast each file comes; 0 as fast as it goes."""
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Headers and body are sent apart: the body would wait for the answer to the headers.
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                hub.answer(self)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    @property
    def address(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        """End the server and what stalls."""
        self.closing.set()
        for event in self.pause_after.values():
            event.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def add(self, model_id: str, folder: Path, **facts: Any) -> HubModelFiles:
        """Have the files of a folder as a model."""
        self.models[model_id] = HubModelFiles(folder, facts=facts)
        return self.models[model_id]

    def asked(self, part: str) -> list[tuple[str, str, str]]:
        """Return the requests whose path has a part."""
        return [each for each in self.requests if part in each[0]]

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """Answer one request."""
        headers = request.headers
        self.requests.append(
            (request.path, headers.get("Range", ""), headers.get("Authorization", ""))
        )
        url = urllib.parse.urlsplit(request.path)
        path = urllib.parse.unquote(url.path)
        if path == "/api/models":
            self._search(request, urllib.parse.parse_qs(url.query))
        elif path.startswith("/api/models/"):
            self._describe(request, path.removeprefix("/api/models/").partition("/revision/")[0])
        elif path.startswith("/updates/") and self.files is not None:
            self._plain(request, self.files / path.removeprefix("/updates/"))
        elif match := re.fullmatch(r"/(cdn/)?(.+)/resolve/([0-9a-f]+|main)/(.+)", path):
            self._resolve(request, match[2], match[3], match[4], is_far=bool(match[1]))
        else:
            _send(request, 404, b"{}")

    def _plain(self, request: BaseHTTPRequestHandler, path: Path) -> None:
        if not path.is_file():
            _send(request, 404, b"")
            return
        waiting = self.faults.get(path.name, [])
        self._file(request, path, waiting.pop(0) if waiting else None)

    def _search(self, request: BaseHTTPRequestHandler, query: dict[str, list[str]]) -> None:
        word = query.get("search", [""])[0].lower()
        found = [
            {"id": name, "siblings": _names(model), **model.facts}
            for name, model in self.models.items()
            if word in name.lower()
        ]
        _send(request, 200, json.dumps(found).encode())

    def _describe(self, request: BaseHTTPRequestHandler, model_id: str) -> None:
        model = self.models.get(model_id)
        if model is None:
            _send(request, 401, b"{}", {"X-Error-Code": "RepoNotFound"})
            return
        files = sorted(path for path in model.folder.rglob("*") if path.is_file())
        siblings = [_sibling(path, model.folder) for path in files]
        facts = {"id": model_id, "sha": model.commit, **model.facts}
        _send(request, 200, json.dumps({**facts, "siblings": [*siblings, *model.extra]}).encode())

    def _resolve(
        self,
        request: BaseHTTPRequestHandler,
        model_id: str,
        commit: str,
        name: str,
        *,
        is_far: bool,
    ) -> None:
        model = self.models.get(model_id)
        if (
            model is None
            or commit not in (model.commit, "main")
            or not (model.folder / name).is_file()
        ):
            _send(request, 404, b"")
        elif model.is_closed:
            _send(request, 403, b"", {"X-Error-Code": "GatedRepo"})
        elif name.endswith((".safetensors", ".gguf")) and not is_far:
            _send(request, 302, b"", {"Location": f"/cdn/{model_id}/resolve/{commit}/{name}"})
        else:
            waiting = self.faults.get(name, [])
            self._file(request, model.folder / name, waiting.pop(0) if waiting else None)

    def _file(self, request: BaseHTTPRequestHandler, path: Path, fault: Fault | None) -> None:
        data = path.read_bytes()
        match = _RANGE.fullmatch(request.headers.get("Range", ""))
        start, end = 0, len(data)
        if match and fault is not Fault.NO_RANGE:
            start = int(match[1])
            end = min(int(match[2]) + 1, len(data)) if match[2] else len(data)
        if fault is Fault.BUSY:
            _send(request, 503, b"", {"Retry-After": "0"})
            return
        if fault is Fault.WEB_PAGE:
            _send(request, 200, b"<html>please log in</html>")
            return
        if fault is Fault.NOT_THIS_PART or (match and start >= len(data)):
            _send(request, 416, b"", {"Content-Range": f"bytes */{len(data)}"})
            return
        part = data[start:end]
        if fault is Fault.OTHER_BYTES:
            part = part.translate(_OTHERS)
        if fault is Fault.LONGER:
            part += b"more"
        is_part = bool(match) and fault is not Fault.NO_RANGE
        request.send_response(206 if is_part else 200)
        request.send_header("Content-Length", str(len(part)))
        if is_part:
            request.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(data)}")
        request.end_headers()
        pause = self.pause_after.get(path.name)
        if fault is Fault.CUT or fault is Fault.STALL or (pause and not match):
            request.wfile.write(part[: len(part) // 2])
            request.wfile.flush()
            if fault is Fault.STALL:
                self.closing.wait()
            if pause and fault is None:
                pause.wait()
                request.wfile.write(part[len(part) // 2 :])
            else:
                request.close_connection = True
                request.connection.close()
            return
        self._write(request, part)

    def _write(self, request: BaseHTTPRequestHandler, part: bytes) -> None:
        """Write a file, piece by piece where that is to take its time."""
        if not self.bytes_per_s:
            request.wfile.write(part)
            return
        with contextlib.suppress(ConnectionError):
            for start in range(0, len(part), _PIECE_BYTES):
                request.wfile.write(part[start : start + _PIECE_BYTES])
                self.closing.wait(_PIECE_BYTES / self.bytes_per_s)


@contextmanager
def fake_hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """Give a hub that may be asked, without a token, and is closed behind the block."""
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    hub = FakeHub()
    try:
        yield hub
    finally:
        hub.close()


def moe_facts(num_parameters: int = 30_000_000_000, **other: Any) -> dict[str, Any]:
    """Return what a hub says of a model that can be run."""
    return {
        "config": {"model_type": "qwen3_moe"},
        "safetensors": {"parameters": {"BF16": num_parameters}, "total": num_parameters},
        "gated": False,
        "downloads": 1000,
        "likes": 10,
        "tags": ["license:apache-2.0", "text-generation"],
        "lastModified": "2026-05-31T08:00:00.000Z",
        **other,
    }


def gguf_facts(base_model: str = "", **other: Any) -> dict[str, Any]:
    """Return what a hub says of a page with files in GGUF."""
    tags = ["gguf", "license:apache-2.0", "text-generation"]
    if base_model:
        tags += [f"base_model:{base_model}", f"base_model:quantized:{base_model}"]
    return {
        "gguf": {"architecture": "qwen3moe", "total": 30_000_000_000},
        "gated": False,
        "downloads": 2000,
        "likes": 20,
        "tags": tags,
        "lastModified": "2026-05-31T08:00:00.000Z",
        **other,
    }


def _send(
    request: BaseHTTPRequestHandler, status: int, body: bytes, headers: dict[str, str] | None = None
) -> None:
    request.send_response(status)
    for name, value in (headers or {}).items():
        request.send_header(name, value)
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)


def _names(model: HubModelFiles) -> list[dict[str, str]]:
    """Name a model's files as lists do, without their sizes."""
    paths = sorted(path for path in model.folder.rglob("*") if path.is_file())
    return [{"rfilename": path.relative_to(model.folder).as_posix()} for path in paths]


def _sibling(path: Path, folder: Path) -> dict[str, Any]:
    """Describe a file as hubs do: large ones by SHA-256, others by git's hash."""
    data = path.read_bytes()
    name = path.relative_to(folder).as_posix()
    git = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
    found: dict[str, Any] = {"rfilename": name, "size": len(data), "blobId": git}
    if name.endswith((".safetensors", ".bin", ".gguf")):
        found["lfs"] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
    return found
