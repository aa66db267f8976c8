"""A made-up model in every folder that exists, for the scripted engine; nothing is read."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from runtime.engine.base import CancelToken
from runtime.engine.script import TOP_K, Script
from runtime.errors import LarderError, report_of
from runtime.hardware.figures import check_stated, figures_of, stated_among, with_figure
from runtime.hardware.profile import MACHINE_FILE
from runtime.inspect.gguf.places import is_gguf
from runtime.protocol.errors import ErrorCode, ErrorReport
from runtime.protocol.figure_messages import StatedFigures
from runtime.protocol.hub import HubOutlook, HubSketch
from runtime.protocol.machine import DeviceReport, DriveKind, DriveReport, MachineReport, Measured
from runtime.protocol.messages import PrepareModel, PreparePhase
from runtime.protocol.model import (
    ModelReport,
    PreparedCopy,
    Suitability,
    SuitabilityRating,
)
from runtime.protocol.plan import BudgetCurve, PlanKind
from runtime.protocol.values import Budgets, WeightFormat
from runtime.service.planning import Figures, Planned
from runtime.service.preparing import PrepareReport, PrepareStoppedError
from runtime.service.scripted_plans import (
    CHOICES,
    DENSE_BYTES,
    DEVICE,
    EXPERT_BYTES,
    FORMATS,
    FREE_RAM_BYTES,
    KV_BYTES,
    MIB,
    all_experts_bytes,
    device_bytes,
    make_plan,
)

_PREPARE_STEPS = 20


class ScriptedPlanning:
    """Reports, plans and a machine that are the same everywhere.

    Threads: ``inspect`` may be called by any thread, the others by one at a time; ``prepare`` by
    another, which only adds to a set.
    """

    def __init__(self, script: Script) -> None:
        self._script = script
        self._prepared: set[tuple[str, WeightFormat]] = set()
        self._stated: dict[str, Any] = {}

    def inspect(self, folder: str) -> ModelReport:
        """Return a report named after the folder."""
        return ModelReport(
            folder=folder,
            name=Path(folder).name,
            model_type="scripted",
            fingerprint=hashlib.sha256(os.fsencode(folder)).hexdigest()[:16],
            licence="none",
            problems=_problems(folder),
            num_layers=self._script.num_layers,
            num_moe_layers=self._script.num_layers,
            num_experts=self._script.num_experts,
            top_k=min(TOP_K, self._script.num_experts),
            hidden_size=1024,
            vocabulary_size=50_000,
            max_context_tokens=self._script.context_tokens,
            num_parameters=1_700_000_000,
            num_active_parameters=300_000_000,
            stored_format=WeightFormat.BF16,
            file_bytes=DENSE_BYTES + all_experts_bytes(self._script, PlanKind.EXACT),
            num_shards=1,
            dense_bytes=DENSE_BYTES,
            expert_bytes=EXPERT_BYTES[PlanKind.EXACT],
            kv_bytes_per_token=KV_BYTES // 4096,
            suitability=Suitability(
                rating=SuitabilityRating.WELL, segment_ratio=0.5, hit_ratios=[0.5, 0.72, 0.83]
            ),
            prepared=[
                PreparedCopy(
                    folder=f"{folder}-{weight_format}",
                    expert_format=weight_format,
                    size_bytes=DENSE_BYTES,
                )
                for name, weight_format in sorted(self._prepared)
                if name == folder
            ],
        )

    def plan(
        self,
        folder: str,
        budgets: Budgets,
        context_tokens: int,
        held_vram: Mapping[str, int] | None = None,
        kind: PlanKind | None = None,
    ) -> Planned:
        """Return the plans; the best that fits the budget is recommended."""
        report = self.inspect(folder)
        if report.problems:
            return Planned(report, [], None)
        written = {copy.expert_format for copy in report.prepared}
        kinds = [
            each for each in FORMATS if each in CHOICES or each is kind or FORMATS[each] in written
        ]
        plans = [make_plan(self._script, report, each, budgets, context_tokens) for each in kinds]
        loadable = [plan.kind for plan in plans if plan.problem is None]
        stated = stated_among(self.figures(folder).figures)
        told = StatedFigures(figures=stated, file=MACHINE_FILE) if stated else None
        return Planned(report, plans, loadable[0] if loadable else None, told)

    def curve(
        self,
        folder: str,
        kind: PlanKind,
        context_tokens: int,
        held_vram: Mapping[str, int] | None = None,
    ) -> BudgetCurve | None:
        """Return nothing: made-up plans come at once."""
        return None

    def forecast(
        self,
        sketches: Sequence[HubSketch],
        folder: str,
        budgets: Budgets,
        context_tokens: int,
        held_vram: Mapping[str, int] | None = None,
    ) -> list[HubOutlook]:
        """Return for each model of which something is known what the most exact plan says."""
        report = self.inspect(folder)
        plan = make_plan(self._script, report, PlanKind.EXACT, budgets, context_tokens)
        return [
            HubOutlook(forecast=plan.forecast if each.config or each.outline else None)
            for each in sketches
        ]

    def describe(
        self,
        folders: Sequence[str],
        held_vram: Mapping[str, int] | None = None,
        *,
        is_thorough: bool = False,
    ) -> MachineReport:
        """Return a machine with 16 GiB of RAM and the accelerator of the script."""
        return MachineReport(
            operating_system="scripted",
            cpu_name="scripted",
            num_physical_cores=4,
            num_logical_cores=8,
            instruction_set="scripted",
            ram_total=Measured(value=16 * 1024 * MIB, method="scripted"),
            ram_available=Measured(value=FREE_RAM_BYTES, method="scripted"),
            ram_limit=None,
            ram_read_bytes_per_s=Measured(value=40e9, method="scripted"),
            devices=[
                DeviceReport(
                    device=DEVICE,
                    name="Scripted card",
                    total_bytes=device_bytes(self._script),
                    free_bytes=device_bytes(self._script),
                    is_simulated=True,
                    link_bytes_per_s=Measured(value=12e9, method="scripted"),
                    is_used=True,
                )
            ]
            if device_bytes(self._script)
            else [],
            drives=[
                DriveReport(
                    folder=folder,
                    file_system="scripted",
                    free_bytes=100 * 1024 * MIB,
                    total_bytes=500 * 1024 * MIB,
                    read_bytes_per_s=Measured(value=3e9, method="scripted"),
                    kind=DriveKind.NVME,
                    is_direct=True,
                )
                for folder in folders
            ],
            kernels="scripted",
            energy_sources=["scripted"],
        )

    def figures(
        self,
        folder: str,
        held_vram: Mapping[str, int] | None = None,
        *,
        is_fresh: bool = False,
    ) -> Figures:
        """Return the figures of the same machine, with what was stated in this process."""
        own = self.describe([folder])
        return Figures(figures=figures_of(own, self._stated), file=MACHINE_FILE)

    def state_figure(self, name: str, value: float | str | None) -> None:
        """Check and keep it; nothing is written."""
        stated = with_figure(self._stated, name, value)
        check_stated(stated, MACHINE_FILE)
        self._stated = stated

    def prepare(
        self, command: PrepareModel, progress: PrepareReport, cancel: CancelToken
    ) -> PreparedCopy:
        """Take the script's time; nothing is written."""
        total_bytes = DENSE_BYTES
        seconds = self._script.prepare_s
        for step in range(_PREPARE_STEPS):
            done_bytes = total_bytes * step // _PREPARE_STEPS
            rate = total_bytes / seconds if seconds else 0.0
            progress(done_bytes, total_bytes, rate, PreparePhase.WRITING)
            if cancel.wait(seconds / _PREPARE_STEPS):
                raise PrepareStoppedError(done_bytes)
        self._prepared.add((command.folder, command.expert_format))
        return PreparedCopy(
            folder=command.output_folder or f"{command.folder}-{command.expert_format}",
            expert_format=command.expert_format,
            size_bytes=total_bytes,
        )


def _problems(folder: str) -> list[ErrorReport]:
    if Path(folder).is_dir() or is_gguf(Path(folder)):
        return []
    return [report_of(LarderError(ErrorCode.FOLDER_NOT_FOUND, folder=folder))]
