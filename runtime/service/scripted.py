"""A made-up model in every folder that exists, for the scripted engine; nothing is read."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from runtime.engine.base import CancelToken
from runtime.engine.script import Script
from runtime.errors import LarderError, report_of
from runtime.protocol.errors import ErrorCode, ErrorReport
from runtime.protocol.machine import DriveReport, MachineReport, Measured
from runtime.protocol.messages import PrepareModel
from runtime.protocol.model import ModelReport, PreparedCopy, TierShare
from runtime.protocol.plan import MemoryPart, PlacementPlan, PlanKind, Reason, ReasonCode
from runtime.protocol.values import Budgets, Forecast, Tier, WeightFormat
from runtime.service.planning import Planned
from runtime.service.preparing import PrepareReport, PrepareStoppedError

_MIB = 1 << 20
_NUM_LAYERS = 24
_NUM_EXPERTS = 64
_TOP_K = 8
_DENSE_BYTES = 100 * _MIB
_EXPERT_BYTES = {PlanKind.EXACT: 2 * _MIB, PlanKind.EIGHT_BIT: _MIB, PlanKind.FOUR_BIT: _MIB // 2}
_FORMATS = {
    PlanKind.EXACT: WeightFormat.BF16,
    PlanKind.EIGHT_BIT: WeightFormat.Q8_G32,
    PlanKind.FOUR_BIT: WeightFormat.Q4_G32,
}
_KV_BYTES = 64 * _MIB
_WORK_BYTES = 32 * _MIB
_BASE_BYTES = 120 * _MIB
_PREPARE_STEPS = 20


class ScriptedPlanning:
    """Reports, plans and a machine that are the same everywhere.

    Threads: called by one thread at a time; ``prepare`` by another, which only adds to a set.
    """

    def __init__(self, script: Script) -> None:
        self._script = script
        self._prepared: set[tuple[str, WeightFormat]] = set()

    def inspect(self, folder: str) -> ModelReport:
        """Return a report named after the folder."""
        return ModelReport(
            folder=folder,
            name=Path(folder).name,
            model_type="scripted",
            fingerprint=hashlib.sha256(os.fsencode(folder)).hexdigest()[:16],
            licence="none",
            problems=_problems(folder),
            num_layers=_NUM_LAYERS,
            num_moe_layers=_NUM_LAYERS,
            num_experts=_NUM_EXPERTS,
            top_k=_TOP_K,
            hidden_size=1024,
            vocabulary_size=50_000,
            max_context_tokens=self._script.context_tokens,
            num_parameters=1_700_000_000,
            num_active_parameters=300_000_000,
            stored_format=WeightFormat.BF16,
            file_bytes=_DENSE_BYTES + _all_experts_bytes(PlanKind.EXACT),
            num_shards=1,
            dense_bytes=_DENSE_BYTES,
            expert_bytes=_EXPERT_BYTES[PlanKind.EXACT],
            kv_bytes_per_token=_KV_BYTES // 4096,
            prepared=[
                PreparedCopy(
                    folder=f"{folder}-{weight_format}",
                    expert_format=weight_format,
                    size_bytes=_DENSE_BYTES,
                )
                for name, weight_format in sorted(self._prepared)
                if name == folder
            ],
        )

    def plan(self, folder: str, budgets: Budgets, context_tokens: int) -> Planned:
        """Return the three plans; the best that fits the budget is recommended."""
        report = self.inspect(folder)
        if report.problems:
            return Planned(report, [], None)
        plans = [self._plan(report, kind, budgets, context_tokens) for kind in PlanKind]
        loadable = [plan.kind for plan in plans if plan.problem is None]
        return Planned(report, plans, loadable[0] if loadable else None)

    def describe(self, folders: Sequence[str]) -> MachineReport:
        """Return a machine with 16 GiB of RAM and nothing else."""
        return MachineReport(
            operating_system="scripted",
            cpu_name="scripted",
            num_physical_cores=4,
            num_logical_cores=8,
            instruction_set="scripted",
            ram_total=Measured(value=16 * 1024 * _MIB, method="scripted"),
            ram_available=Measured(value=12 * 1024 * _MIB, method="scripted"),
            ram_limit=None,
            ram_read_bytes_per_s=Measured(value=40e9, method="scripted"),
            devices=[],
            drives=[
                DriveReport(
                    folder=folder,
                    file_system="scripted",
                    free_bytes=100 * 1024 * _MIB,
                    total_bytes=500 * 1024 * _MIB,
                    read_bytes_per_s=Measured(value=3e9, method="scripted"),
                )
                for folder in folders
            ],
            kernels="scripted",
        )

    def prepare(
        self, command: PrepareModel, progress: PrepareReport, cancel: CancelToken
    ) -> PreparedCopy:
        """Take the script's time; nothing is written."""
        total_bytes = _DENSE_BYTES
        seconds = self._script.prepare_s
        for step in range(_PREPARE_STEPS):
            done_bytes = total_bytes * step // _PREPARE_STEPS
            progress(done_bytes, total_bytes, total_bytes / seconds if seconds else 0.0)
            if cancel.wait(seconds / _PREPARE_STEPS):
                raise PrepareStoppedError(done_bytes)
        self._prepared.add((command.folder, command.expert_format))
        return PreparedCopy(
            folder=command.output_folder or f"{command.folder}-{command.expert_format}",
            expert_format=command.expert_format,
            size_bytes=total_bytes,
        )

    def _plan(
        self, report: ModelReport, kind: PlanKind, budgets: Budgets, context_tokens: int
    ) -> PlacementPlan:
        fixed_bytes = _DENSE_BYTES + _KV_BYTES + _WORK_BYTES
        slot_bytes = _EXPERT_BYTES[kind]
        all_ram_bytes = fixed_bytes + _all_experts_bytes(kind)
        min_ram_bytes = fixed_bytes + _NUM_LAYERS * _TOP_K * slot_bytes
        budget = all_ram_bytes if budgets.ram_bytes is None else budgets.ram_bytes
        per_layer = (budget - fixed_bytes) // (_NUM_LAYERS * slot_bytes)
        slots = min(max(per_layer, _TOP_K), _NUM_EXPERTS)
        in_ram, everywhere = slots * _NUM_LAYERS, _NUM_EXPERTS * _NUM_LAYERS
        is_prepared = (report.folder, _FORMATS[kind]) in self._prepared
        needs_prepare = kind is not PlanKind.EXACT and not is_prepared
        fits = slots == _NUM_EXPERTS
        return PlacementPlan(
            kind=kind,
            model_folder=report.folder,
            model_fingerprint=report.fingerprint,
            store_folder=report.folder,
            expert_format=_FORMATS[kind],
            dense_format=WeightFormat.BF16,
            is_exact=kind is PlanKind.EXACT,
            needs_prepare=needs_prepare,
            bytes_to_write=_all_experts_bytes(kind) if needs_prepare else 0,
            budgets=budgets,
            context_tokens=context_tokens or self._script.context_tokens,
            slots_per_layer=[slots] * _NUM_LAYERS,
            tiers=[
                TierShare(
                    tier=Tier.RAM, device="cpu", num_experts=in_ram, bytes=in_ram * slot_bytes
                ),
                TierShare(
                    tier=Tier.DRIVE,
                    device="scripted",
                    num_experts=everywhere - in_ram,
                    bytes=(everywhere - in_ram) * slot_bytes,
                ),
            ],
            ram_parts={
                MemoryPart.DENSE: _DENSE_BYTES,
                MemoryPart.EXPERTS: in_ram * slot_bytes,
                MemoryPart.KV_CACHE: _KV_BYTES,
                MemoryPart.WORK: _WORK_BYTES,
            },
            ram_bytes=fixed_bytes + in_ram * slot_bytes,
            min_ram_bytes=min_ram_bytes,
            all_ram_bytes=all_ram_bytes,
            base_bytes=_BASE_BYTES,
            forecast=_forecast(self._script, fits),
            reasons=[Reason(code=code) for code in _reasons(fits, needs_prepare)],
            problem=_budget_problem(budget, min_ram_bytes),
        )


