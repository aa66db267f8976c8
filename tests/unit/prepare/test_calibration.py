"""What was learnt of a model is read from its file, or begun anew where that is damaged."""

import errno
import json
from pathlib import Path

import numpy as np
import pytest

from runtime.errors import LarderError
from runtime.prepare.calibration import (
    Calibration,
    Identity,
    read_calibration,
    write_calibration,
)
from runtime.protocol.errors import ErrorCode

_FINGERPRINT = "some model"


def _written(path: Path, num_tokens: int = 100) -> Path:
    found = Calibration(
        identity=Identity(_FINGERPRINT, "some text", 100),
        num_tokens=num_tokens,
        uses=np.ones((2, 3), np.uint64),
        inputs=np.ones((2, 4)),
        hidden=np.ones((2, 3, 5), np.float32),
        outputs=np.ones((2, 3)),
        stream=np.ones(4),
        dense={"some.weight": np.ones(5)},
        trials={"experts": 0.5},
    )
    write_calibration(path, found)
    return path


def test_one_wrong_bit_anywhere_is_told_by_nothing_worse_than_no_calibration(
    tmp_path: Path,
) -> None:
    path = _written(tmp_path / "some.npz")
    whole = path.read_bytes()
    num_damaged = 0
    for place in range(0, len(whole), 3):
        # Eight bits of a byte in turn, each at other places of the file.
        path.write_bytes(
            whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :]
        )
        num_damaged += read_calibration(path, _FINGERPRINT) is None
    assert num_damaged > len(whole) // 6
    path.write_bytes(whole)
    assert read_calibration(path, _FINGERPRINT) is not None


def test_full_drive_needs_no_less_than_the_file_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    num_bytes = _written(tmp_path / "some.npz").stat().st_size

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(LarderError) as refused:
        _written(tmp_path / "other.npz")
    assert refused.value.code is ErrorCode.DISK_FULL
    assert num_bytes <= int(str(refused.value.parameters["needed_bytes"])) < 3 * num_bytes


@pytest.mark.parametrize(
    "told", [{"total_tokens": 1e400}, {"done": 101}, {"done": -1}, {"trials": {"experts": "much"}}]
)
def test_what_cannot_be_is_no_calibration(tmp_path: Path, told: dict[str, object]) -> None:
    path = _written(tmp_path / "some.npz")
    with np.load(path) as arrays:
        kept = {name: arrays[name] for name in arrays.files}
    document = json.loads(kept["told"].tobytes()) | told
    kept["told"] = np.frombuffer(json.dumps(document).encode(), np.uint8)
    np.savez(path, allow_pickle=False, **kept)
    assert read_calibration(path, _FINGERPRINT) is None
