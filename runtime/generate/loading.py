"""Making a planned model ready: the order of loading, and giving everything back if it fails."""

import contextlib
import dataclasses
import os
from collections.abc import Callable, Mapping
from typing import Self

from runtime.device.base import Device
from runtime.engine.base import CancelToken, LoadProgress
from runtime.errors import LarderError
from runtime.generate.drive_bytes import DriveBytes
from runtime.generate.home import Home
from runtime.generate.kv_cache import KvCache
from runtime.generate.last_use import LastUses
from runtime.generate.plan_terms import (
    device_of,
    error_of,
    fewer_in_vram,
    ram_limit_bytes,
    shape_of,
    vram_limit_bytes,
)
from runtime.generate.statistics import Probe
from runtime.hardware.memory import host_memory, read_memory
from runtime.hardware.profile import profile_of
from runtime.hardware.system_files import SystemFiles
from runtime.inspect.folder import inspect_folder
from runtime.kernels.base import Kernels
from runtime.memory.heap import give_back_freed
from runtime.memory.ledger import Ledger
from runtime.models.decoder import Decoder
from runtime.policy.catalogue import DEFAULT_POLICY, POLICIES, PolicyKind
from runtime.protocol.errors import ErrorCode
from runtime.protocol.model import LoadStage
from runtime.protocol.plan import MemoryPart, PlacementPlan
from runtime.residency.books import Books, FillEnded
from runtime.residency.device_experts import DeviceExperts
from runtime.residency.experts import ExpertCache
from runtime.residency.watch import Stalled, log_stall
from runtime.spec.model import ModelSpec
from runtime.spec.tensors import ExpertId
from runtime.store.base import ExpertStore
from runtime.store.open import open_store
from runtime.store.throttled import throttled
from runtime.telemetry.expert_tally import ExpertTally
from runtime.telemetry.recorder import Counters
from runtime.tokenizer.chat import ChatTokenizer

FIRST_EXPERTS_PER_LAYER = 8
"""Experts of a layer that are read before a model counts as loaded."""


@dataclasses.dataclass(slots=True, eq=False)
class LoadedParts:
    """Everything that answering needs, and the stack that gives it back.

    Threads: the engine thread replaces what a change of placement replaces.
    """

    plan: PlacementPlan
    """The plan in force."""
    spec: ModelSpec
    name: str
    tokenizer: ChatTokenizer
    store: ExpertStore
    drive_bytes: DriveBytes
    ledger: Ledger
    tally: ExpertTally
    experts: ExpertCache
    home: Home
    model: Decoder
    eos_ids: frozenset[int]
    base_bytes: int
    """Resident size of the process before the first arena was made."""
    resources: contextlib.ExitStack
    link_bytes_before: int = 0
    """Copied to devices that were used before."""
    slots_before_loan: tuple[int, ...] = ()
    """RAM slots of each layer before some gave way to the work of a long prompt
    (``long_prompts``); empty while nothing is lent."""

    @property
    def kv(self) -> KvCache:
        """Keys and values of the conversation."""
        return self.home.kv

    @property
    def device(self) -> Device | None:
        """The device in use."""
        return self.home.device

    def link_bytes(self) -> int:
        """Return what was copied to devices so far, to those that are not used any more too."""
        device = self.home.device
        return self.link_bytes_before + (0 if device is None else device.num_bytes_copied)

    def vram_by_kind(self) -> Mapping[MemoryPart, int]:
        """Return what each part holds on the device, nothing if none is used."""
        return {} if self.device is None else self.device.ledger.by_kind()

    def keep_use(self, last_uses: LastUses | None) -> None:
        """Keep which experts are resident for the next start, if anybody was used."""
        if last_uses is not None and self.spec.moe_layers and any(self.tally.uses):
            last_uses.write(
                self.plan.model_fingerprint, self.spec.num_experts, self.experts.recall()
            )

    def close(self) -> None:
        """Give back memory and files; may be called twice."""
        self.experts.close()
        self.home.close()
        self.resources.close()


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Tools:
    """What an engine brings to every model that it loads."""

    kernels: Kernels
    counters: Counters
    probe: Probe
    fill_ended: FillEnded
    """Called when the experts that are read in the background are in."""
    device_opened: Callable[[Device | None], None]
    """Called with the plan's device, None if it uses none, before its memory is taken."""
    policy: PolicyKind
    """Decides which experts stay in RAM."""
    stalled: Stalled = log_stall
    """Called while the drive does not answer a read."""
    last_uses: LastUses | None = None
    """Knows which experts are read first."""

    @classmethod
    def alone(cls, kernels: Kernels, counters: Counters | None = None) -> Self:
        """Return what loads a model for somebody who is not told what happens meanwhile."""
        return cls(
            kernels=kernels,
            counters=Counters() if counters is None else counters,
            probe=lambda: 0,
            fill_ended=lambda *_: None,
            device_opened=lambda _: None,
            policy=POLICIES[DEFAULT_POLICY],
        )