def _problems(folder: str) -> list[ErrorReport]:
    if Path(folder).is_dir():
        return []
    return [report_of(LarderError(ErrorCode.FOLDER_NOT_FOUND, folder=folder))]


def _all_experts_bytes(kind: PlanKind) -> int:
    return _NUM_LAYERS * _NUM_EXPERTS * _EXPERT_BYTES[kind]


def _reasons(fits: bool, needs_prepare: bool) -> tuple[ReasonCode, ReasonCode]:
    return (
        ReasonCode.FITS_IN_RAM if fits else ReasonCode.READS_FROM_DRIVE,
        ReasonCode.WRITES_ONCE if needs_prepare else ReasonCode.NOTHING_WRITTEN,
    )


def _budget_problem(budget_bytes: int, min_ram_bytes: int) -> ErrorReport | None:
    if budget_bytes >= min_ram_bytes:
        return None
    return report_of(
        LarderError(
            ErrorCode.RAM_BUDGET_TOO_SMALL, budget_bytes=budget_bytes, needed_bytes=min_ram_bytes
        )
    )


def _forecast(script: Script, fits: bool) -> Forecast:
    return Forecast(
        prompt_tokens_per_s_low=script.prompt_tokens_per_s * 0.8,
        prompt_tokens_per_s_high=script.prompt_tokens_per_s * 1.2,
        decode_tokens_per_s_low=script.decode_tokens_per_s * 0.8,
        decode_tokens_per_s_high=script.decode_tokens_per_s * 1.2,
        drive_bytes_per_token=0.0 if fits else 20.0 * _MIB,
        basis="assumed",
    )
