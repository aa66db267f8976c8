"""The tiered engine: one loaded model that answers conversations."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import psutil
import torch

from runtime.device.base import Device
from runtime.engine.base import CancelToken, EngineEvent, LoadProgress, Proposals, Proposed
from runtime.errors import LarderError
from runtime.generate.answer import Answer, AnswerRequest, draw_seed
from runtime.generate.card_guard import CardGuard
from runtime.generate.diary import Diary
from runtime.generate.last_use import LastUses
from runtime.generate.learning import learn_of_devices
from runtime.generate.limits import rate_limits
from runtime.generate.loading import LoadedParts, Tools, load_parts
from runtime.generate.long_prompts import end_loan
from runtime.generate.notes import (
    budget_note,
    card_full_note,
    card_starts_pieces_note,
    card_unpacks_note,
    loaded_note,
    pressure_note,
    stall_note,
    topic_note,
)
from runtime.generate.placing import check_placement, place
from runtime.generate.plan_terms import ram_limit_bytes, vram_budget_bytes
from runtime.generate.recording import end_recording, record_routing, recorded
from runtime.generate.sampling import check_settings
from runtime.generate.statistics import AnswerMeter, Clock, Ground, Instruments, Surroundings
from runtime.generate.topics import TopicWatch
from runtime.hardware.past_runs import PastRuns
from runtime.hardware.power import EnergyMeter, stated_terms
from runtime.hardware.strain import StrainMeter
from runtime.kernels.base import Kernels
from runtime.kernels.dispatch import choose_device_kernels, choose_kernels
from runtime.kernels.layer_graphs import LayerGraphs
from runtime.kernels.reference import ReferenceKernels
from runtime.memory.heap import give_back_freed
from runtime.policy.catalogue import DEFAULT_POLICY, POLICIES
from runtime.protocol.chat import ChatMessage, Role, SamplingSettings
from runtime.protocol.errors import ErrorCode
from runtime.protocol.model import LoadedModel
from runtime.protocol.plan import PlacementPlan
from runtime.protocol.telemetry import TelemetrySample
from runtime.protocol.values import Tier
from runtime.residency.trial import HintMode
from runtime.residency.watch import StalledRead, log_stall
from runtime.telemetry.recorder import Counters
from runtime.telemetry.sampler import Gauges, NoteBox, Sampler
from runtime.tokenizer.chat import Prompt


class TieredEngine:
    """Answers with experts in RAM and on the drive; see ``Engine`` for the contract.

    Threads: as ``Engine`` says; ``sample`` reads counters that the engine thread writes.
    """

    def __init__(
        self,
        kernels: Kernels | None = None,
        clock: Clock = time.perf_counter,
        draw_seed: Callable[[], int] = draw_seed,
        rates_path: Path | None = None,
        policy: str = DEFAULT_POLICY,
        routing_folder: Path | None = None,
        last_uses: LastUses | None = None,
    ) -> None:
        """``policy`` names the kind that decides who stays in RAM; the lab compares others.

        ``last_uses`` knows which experts are read first. Which experts are chosen is written to
        ``routing_folder``, if there is one.
        """
        self.past_runs: PastRuns | None = None
        """Keeps what answers took, where that is wanted; before loading."""
        self._diary: Diary | None = None
        self._routing_folder = routing_folder
        self.hints = HintMode.MEASURED
        """Whether the drive reads ahead what the next layer will probably need; before loading."""
        self._last_uses = last_uses
        self._policy = POLICIES[policy]
        self._kernels = choose_kernels() if kernels is None else kernels
        if self._kernels.is_row_invariant:
            # Native kernels bring their own threads; torch's would only be in their way.
            torch.set_num_threads(1)
        self._draw_seed = draw_seed
        self._rates_path = rates_path
        self._process = psutil.Process()
        self._counters = Counters()
        self._notes = NoteBox()
        self._topics = TopicWatch(self._counters, self._note_topic)
        self._proposals = Proposals()
        meter = EnergyMeter(terms=stated_terms(os.environ))
        self._instruments = Instruments(self._counters, clock, self._resident_bytes, meter)
        self._parts: LoadedParts | None = None
        self._guard: CardGuard | None = None
        self._told_of: LayerGraphs | None = None
        """The recordings that failed and whose failure was told."""
        self._model: LoadedModel | None = None
        self._sampler: Sampler | None = None

    @property
    def counters(self) -> Counters:
        """Amounts since the engine was made, as they are now."""
        return self._counters.copy()

    def load(self, plan: PlacementPlan, progress: LoadProgress, cancel: CancelToken) -> LoadedModel:
        """Make the planned model ready; see ``Engine.load``."""
        if self._parts is not None:
            raise LarderError(ErrorCode.MODEL_ALREADY_LOADED, name=self._parts.name)
        started_s = self._instruments.clock()
        parts = load_parts(
            plan,
            Tools(
                kernels=self._kernels,
                counters=self._counters,
                probe=self._resident_bytes,
                fill_ended=self._note_filled,
                device_opened=self._learn,
                policy=self._policy,
                stalled=self._note_stall,
                last_uses=self._last_uses,
            ),
            progress,
            cancel,
        )
        parts.experts.set_hints(self.hints)
        if self._routing_folder is not None:
            record_routing(parts, self._routing_folder)
        if self.past_runs is not None:
            self._diary = Diary(self.past_runs, parts, self._kernels.name)
        self._parts = parts
        self._guard = CardGuard(parts, self._counters, self._note_full_card)
        self._sampler = self._sampler_of(parts)
        self._model = LoadedModel(
            folder=plan.model_folder,
            name=parts.name,
            model_type=parts.spec.model_type,
            is_exact=plan.is_exact,
            expert_format=plan.expert_format,
            context_tokens=plan.context_tokens,
            tiers=parts.plan.tiers,
            base_bytes=parts.base_bytes,
            budget_bytes=parts.ledger.limit_bytes,
            load_s=self._instruments.clock() - started_s,
            kernels=self._kernels.name,
            mean_bits=parts.experts.mean_bits,
        )
        if parts.device is not None and _unpacks(parts.device):
            self._notes.put(card_unpacks_note())
        if parts.plan is not plan:
            self._note_full_card(plan, parts.plan)
        return self._model

    def count_tokens(self, conversation: Sequence[ChatMessage]) -> int:
        """Return the prompt tokens that this conversation would take."""
        return len(self._encode(conversation).ids)

    def start(
        self,
        request_id: int,
        conversation: Sequence[ChatMessage],
        sampling: SamplingSettings,
        cancel: CancelToken,
    ) -> Iterator[EngineEvent]:
        """Return the events of one answer; refusals are raised here, before computing."""
        parts = self._loaded()
        meter = self._meter_of(parts)
        check_settings(sampling)
        prompt = self._encode(conversation)
        prompt_ids = prompt.ids
        if len(prompt_ids) >= parts.kv.context_tokens:
            raise LarderError(
                ErrorCode.PROMPT_TOO_LONG,
                prompt_tokens=len(prompt_ids),
                context_tokens=parts.kv.context_tokens,
            )
        seed = self._draw_seed() if sampling.seed is None else sampling.seed
        request = AnswerRequest(
            request_id, prompt_ids, sampling, seed, cancel, prompt.opened_by, prompt.begun
        )
        if parts.experts.recorder is not None:
            parts.experts.recorder.end_sequence()
        self._topics.begin_answer()
        assert self._guard is not None, "parts come with a guard"
        answer = Answer(parts, request, meter, self._begin_step, self._guard)
        events = recorded(parts, answer.events())
        return events if self._diary is None else self._diary.kept(events)

    def propose(self, plan: PlacementPlan, done: Proposed) -> None:
        """Ask for another placement; see ``Engine.propose``."""
        self._proposals.put(plan, done)

    def apply(self) -> None:
        """Carry out what was proposed, if anything waits."""
        if self._parts is not None:
            self._begin_step()

    def sample(self, interval_s: float) -> TelemetrySample:
        """Return what happened since the previous call."""
        if self._sampler is None:
            raise LarderError(ErrorCode.NO_MODEL_LOADED)
        return self._sampler.sample(interval_s)

    def wait_filled(self, timeout_s: float) -> bool:
        """Wait until no expert is read in the background; return whether that was in time."""
        return self._loaded().experts.wait_filled(timeout_s)

    def close(self) -> None:
        """Give back memory and files; the engine cannot be used any more."""
        self._proposals.forget()
        self._instruments.energy.close()
        if self._sampler is not None:
            self._sampler.close()
        parts, self._parts = self._parts, None
        if parts is not None:
            parts.keep_use(self._last_uses)
            parts.close()
            end_recording(parts)

    def _begin_step(self) -> None:
        """Do what may be done between two steps alone."""
        if self._proposals.is_waiting:
            self._proposals.carry_out(self._change)
        self._topics.look()
        if self._guard is not None:
            self._guard.look()
        graphs = self._loaded().home.graphs
        if graphs is not None and graphs.failure is not None and graphs is not self._told_of:
            self._told_of = graphs
            self._notes.put(card_starts_pieces_note())
        self._loaded().experts.begin_step()

    def _change(self, plan: PlacementPlan) -> LoadedModel:
        """Place the loaded model as another plan says."""
        parts, model = self._loaded(), self._model
        assert model is not None, "parts come with a model"
        end_loan(parts)
        check_placement(parts, plan)
        before, before_bytes = parts.plan, parts.ledger.limit_bytes
        assert self._guard is not None, "parts come with a guard"
        try:
            place(parts, plan, self._kernels, self._counters)
        except LarderError:
            self._guard.settle()
            raise
        self._topics.forget()
        self._guard.forget()
        after_bytes = ram_limit_bytes(plan)
        changes = (
            (Tier.VRAM, vram_budget_bytes(before), vram_budget_bytes(plan)),
            (Tier.RAM, before_bytes, after_bytes),
        )
        note = pressure_note(before, plan)
        if note is not None:
            self._notes.put(note)
        for tier, old_bytes, new_bytes in changes:
            if old_bytes != new_bytes and note is None:
                self._notes.put(budget_note(tier, old_bytes, new_bytes))
        self._model = msgspec.structs.replace(model, tiers=plan.tiers, budget_bytes=after_bytes)
        # It takes a while: what is read in the background may be in and told before it ends.
        give_back_freed()
        return self._model

    def _learn(self, device: Device | None) -> None:
        """Keep for later plans what an opened device tells, where anything is kept."""
        if self._rates_path is not None:
            learn_of_devices(self._rates_path, device)

    def _note_full_card(self, before: PlacementPlan, plan: PlacementPlan) -> None:
        """Tell that the card's budget was lowered."""
        self._notes.put(card_full_note(vram_budget_bytes(before), vram_budget_bytes(plan)))
        if self._model is not None:
            self._model = msgspec.structs.replace(self._model, tiers=plan.tiers)

    def _note_topic(self, num_experts: int) -> None:
        """Tell that an answer needs other experts now."""
        self._notes.put(topic_note(num_experts))

    def _note_filled(self, num_experts: int, seconds: float) -> None:
        """Tell that loading in the background ended; called by any thread."""
        if num_experts:
            self._notes.put(loaded_note(num_experts, seconds))

    def _note_stall(self, stalled: StalledRead) -> None:
        """Tell that the drive does not answer a read; called by the watch's thread."""
        log_stall(stalled)
        self._notes.put(stall_note(stalled))

    def _sampler_of(self, parts: LoadedParts) -> Sampler:
        """Return what makes samples of a loaded model."""
        gauges = Gauges(
            resident_bytes=self._resident_bytes,
            ram_by_kind=lambda: {} if self._parts is None else parts.ledger.by_kind(),
            vram_by_kind=parts.vram_by_kind,
            drive_bytes=parts.drive_bytes.read,
            link_bytes=parts.link_bytes,
            limits=rate_limits(parts.plan, self._rates_path),
            energy=self._instruments.energy,
            strain=StrainMeter(parts.plan.store_folder),
        )
        return Sampler(self._counters, parts.tally, gauges, self._notes)

    def _meter_of(self, parts: LoadedParts) -> AnswerMeter:
        """Return the meter of an answer that begins now."""
        ground = Ground(parts.base_bytes, parts.kv.context_tokens, parts.plan.forecast)
        surroundings = Surroundings(
            drive_bytes=parts.drive_bytes.read,
            written_bytes=parts.drive_bytes.written,
            link_bytes=parts.link_bytes,
            budget_bytes=lambda: parts.ledger.limit_bytes,
            has_device=lambda: parts.device is not None,
        )
        return AnswerMeter(self._instruments, ground, surroundings)

    def _encode(self, conversation: Sequence[ChatMessage]) -> Prompt:
        """Return the prompt; raise ``CONVERSATION_INVALID`` if the model cannot take them."""
        parts = self._loaded()
        if not conversation:
            raise LarderError(ErrorCode.CONVERSATION_INVALID, reason="it is empty")
        if conversation[-1].role is not Role.ASSISTANT:
            prompt = parts.tokenizer.prompt(conversation)
        elif len(conversation) > 1:
            prompt = parts.tokenizer.continued(conversation)
        else:
            raise LarderError(ErrorCode.CONVERSATION_INVALID, reason="it has no question")
        if not prompt.ids or max(prompt.ids) >= parts.spec.vocabulary_size:
            raise LarderError(
                ErrorCode.CONVERSATION_INVALID,
                detail=f"{len(prompt.ids)} ids, vocabulary of {parts.spec.vocabulary_size}",
                reason="its words are none that the model knows",
            )
        return prompt

    def _loaded(self) -> LoadedParts:
        """Return the loaded parts; raise ``NO_MODEL_LOADED`` if there are none."""
        if self._parts is None:
            raise LarderError(ErrorCode.NO_MODEL_LOADED)
        return self._parts

    def _resident_bytes(self) -> int:
        """Return how much of this process lies in RAM now, a simulated device left out."""
        device = None if self._parts is None else self._parts.device
        not_ours_bytes = 0 if device is None else device.num_host_bytes
        return int(self._process.memory_info().rss) - not_ours_bytes


def _unpacks(device: Device) -> bool:
    """Return whether a device has no kernels for packed weights."""
    if device.is_simulated:
        return False
    return choose_device_kernels(device.torch_device).name == ReferenceKernels.name
