"""The real runtime on a drive that fails when a test says so; run as a module in its place."""

import contextlib
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from runtime.service.handles import claim_streams

FOLDER_VARIABLE = "LARDER_TEST_FAULTS"
"""The folder in which a test puts down what goes wrong."""
_SETTLE_S = 0.3
"""Far longer than a reader takes to its next read."""
_NOWHERE = 64
"""An address that belongs to no process."""


class Faults:
    """What goes wrong with the drive of a running runtime, as files that both sides see."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._gate = threading.Lock()

    @contextlib.contextmanager
    def failing(self, error_number: int) -> Iterator[None]:
        """Have every read of an expert fail with an error of the system for a while."""
        self._put("fail", str(error_number))
        yield
        (self._folder / "fail").unlink()

    def stall(self, seconds: float) -> None:
        """Have the next read of an expert take so long."""
        self._put("stall", str(seconds))

    def crash(self) -> None:
        """Have the next kernel that computes experts read where no memory is."""
        self._put("crash", "")

    def wants_crash(self) -> bool:
        """Whether the kernel that asks is to crash."""
        return self._take("crash") is not None

    def hold_readers(self) -> None:
        """Have all readers stand still from now on.

        The stack of one that runs while it is written breaks off what is written.
        """
        self._gate.acquire()
        threading.Event().wait(_SETTLE_S)

    def meet(self) -> str:
        """Let what was put down happen to the calling reader; return why its read fails."""
        with self._gate:
            pass
        with contextlib.suppress(FileNotFoundError):
            return os.strerror(int((self._folder / "fail").read_text(encoding="ascii")))
        seconds = self._take("stall")
        if seconds is not None:
            threading.Event().wait(float(seconds))
        return ""

    def _put(self, name: str, text: str) -> None:
        """Put a file down whole."""
        (self._folder / f"{name}.new").write_text(text, encoding="ascii")
        (self._folder / f"{name}.new").replace(self._folder / name)

    def _take(self, name: str) -> str | None:
        """Take what one reader alone gets; None if there is nothing."""
        taken = self._folder / f"{name}.{threading.get_ident()}"
        try:
            (self._folder / name).rename(taken)
        except FileNotFoundError:
            return None
        return taken.read_text(encoding="ascii")


def _make_faulty(faults: Faults) -> None:
    """Wrap every store that is opened from now on."""
    from runtime.errors import LarderError
    from runtime.inspect.inspection import Inspection
    from runtime.protocol.errors import ErrorCode
    from runtime.spec.tensors import ExpertId
    from runtime.store import open as opening
    from runtime.store.base import ExpertStore
    from runtime.store.throttled import ThrottledStore

    class FaultyStore(ThrottledStore):
        """A store whose reads of experts meet the faults."""

        def read_expert(self, expert: ExpertId, target: memoryview) -> None:
            reason = faults.meet()
            if reason:
                file, offset_bytes = self.place_of(expert)
                raise LarderError(
                    ErrorCode.DRIVE_READ_FAILED,
                    file=file,
                    offset_bytes=offset_bytes,
                    reason=reason,
                )
            super().read_expert(expert, target)

    open_store = opening.open_store

    def open_faulty(inspection: Inspection, store_folder: str, **options: bool) -> ExpertStore:
        return FaultyStore(open_store(inspection, store_folder, **options), bytes_per_s=1e15)

    opening.open_store = open_faulty


def _make_wild(faults: Faults) -> None:
    """Have the kernel of experts follow a wild address when told to, in one thread.

    Two that crash in the same moment cut off each other's stack.
    """
    from runtime.kernels.native import NativeKernels

    class WildModule:
        """The extension, whose next computing of experts reads its input from nowhere."""

        def __init__(self, module: Any) -> None:
            self._module = module

        def __getattr__(self, name: str) -> Any:
            return getattr(self._module, name)

        def experts(self, x: int, *others: Any) -> None:
            if faults.wants_crash():
                faults.hold_readers()
                self._module.set_num_threads(1)
                x = _NOWHERE
            self._module.experts(x, *others)

    begin = NativeKernels.__init__

    def begin_wild(self: NativeKernels, module: Any) -> None:
        begin(self, WildModule(module))

    NativeKernels.__init__ = begin_wild  # type: ignore[method-assign]


def main(environment: Mapping[str, str]) -> int:
    """Run the background process with the faults of the folder that the environment names."""
    streams = claim_streams()
    from runtime.service.process import run_process

    faults = Faults(Path(environment[FOLDER_VARIABLE]))
    _make_faulty(faults)
    _make_wild(faults)
    return run_process(streams, sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main(os.environ))
