"""The scripted engine: gives prepared answers at a given rate, without a model and without torch.

It serves tests and people who work on the window. All its figures are made up, and are marked as
``scripted`` where a name can say so.

A user message that begins with ``script:`` overrides the script for one answer: ``script: say
TEXT``, or a fault such as ``script: crash 5``, ``hang``, ``fail``, ``bug``, after that many tokens.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePath

from runtime.engine.base import CancelToken, EngineEvent, LoadProgress, Proposals, Proposed
from runtime.engine.script import TOP_K, Fault, FaultKind, FaultPlace, Script
from runtime.engine.scripted_experts import ScriptedExperts
from runtime.engine.scripted_figures import Run, make_sample, make_stats
from runtime.engine.scripted_text import cut_text, num_common, prompt_ids_of, rest_of, token_id_of
from runtime.errors import CancelledError, LarderError
from runtime.protocol.chat import ChatMessage, FinishReason, Role, SamplingSettings
from runtime.protocol.errors import ErrorCode
from runtime.protocol.messages import (
    GenerationCancelled,
    GenerationFinished,
    GenerationStarted,
    PrefillProgressed,
    TokensGenerated,
)
from runtime.protocol.model import LoadedModel, LoadStage
from runtime.protocol.plan import PlacementPlan
from runtime.protocol.telemetry import NoteCode, RuntimeNote, TelemetrySample
from runtime.protocol.values import Tier
from runtime.tokenizer.answer import separator_of
from runtime.tokenizer.channels import CHANNEL
from runtime.tokenizer.separation import Parted, Separator

_PREFILL_CHUNK_TOKENS = 64
_OVERRIDE = "script:"
_MAX_NOTES = 50
_ANSWERS_PER_TOPIC = 3


class ScriptedEngine:
    """An engine that plays a script.

    Threads: as the engine interface says; ``crash`` is called where the script wants the process
    to end.
    """

    def __init__(self, script: Script, crash: Callable[[], None] = os.abort) -> None:
        self._script = script
        self._crash = crash
        self._plan: PlacementPlan | None = None
        self._load_s = 0.0
        self._proposals = Proposals()
        self._held_ids: list[int] = []
        self._num_answers = 0
        self._lock = threading.Lock()
        self._num_tokens_since_sample = 0
        self._notes: list[RuntimeNote] = []
        self._experts: ScriptedExperts | None = None

    def load(self, plan: PlacementPlan, progress: LoadProgress, cancel: CancelToken) -> LoadedModel:
        """Take the script's time in equal steps, a tenth of them for the dense part."""
        started_s = time.monotonic()
        steps = max(self._script.load_steps, 1)
        total_bytes = max(plan.ram_bytes, steps)
        for step in range(steps + 1):
            self._go_wrong(FaultPlace.LOAD, step, self._script.fault)
            stage = LoadStage.DENSE if step * 10 <= steps else LoadStage.EXPERTS
            progress(stage, total_bytes * step // steps, total_bytes)
            cancel.check()
            _wait(self._script.load_s / steps if step < steps else 0.0, cancel)
        cancel.check()
        self._load_s = time.monotonic() - started_s
        num_layers = max(len(plan.slots_per_layer), 1)
        num_experts = sum(share.num_experts for share in plan.tiers) // num_layers
        self._experts = ScriptedExperts(num_layers, num_experts, min(TOP_K, num_experts))
        self._note(
            NoteCode.EXPERTS_LOADED, num_experts=num_layers * num_experts, seconds=self._load_s
        )
        return self._place(plan)

    def count_tokens(self, conversation: Sequence[ChatMessage]) -> int:
        """Return a token for each word, and four for each turn."""
        return len(prompt_ids_of(conversation))

    def start(
        self,
        request_id: int,
        conversation: Sequence[ChatMessage],
        sampling: SamplingSettings,
        cancel: CancelToken,
    ) -> Iterator[EngineEvent]:
        """Give the next answer of the script, in pieces."""
        begun, pieces, fault = self._choose_answer(conversation)
        prompt_ids = prompt_ids_of(conversation)
        separator = separator_of(has_channels=CHANNEL in "".join((begun, *pieces)))
        run = Run(
            prompt_tokens=len(prompt_ids),
            reused_tokens=num_common(self._held_ids, prompt_ids[:-1]),
            seed=sampling.seed if sampling.seed is not None else 1,
            context_tokens=self._context_tokens,
        )
        if run.prompt_tokens >= run.context_tokens:
            raise LarderError(
                ErrorCode.PROMPT_TOO_LONG,
                prompt_tokens=run.prompt_tokens,
                context_tokens=run.context_tokens,
            )
        yield GenerationStarted(
            request_id=request_id,
            prompt_tokens=run.prompt_tokens,
            reused_tokens=run.reused_tokens,
            context_tokens=run.context_tokens,
        )
        try:
            yield from self._prefill(request_id, run, fault, cancel)
            self._held_ids = prompt_ids
            if begun:
                yield _tokens(request_id, separator.feed(begun))
            for piece in self._decode(pieces, sampling, run, fault, cancel):
                token_id = token_id_of(piece)
                self._held_ids.append(token_id)
                yield _tokens(request_id, separator.feed(piece), token_id)
                if separator.is_thinking:
                    run.note_thinking()
            yield from _rest(request_id, separator)
        except CancelledError:
            yield from _rest(request_id, separator)
            yield GenerationCancelled(request_id=request_id, stats=make_stats(run, self._plan))
            return
        yield GenerationFinished(
            request_id=request_id, reason=run.reason, stats=make_stats(run, self._plan)
        )

    def propose(self, plan: PlacementPlan, done: Proposed) -> None:
        """Take another plan at the next token, or when ``apply`` is called."""
        self._proposals.put(plan, done)

    def apply(self) -> None:
        """Take the newest plan that was proposed."""
        self._proposals.carry_out(self._place)

    def sample(self, interval_s: float) -> TelemetrySample:
        """Return the tokens given since the previous call, with invented figures around them."""
        with self._lock:
            num_tokens, self._num_tokens_since_sample = self._num_tokens_since_sample, 0
            notes, self._notes = self._notes, []
        plan, experts = self._plan, self._experts
        if plan is None or experts is None:
            raise LarderError(ErrorCode.NO_MODEL_LOADED)
        return make_sample(num_tokens, interval_s, plan, experts.step(num_tokens, plan), notes)

    def close(self) -> None:
        """Forget the model."""
        self._plan = None
        self._proposals.forget()

    def _place(self, plan: PlacementPlan) -> LoadedModel:
        """Let the made-up experts lie as the plan says."""
        before, self._plan = self._plan, plan
        if before is not None:
            for tier, old_bytes, new_bytes in (
                (Tier.VRAM, before.vram_bytes, plan.vram_bytes),
                (Tier.RAM, before.ram_bytes, plan.ram_bytes),
            ):
                if old_bytes != new_bytes:
                    self._note(
                        NoteCode.BUDGET_CHANGED,
                        tier=tier.value,
                        old_bytes=old_bytes,
                        new_bytes=new_bytes,
                    )
        return LoadedModel(
            folder=plan.model_folder,
            name=PurePath(plan.model_folder).name,
            model_type="scripted",
            is_exact=plan.is_exact,
            expert_format=plan.expert_format,
            context_tokens=self._context_tokens,
            tiers=plan.tiers,
            base_bytes=plan.base_bytes,
            budget_bytes=plan.ram_bytes,
            load_s=self._load_s,
            kernels="scripted",
        )

    def _note(self, code: NoteCode, **parameters: str | float) -> None:
        with self._lock:
            self._notes = [
                *self._notes[-_MAX_NOTES:],
                RuntimeNote(code=code, parameters=parameters),
            ]

    @property
    def _context_tokens(self) -> int:
        return self._script.context_tokens

    def _choose_answer(
        self, conversation: Sequence[ChatMessage]
    ) -> tuple[str, list[str], Fault | None]:
        """Return the beginning that was given before, the pieces to give, and what goes wrong."""
        asked = conversation
        begun: ChatMessage | None = None
        if asked and asked[-1].role is Role.ASSISTANT:
            *asked, begun = asked
        if not asked or asked[-1].role is not Role.USER:
            raise LarderError(
                ErrorCode.CONVERSATION_INVALID, reason="the last turn is not the person's"
            )
        answers = self._script.answers
        text = asked[-1].text
        word, _, rest = text.removeprefix(_OVERRIDE).strip().partition(" ")
        is_override = text.startswith(_OVERRIDE)
        said = [rest] if is_override and word == "say" else []
        if begun is not None:
            return *rest_of([*said, *answers], begun, self._script.pieces), None
        answer = answers[self._num_answers % len(answers)] if answers else ""
        self._num_answers += 1
        if self._num_answers % _ANSWERS_PER_TOPIC == 0:
            self._note(NoteCode.TOPIC_CHANGED, num_experts=_ANSWERS_PER_TOPIC * TOP_K)
        fault = None if is_override else self._script.fault
        if is_override and word in list(FaultKind):
            after = int(rest) if rest.strip().isdigit() else 0
            fault = Fault(FaultKind(word), FaultPlace.DECODE, after)
        return "", cut_text(said[0] if said else answer, self._script.pieces), fault

    def _prefill(
        self, request_id: int, run: Run, fault: Fault | None, cancel: CancelToken
    ) -> Iterator[EngineEvent]:
        total = run.prompt_tokens - run.reused_tokens
        done = 0
        while done < total:
            self._go_wrong(FaultPlace.PREFILL, done, fault)
            cancel.check()
            self.apply()
            chunk = min(_PREFILL_CHUNK_TOKENS, total - done)
            _wait(_seconds(chunk, self._script.prompt_tokens_per_s), cancel)
            done += chunk
            yield PrefillProgressed(request_id=request_id, done_tokens=done, total_tokens=total)
        run.end_prefill()

    def _decode(
        self,
        pieces: Sequence[str],
        sampling: SamplingSettings,
        run: Run,
        fault: Fault | None,
        cancel: CancelToken,
    ) -> Iterator[str]:
        for piece in pieces:
            self._go_wrong(FaultPlace.DECODE, run.generated_tokens, fault)
            if sampling.max_tokens and run.generated_tokens >= sampling.max_tokens:
                run.reason = FinishReason.LENGTH
                return
            if run.context_used_tokens >= run.context_tokens:
                run.reason = FinishReason.CONTEXT_FULL
                return
            self.apply()
            _wait(_seconds(1, self._script.decode_tokens_per_s), cancel)
            run.count_token()
            with self._lock:
                self._num_tokens_since_sample += 1
            yield piece
        self._go_wrong(FaultPlace.DECODE, run.generated_tokens, fault)

    def _go_wrong(self, place: FaultPlace, step: int, fault: Fault | None) -> None:
        if fault is None or fault.place is not place or step < fault.after:
            return
        match fault.kind:
            case FaultKind.CRASH:
                self._crash()
            case FaultKind.HANG:
                threading.Event().wait()
            case FaultKind.FAIL:
                raise LarderError(
                    ErrorCode.DRIVE_READ_FAILED,
                    file="scripted.safetensors",
                    offset_bytes=4096,
                    reason="as the script says",
                )
            case FaultKind.BUG:
                raise ZeroDivisionError("as the script says")


def _tokens(request_id: int, parted: Parted, *token_ids: int) -> TokensGenerated:
    return TokensGenerated(
        request_id=request_id,
        token_ids=list(token_ids),
        text=parted.answer,
        thinking=parted.thinking,
    )


def _rest(request_id: int, separator: Separator) -> Iterator[TokensGenerated]:
    """Yield what was held back, if anything was."""
    parted = separator.finish()
    if parted != Parted():
        yield _tokens(request_id, parted)


def _wait(seconds: float, cancel: CancelToken) -> None:
    """Let time pass; raise ``CancelledError`` as soon as the end is asked for."""
    if seconds > 0:
        cancel.wait(seconds)
    cancel.check()


def _seconds(num_tokens: int, tokens_per_s: float) -> float:
    return num_tokens / tokens_per_s if tokens_per_s > 0 else 0.0
