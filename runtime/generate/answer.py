"""The life of one answer: prefill, decode, end."""

import dataclasses
import secrets
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch

from runtime.engine.base import CancelToken, EngineEvent
from runtime.errors import CancelledError
from runtime.generate.card_guard import CardGuard
from runtime.generate.loading import LoadedParts
from runtime.generate.long_prompts import room_for_prompt
from runtime.generate.sampling import RepetitionPenalty, choose_token
from runtime.generate.statistics import AnswerMeter, ThinkingTime
from runtime.generate.stopping import StopFilter
from runtime.protocol.chat import FinishReason, GenerationStats, SamplingSettings
from runtime.protocol.messages import (
    GenerationCancelled,
    GenerationFinished,
    GenerationStarted,
    PrefillProgressed,
    TokensGenerated,
)
from runtime.tokenizer.chat import Begun
from runtime.tokenizer.separation import Parted

MAX_DRAWN_SEED = 2**31
BATCH_S = 0.03
"""Tokens that follow each other faster are sent together."""
TOKENS_PER_PROBE = 8
"""Resident size is looked at once in so many tokens."""


def draw_seed() -> int:
    """Return a seed that nobody can guess, short enough to be typed again."""
    return secrets.randbelow(MAX_DRAWN_SEED)


@dataclasses.dataclass(frozen=True, slots=True)
class AnswerRequest:
    """What is asked: prompt ids, how to choose, and the wish to stop."""

    request_id: int
    prompt_ids: Sequence[int]
    sampling: SamplingSettings
    seed: int
    cancel: CancelToken
    opened_by: str = ""
    """The tag of the thinking that the prompt leaves open."""
    begun: Begun | None = None
    """The answer at the end of the prompt that goes on."""


