"""What the runtime is doing, as one closed set with its allowed changes."""

import enum
import threading

from runtime.errors import LarderError
from runtime.protocol.errors import ErrorCode


class Stage(enum.Enum):
    """The stages; ``STOPPING`` is left by nothing but the end of the process."""

    IDLE = "idle"
    LOADING = "loading"
    READY = "ready"
    GENERATING = "generating"
    STOPPING = "stopping"


class StageHolder:
    """The stage in force, and the name of the model that it speaks of.

    ::

        idle --LoadModel--> loading --done--> ready --StartGeneration--> generating
          ^                    |                ^                             |
          +--failed, cancelled-+                +-----------finished----------+

    Threads: any thread may call any method.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stage = Stage.IDLE
        self._model_name = ""

    def now(self) -> Stage:
        """Return the stage in force."""
        with self._lock:
            return self._stage

    def is_busy(self) -> bool:
        """Return whether a model is being loaded or an answer written."""
        return self.now() in (Stage.LOADING, Stage.GENERATING)

    def begin_loading(self, model_name: str) -> None:
        """Go from idle to loading; one process loads one model."""
        with self._lock:
            if self._stage is not Stage.IDLE:
                raise LarderError(ErrorCode.MODEL_ALREADY_LOADED, name=self._model_name)
            self._stage, self._model_name = Stage.LOADING, model_name

    def begin_generating(self) -> None:
        """Go from ready to generating."""
        with self._lock:
            if self._stage is Stage.IDLE:
                raise LarderError(ErrorCode.NO_MODEL_LOADED)
            if self._stage is not Stage.READY:
                raise LarderError(ErrorCode.ENGINE_BUSY, detail=self._stage.value)
            self._stage = Stage.GENERATING

    def check_loaded(self) -> None:
        """Raise ``NO_MODEL_LOADED``, or ``ENGINE_BUSY`` while one loads."""
        with self._lock:
            if self._stage is Stage.LOADING:
                raise LarderError(ErrorCode.ENGINE_BUSY, detail=self._stage.value)
            if self._stage not in (Stage.READY, Stage.GENERATING):
                raise LarderError(ErrorCode.NO_MODEL_LOADED)

    def become(self, stage: Stage) -> None:
        """Go to a stage, unless the process is stopping."""
        with self._lock:
            if self._stage is not Stage.STOPPING:
                self._stage = stage
