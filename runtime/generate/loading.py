"""Making a planned model ready: the order of loading, and giving everything back if it fails."""

import contextlib
import dataclasses
from collections.abc import Mapping

from runtime.engine.base import CancelToken, LoadProgress
from runtime.errors import LarderError
from runtime.generate.kv_cache import KvCache
from runtime.generate.statistics import Probe
from runtime.hardware.memory import host_memory, read_memory
from runtime.hardware.system_files import SystemFiles
from runtime.inspect.folder import inspect_folder
from runtime.kernels.base import Kernels
from runtime.memory.ledger import Ledger
from runtime.models.decoder import EMBEDDING, Decoder
from runtime.models.families import build_model
from runtime.protocol.errors import ErrorCode, ErrorReport
from runtime.protocol.model import LoadStage
from runtime.protocol.plan import MemoryPart, PlacementPlan
from runtime.residency.dense import DensePart
from runtime.residency.experts import Books, ExpertCache
from runtime.residency.filling import FillEnded
from runtime.residency.shape import CacheShape
from runtime.spec.footprint import prefill_chunk_tokens, work_bytes
from runtime.spec.model import ModelSpec
from runtime.spec.tensors import ExpertPart, TensorEntry
from runtime.store.base import ExpertStore
from runtime.store.open import open_store
from runtime.telemetry.expert_tally import STORED_BITS, ExpertTally
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
    ledger: Ledger
    tally: ExpertTally
    experts: ExpertCache
    kv: KvCache
    model: Decoder
    eos_ids: frozenset[int]
    base_bytes: int
    """Resident size of the process before the first arena was made."""
    chunk_tokens: int
    """Prompt tokens that are computed together."""
    dense_bytes_per_step: int
    """Dense weights that the processor reads from RAM for each chunk or token."""
    resources: contextlib.ExitStack

    def close(self) -> None:
        """Give back memory and files; may be called twice."""
        self.resources.close()


def load_parts(
    plan: PlacementPlan,
    kernels: Kernels,
    counters: Counters,
    probe: Probe,
    progress: LoadProgress,
    cancel: CancelToken,
    fill_ended: FillEnded,
) -> LoadedParts:
    """Load a plan: check it, take all memory, read the dense part, then some experts.

    A few experts of each layer are read before this returns; the others follow in the background,
    and ``fill_ended`` is called when they are in. Raises ``CancelledError`` or ``LarderError``
    after giving everything back.
    """
    progress(LoadStage.START, 0, 0)
    if plan.problem is not None:
        raise _error_of(plan.problem)
    if plan.needs_prepare:
        raise LarderError(ErrorCode.NOT_PREPARED, folder=plan.model_folder)
    inspection = inspect_folder(plan.model_folder)
    report, spec = inspection.report, inspection.spec
    if report.problems:
        raise _error_of(report.problems[0])
    if report.fingerprint != plan.model_fingerprint or spec is None:
        raise LarderError(ErrorCode.PLAN_OUTDATED, folder=plan.model_folder)

    def advance(stage: LoadStage, done_bytes: int, total_bytes: int) -> None:
        cancel.check()
        progress(stage, done_bytes, total_bytes)

    with contextlib.ExitStack() as stack:
        tokenizer = ChatTokenizer.load(plan.model_folder)
        cancel.check()
        store = open_store(inspection, plan.store_folder)
        stack.callback(store.close)
        if store.layout[ExpertPart.GATE].format is not plan.expert_format:
            raise LarderError(ErrorCode.PLAN_OUTDATED, folder=plan.model_folder)
        shape = shape_of(plan, spec)
        base_bytes = probe()
        ledger = _open_ledger(plan)
        dense = DensePart(ledger, store.dense_tensors)
        stack.callback(dense.close)
        kv = KvCache(ledger, spec, plan.context_tokens)
        stack.callback(kv.close)
        tally = ExpertTally(len(spec.moe_layers), spec.num_experts, STORED_BITS[plan.expert_format])
        experts = ExpertCache(store, shape, ledger, Books(counters, tally, fill_ended))
        stack.callback(experts.close)
        chunk_tokens = prefill_chunk_tokens(spec, plan.context_tokens, ledger.free_bytes)
        ledger.take(MemoryPart.WORK, work_bytes(spec, plan.context_tokens, chunk_tokens))
        dense.read(store, lambda done, total: advance(LoadStage.DENSE, done, total))
        model = build_model(spec, kernels, dense, experts, plan.context_tokens)
        num_first = min(spec.top_k, FIRST_EXPERTS_PER_LAYER)
        experts.fill(num_first, lambda done, total: advance(LoadStage.EXPERTS, done, total))
        experts.fill_behind()
        return LoadedParts(
            plan=plan,
            spec=spec,
            name=report.name,
            tokenizer=tokenizer,
            store=store,
            ledger=ledger,
            tally=tally,
            experts=experts,
            kv=kv,
            model=model,
            eos_ids=frozenset((*spec.eos_ids, *tokenizer.eos_ids)),
            base_bytes=base_bytes,
            chunk_tokens=chunk_tokens,
            dense_bytes_per_step=_dense_bytes_per_step(store.dense_tensors, spec),
            resources=stack.pop_all(),
        )


def _dense_bytes_per_step(entries: Mapping[str, TensorEntry], spec: ModelSpec) -> int:
    """Return the bytes of all dense weights but an embedding of which rows are looked up alone."""
    return sum(
        entry.num_bytes for name, entry in entries.items() if name != EMBEDDING or spec.is_tied
    )


def shape_of(plan: PlacementPlan, spec: ModelSpec) -> CacheShape:
    """Return the slots of a plan; raise ``PLAN_OUTDATED`` if they do not fit the model."""
    if not 0 < plan.context_tokens <= spec.max_context_tokens:
        raise LarderError(
            ErrorCode.PLAN_OUTDATED,
            detail=f"{plan.context_tokens} of {spec.max_context_tokens} context tokens",
            folder=plan.model_folder,
        )
    try:
        return CacheShape(spec.moe_layers, tuple(plan.slots_per_layer), spec.num_experts)
    except ValueError as error:
        raise LarderError(
            ErrorCode.PLAN_OUTDATED, detail=str(error), folder=plan.model_folder
        ) from error


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


def ram_limit_bytes(plan: PlacementPlan) -> int:
    """Return the RAM budget that a plan sets."""
    budget_bytes = plan.budgets.ram_bytes
    return plan.ram_bytes if budget_bytes is None else budget_bytes


def _error_of(problem: ErrorReport) -> LarderError:
    """Return a reported problem as the exception it stands for."""
    return LarderError(problem.code, problem.detail, **problem.parameters)