class Answer:
    """One answer from prompt ids to the last event.

    What was computed before a cancel stays valid in the KV cache.

    Threads: the engine thread.
    """

    def __init__(
        self,
        parts: LoadedParts,
        request: AnswerRequest,
        meter: AnswerMeter,
        begin_step: Callable[[], None],
        guard: CardGuard,
    ) -> None:
        self._parts = parts
        self._begin_step = begin_step
        self._guard = guard
        self._request = request
        self._meter = meter
        self._stream = parts.tokenizer.answer_stream(request.opened_by)
        self._stops = StopFilter(request.sampling.stop)
        self._penalty = RepetitionPenalty(request.sampling.repetition_penalty, request.prompt_ids)
        self._random = np.random.Generator(np.random.PCG64(request.seed))
        self._pending_ids: list[int] = []
        self._pending = Parted()
        self._thinking = ThinkingTime(meter.clock)
        self._sent_s = float("-inf")
        self._reused_tokens = 0
        self._num_generated = 0
        if request.begun is not None:
            self._take(Parted(request.begun.thinking) + self._stream.push(request.begun.ids))

    def events(self) -> Iterator[EngineEvent]:
        """Yield everything from ``GenerationStarted`` to the closing event."""
        request_id = self._request.request_id
        prompt_ids = self._request.prompt_ids
        kv = self._parts.kv
        # The last token's logits are wanted, so that one is always computed.
        self._reused_tokens = kv.keep_prefix(prompt_ids, len(prompt_ids) - 1)
        yield GenerationStarted(
            request_id=request_id,
            prompt_tokens=len(prompt_ids),
            reused_tokens=self._reused_tokens,
            context_tokens=kv.context_tokens,
        )
        try:
            new_ids = prompt_ids[self._reused_tokens :]
            logits = torch.empty(0)
            done = 0
            with room_for_prompt(self._parts, len(new_ids)):
                while done < len(new_ids):
                    self._begin_step()
                    chunk = new_ids[done : done + self._parts.home.chunk_tokens]
                    done += len(chunk)
                    logits = self._prefill(chunk, is_last=done == len(new_ids))
                    yield PrefillProgressed(
                        request_id=request_id, done_tokens=done, total_tokens=len(new_ids)
                    )
            reason = None
            while True:
                token_id, reason = self._choose(logits)
                if reason is not None or self._meter.clock() - self._sent_s >= BATCH_S:
                    yield self._batch()
                if reason is not None:
                    break
                self._begin_step()
                logits = self._decode(token_id)
            yield GenerationFinished(request_id=request_id, reason=reason, stats=self._statistics())
        except CancelledError:
            self._finish_text()
            if self._pending_ids or self._pending != Parted():
                yield self._batch()
            yield GenerationCancelled(request_id=request_id, stats=self._statistics())

    def _prefill(self, chunk: Sequence[int], *, is_last: bool) -> torch.Tensor:
        """Compute a chunk of the prompt; return the last token's logits if it is the last chunk."""
        meter, counters = self._meter, self._meter.counters
        meter.begin_step()
        try:
            hidden = self._forward(chunk)
            logits = self._logits(hidden[-1:]) if is_last else hidden[:0]
            counters.num_prompt_tokens += len(chunk)
        finally:
            counters.prefill_s += meter.end_step()
            meter.probe()
        return logits

    def _decode(self, token_id: int) -> torch.Tensor:
        """Compute one generated token and return the next token's logits."""
        meter, counters = self._meter, self._meter.counters
        meter.begin_step()
        try:
            logits = self._logits(self._forward((token_id,)))
            counters.num_decoded_tokens += 1
        finally:
            counters.decode_s += meter.end_step()
        return logits

    def _forward(self, token_ids: Sequence[int]) -> torch.Tensor:
        """Put tokens through all layers and keep their KV entries; one step."""
        cancel = self._request.cancel
        kv = self._parts.kv

        def after_layer(layer: int) -> None:
            del layer
            cancel.check()

        cancel.check()
        kv.reserve(len(token_ids))
        model = self._parts.model
        hidden = self._guard.run(
            lambda: model.forward(token_ids, kv.num_tokens, kv.layers, after_layer)
        )
        kv.commit(token_ids)
        self._meter.counters.ram_bytes_read += self._parts.home.dense_bytes_per_step
        return hidden

    def _logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return the logits of hidden rows."""
        return self._guard.run(lambda: self._parts.model.logits(hidden))

    def _choose(self, logits: torch.Tensor) -> tuple[int, FinishReason | None]:
        """Choose the next token, take its text, and say whether the answer ends with it."""
        # What went wrong on a card is often told only where its results are waited for.
        values = self._guard.run(lambda: logits[0].cpu().numpy())
        self._penalty.apply(values)
        token_id = choose_token(values, self._request.sampling, self._random.random())
        self._penalty.note(token_id)
        self._num_generated += 1
        self._meter.note_token()
        if self._num_generated % TOKENS_PER_PROBE == 0:
            self._meter.probe()
        self._pending_ids.append(token_id)
        self._take(self._stream.push((token_id,)))
        self._thinking.note(is_thinking=self._stream.is_thinking)
        reason = self._finish_reason(token_id)
        if reason is not None:
            self._finish_text()
        return token_id, reason

    def _finish_reason(self, token_id: int) -> FinishReason | None:
        """Return why the answer ends with this token, or None."""
        if token_id in self._parts.eos_ids or self._stops.is_stopped:
            return FinishReason.STOP
        if self._num_generated == self._request.sampling.max_tokens:
            return FinishReason.LENGTH
        if len(self._request.prompt_ids) + self._num_generated >= self._parts.kv.context_tokens:
            return FinishReason.CONTEXT_FULL
        return None

    def _finish_text(self) -> None:
        """Take the text that was held back; nothing comes after it."""
        self._take(self._stream.finish())
        self._pending += Parted(answer=self._stops.finish())

    def _take(self, parted: Parted) -> None:
        """Take text that became certain; stop strings are looked for in the answer alone."""
        self._pending += Parted(parted.thinking, self._stops.feed(parted.answer))

    def _batch(self) -> TokensGenerated:
        """Return what was not sent yet."""
        event = TokensGenerated(
            request_id=self._request.request_id,
            token_ids=self._pending_ids,
            text=self._pending.answer,
            thinking=self._pending.thinking,
        )
        self._pending_ids = []
        self._pending = Parted()
        self._sent_s = self._meter.clock()
        return event

    def _statistics(self) -> GenerationStats:
        """Return what the answer took until now."""
        return self._meter.statistics(
            prompt_tokens=len(self._request.prompt_ids),
            reused_tokens=self._reused_tokens,
            generated_tokens=self._num_generated,
            seed=self._request.seed,
            thinking_s=self._thinking.seconds,
        )
