"""The tiered engine: one loaded model that answers conversations."""

import secrets
import time
from collections.abc import Callable, Iterator, Sequence

import psutil
import torch

from runtime.engine.base import CancelToken, EngineEvent, LoadProgress
from runtime.errors import LarderError
from runtime.generate.answer import Answer, AnswerRequest
from runtime.generate.loading import LoadedParts, load_parts
from runtime.generate.sampling import check_settings
from runtime.generate.statistics import AnswerMeter, Clock, Ground, Instruments
from runtime.hardware.power import EnergyMeter
from runtime.kernels.base import Kernels
from runtime.kernels.dispatch import choose_kernels
from runtime.protocol.chat import ChatMessage, SamplingSettings
from runtime.protocol.errors import ErrorCode
from runtime.protocol.model import LoadedModel
from runtime.protocol.plan import PlacementPlan
from runtime.protocol.telemetry import TelemetrySample
from runtime.telemetry.recorder import Counters, Sampler

MAX_DRAWN_SEED = 2**31


def _draw_seed() -> int:
    """Return a seed that nobody can guess, short enough to be typed again."""
    return secrets.randbelow(MAX_DRAWN_SEED)


class TieredEngine:
    """Answers with experts in RAM and on the drive; see ``Engine`` for the contract.

    Threads: as ``Engine`` says; ``sample`` reads counters that the engine thread writes.
    """

    def __init__(
        self,
        kernels: Kernels | None = None,
        clock: Clock = time.perf_counter,
        draw_seed: Callable[[], int] = _draw_seed,
    ) -> None:
        self._kernels = choose_kernels() if kernels is None else kernels
        if self._kernels.is_row_invariant:
            # Native kernels bring their own threads; torch's would only be in their way.
            torch.set_num_threads(1)
        self._draw_seed = draw_seed
        self._process = psutil.Process()
        self._counters = Counters()
        self._sampler = Sampler(self._counters)
        self._instruments = Instruments(self._counters, clock, self._resident_bytes, EnergyMeter())
        self._parts: LoadedParts | None = None
        self._ground = Ground(0, 0, 0, None)

    def load(self, plan: PlacementPlan, progress: LoadProgress, cancel: CancelToken) -> LoadedModel:
        """Make the planned model ready; see ``Engine.load``."""
        if self._parts is not None:
            raise LarderError(ErrorCode.MODEL_ALREADY_LOADED, name=self._parts.name)
        started_s = self._instruments.clock()
        parts = load_parts(
            plan, self._kernels, self._counters, self._resident_bytes, progress, cancel
        )
        base_bytes = parts.base_bytes
        budget_bytes = parts.ledger.limit_bytes
        self._parts = parts
        self._ground = Ground(base_bytes, budget_bytes, plan.context_tokens, plan.forecast)
        return LoadedModel(
            folder=plan.model_folder,
            name=parts.name,
            model_type=parts.spec.model_type,
            is_exact=plan.is_exact,
            expert_format=plan.expert_format,
            context_tokens=plan.context_tokens,
            tiers=plan.tiers,
            base_bytes=base_bytes,
            budget_bytes=budget_bytes,
            load_s=self._instruments.clock() - started_s,
            kernels=self._kernels.name,
        )

    def count_tokens(self, conversation: Sequence[ChatMessage]) -> int:
        """Return the prompt tokens that this conversation would take."""
        return len(self._encode(conversation))

    def start(
        self,
        request_id: int,
        conversation: Sequence[ChatMessage],
        sampling: SamplingSettings,
        cancel: CancelToken,
    ) -> Iterator[EngineEvent]:
        """Return the events of one answer; refusals are raised here, before computing."""
        meter = AnswerMeter(self._instruments, self._ground)
        parts = self._loaded()
        check_settings(sampling)
        prompt_ids = self._encode(conversation)
        if len(prompt_ids) >= parts.kv.context_tokens:
            raise LarderError(
                ErrorCode.PROMPT_TOO_LONG,
                prompt_tokens=len(prompt_ids),
                context_tokens=parts.kv.context_tokens,
            )
        seed = self._draw_seed() if sampling.seed is None else sampling.seed
        request = AnswerRequest(request_id, prompt_ids, sampling, seed, cancel)
        return Answer(parts, request, meter).events()

    def sample(self, interval_s: float) -> TelemetrySample:
        """Return what happened since the previous call."""
        parts = self._parts
        ram_by_kind = {} if parts is None else parts.ledger.by_kind()
        return self._sampler.sample(interval_s, self._resident_bytes(), ram_by_kind)

    def close(self) -> None:
        """Give back memory and files; the engine cannot be used any more."""
        parts, self._parts = self._parts, None
        if parts is not None:
            parts.close()

    def _encode(self, conversation: Sequence[ChatMessage]) -> list[int]:
        """Return the prompt's ids; raise ``CONVERSATION_INVALID`` if the model cannot take them."""
        parts = self._loaded()
        if not conversation:
            raise LarderError(ErrorCode.CONVERSATION_INVALID, reason="it is empty")
        prompt_ids = parts.tokenizer.encode_conversation(conversation)
        if not prompt_ids or max(prompt_ids) >= parts.spec.vocabulary_size:
            raise LarderError(
                ErrorCode.CONVERSATION_INVALID,
                detail=f"{len(prompt_ids)} ids, vocabulary of {parts.spec.vocabulary_size}",
                reason="its words are none that the model knows",
            )
        return prompt_ids

    def _loaded(self) -> LoadedParts:
        """Return the loaded parts; raise ``NO_MODEL_LOADED`` if there are none."""
        if self._parts is None:
            raise LarderError(ErrorCode.NO_MODEL_LOADED)
        return self._parts

    def _resident_bytes(self) -> int:
        """Return how much of this process lies in RAM now."""
        return int(self._process.memory_info().rss)