def load_parts(
    plan: PlacementPlan, tools: Tools, progress: LoadProgress, cancel: CancelToken
) -> LoadedParts:
    """Load a plan: check it, take all memory, read the dense part, then some experts.

    A few experts of each layer are read before this returns; the others follow in the background.
    Raises ``CancelledError`` or ``LarderError`` after giving everything back.
    """
    progress(LoadStage.START, 0, 0)
    if plan.problem is not None:
        raise error_of(plan.problem)
    if plan.needs_prepare:
        raise LarderError(ErrorCode.NOT_PREPARED, folder=plan.model_folder)
    inspection = inspect_folder(plan.model_folder)
    report, spec = inspection.report, inspection.spec
    if report.problems:
        raise error_of(report.problems[0])
    if report.fingerprint != plan.model_fingerprint or spec is None:
        raise LarderError(ErrorCode.PLAN_OUTDATED, folder=plan.model_folder)

    def advance(stage: LoadStage, done_bytes: int, total_bytes: int) -> None:
        cancel.check()
        progress(stage, done_bytes, total_bytes)

    with contextlib.ExitStack() as stack:
        tokenizer = ChatTokenizer.load(plan.model_folder)
        cancel.check()
        store = throttled(open_store(inspection, plan.store_folder))
        stack.callback(store.close)
        drive_bytes = DriveBytes(store, plan.store_folder)
        tally = _tally_of(store, plan, spec)
        shape = shape_of(plan, spec)
        give_back_freed()
        base_bytes = tools.probe()
        ledger = _open_ledger(plan)
        device = device_of(plan)
        if device is not None:
            stack.callback(device.close)
        tools.device_opened(device)
        home = Home(store, spec, plan.context_tokens, ledger, device, plan.ram_kv_layers)
        stack.callback(home.close)
        books = Books(tools.counters, tally, tools.fill_ended, tools.stalled)
        experts = ExpertCache(store, shape, ledger, books, tools.policy)
        stack.callback(experts.close)
        _fix_stated_readers(experts)
        if tools.last_uses is not None:
            experts.remember(tools.last_uses.read(report.fingerprint, spec.num_experts))
        if home.device is not None:
            above, plan = _experts_above(home.device, plan, spec, store.layout.record_bytes)
            experts.attach(above)
        home.take_work((ledger if home.device is None else home.device.ledger).free_bytes)
        home.read(lambda done, total: advance(LoadStage.DENSE, done, total))
        model = home.build(tools.kernels, experts, tools.counters)
        num_first = min(spec.top_k, FIRST_EXPERTS_PER_LAYER)
        experts.fill(num_first, lambda done, total: advance(LoadStage.EXPERTS, done, total))
        experts.fill_behind()
        stack.pop_all()
        resources = contextlib.ExitStack()
        resources.callback(store.close)
        return LoadedParts(
            plan=plan,
            spec=spec,
            name=report.name,
            tokenizer=tokenizer,
            store=store,
            drive_bytes=drive_bytes,
            ledger=ledger,
            tally=tally,
            experts=experts,
            home=home,
            model=model,
            eos_ids=frozenset((*spec.eos_ids, *tokenizer.eos_ids)),
            base_bytes=base_bytes,
            resources=resources,
        )


def _fix_stated_readers(experts: ExpertCache) -> None:
    """Have so many readers read of the drive as the machine profile states, if it does."""
    profile = profile_of(os.environ)
    if profile is not None and profile.num_drive_readers is not None:
        experts.fix_readers(profile.num_drive_readers)


def _experts_above(
    device: Device, plan: PlacementPlan, spec: ModelSpec, record_bytes: int
) -> tuple[DeviceExperts, PlacementPlan]:
    """Return the device's experts and the plan; with fewer of them if the device is full, once."""
    try:
        return DeviceExperts(device, shape_of(plan, spec), record_bytes), plan
    except LarderError as error:
        fewer = fewer_in_vram(plan, record_bytes)
        if error.code is not ErrorCode.VRAM_FULL or fewer is plan:
            raise
    device.ledger.set_limit(vram_limit_bytes(fewer))
    return DeviceExperts(device, shape_of(fewer, spec), record_bytes), fewer


def _tally_of(store: ExpertStore, plan: PlacementPlan, spec: ModelSpec) -> ExpertTally:
    """Return where uses are counted, with the bits of every expert.

    Raises ``PLAN_OUTDATED`` if none has the format of the plan.
    """
    layouts = [
        store.layout_of(ExpertId(layer, expert))
        for layer in spec.moe_layers
        for expert in range(spec.num_experts)
    ]
    different = {id(layout): layout for layout in layouts or [store.layout]}
    if not any(plan.expert_format in layout.formats for layout in different.values()):
        raise LarderError(ErrorCode.PLAN_OUTDATED, folder=plan.model_folder)
    bits_of = {key: layout.mean_bits for key, layout in different.items()}
    bits = bytes(bits_of[id(layout)] for layout in layouts)
    return ExpertTally(len(spec.moe_layers), spec.num_experts, bits)


def _open_ledger(plan: PlacementPlan) -> Ledger:
    """Return the account of the plan's budget; raise ``RAM_NOT_FREE`` if the PC has less now."""
    free_bytes = free_ram_bytes()
    if plan.ram_bytes > free_bytes:
        raise LarderError(
            ErrorCode.RAM_NOT_FREE, free_bytes=free_bytes, needed_bytes=plan.ram_bytes
        )
    return Ledger(ram_limit_bytes(plan))


def free_ram_bytes() -> int:
    """Return what can be taken of this PC's RAM now."""
    return int(read_memory(host_memory(), SystemFiles()).available.value)
