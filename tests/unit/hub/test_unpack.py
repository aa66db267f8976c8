"""The archive of a newer version: whole beside the old one, or nothing of it."""

import io
import os
import tarfile
from pathlib import Path

import pytest

from runtime.engine.base import CancelToken
from runtime.errors import CancelledError, LarderError, report_of
from runtime.hub.unpack import READY, unpack_beside
from runtime.protocol.errors import ErrorCode
from runtime.protocol.sentences import sentence


def entry(name: str, text: bytes = b"", **facts: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(text)
    for key, value in facts.items():
        setattr(info, key, value)
    return info, text


def pack(path: Path, *entries: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:xz", format=tarfile.PAX_FORMAT) as archive:
        for info, text in entries:
            archive.addfile(info, io.BytesIO(text))
    return path


def left_in(folder: Path) -> set[str]:
    """What lies there beside the test's own home."""
    return {path.name for path in folder.iterdir()} - {"home"}


GOOD = (
    entry("larder-0.2.0", type=tarfile.DIRTYPE, mode=0o755),
    entry("larder-0.2.0/python", type=tarfile.DIRTYPE, mode=0o755),
    entry("larder-0.2.0/python/модуль 模块.py", b"x = 1\n", mode=0o644),
    entry("larder-0.2.0/larder", b"program", mode=0o755),
    entry("larder-0.2.0/larderctl", type=tarfile.SYMTYPE, linkname="larder"),
)


def test_archive_is_unpacked_without_its_top_and_marked_whole_last(tmp_path: Path) -> None:
    archive = pack(tmp_path / "new.tar.xz", *GOOD)
    place = tmp_path / "мой larder"
    (tmp_path / "мой larder.new" / "left of a broken try").mkdir(parents=True)
    fresh = unpack_beside(archive, place, CancelToken())
    assert fresh == tmp_path / "мой larder.new"
    names = {path.relative_to(fresh).as_posix() for path in fresh.rglob("*")}
    assert names == {"larder", "larderctl", "python", "python/модуль 模块.py", READY}
    assert os.access(fresh / "larder", os.X_OK)
    assert not os.access(fresh / "python" / "модуль 模块.py", os.X_OK) or os.geteuid() == 0
    assert (fresh / "larderctl").readlink() == Path("larder")
    assert not archive.exists()


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (entry("top/../../out", b"x"), "leads out of its folder"),
        (entry("/etc/out", b"x"), "leads out of its folder"),
        (entry("top/link", type=tarfile.SYMTYPE, linkname="../out"), "leads out of its folder"),
        (entry("top/link", type=tarfile.SYMTYPE, linkname="/etc"), "leads out of its folder"),
        (entry("top/pipe", type=tarfile.FIFOTYPE), "neither a file nor a folder"),
    ],
)
def test_archive_that_reaches_outside_is_refused_and_leaves_nothing(
    tmp_path: Path, bad: tuple[tarfile.TarInfo, bytes], reason: str
) -> None:
    archive = pack(tmp_path / "new.tar.xz", *GOOD, bad)
    with pytest.raises(LarderError) as caught:
        unpack_beside(archive, tmp_path / "larder", CancelToken())
    assert caught.value.code is ErrorCode.FILE_INVALID
    assert reason in sentence(report_of(caught.value))
    assert left_in(tmp_path) == {archive.name}


def test_archive_without_the_program_is_refused(tmp_path: Path) -> None:
    archive = pack(tmp_path / "new.tar.xz", *GOOD[:3])
    with pytest.raises(LarderError, match="it holds no larder"):
        unpack_beside(archive, tmp_path / "larder", CancelToken())


@pytest.mark.parametrize("content", [b"", b"no archive", "half"])
def test_file_that_is_no_archive_is_told(tmp_path: Path, content: bytes | str) -> None:
    archive = pack(tmp_path / "new.tar.xz", *GOOD)
    data = archive.read_bytes()
    archive.write_bytes(data[: len(data) // 2] if isinstance(content, str) else content)
    with pytest.raises(LarderError) as caught:
        unpack_beside(archive, tmp_path / "larder", CancelToken())
    assert caught.value.code is ErrorCode.FILE_INVALID
    assert left_in(tmp_path) == {archive.name}


def test_drive_that_refuses_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    archive = pack(tmp_path / "new.tar.xz", *GOOD)
    monkeypatch.setattr("runtime.hub.unpack.shutil.copyfileobj", refuse)
    with pytest.raises(LarderError) as caught:
        unpack_beside(archive, tmp_path / "larder", CancelToken())
    assert caught.value.code is ErrorCode.DISK_FULL


def test_wish_to_stop_leaves_nothing(tmp_path: Path) -> None:
    archive = pack(tmp_path / "new.tar.xz", *GOOD)
    cancel = CancelToken()
    cancel.cancel()
    with pytest.raises(CancelledError):
        unpack_beside(archive, tmp_path / "larder", cancel)
    assert left_in(tmp_path) == {archive.name}
