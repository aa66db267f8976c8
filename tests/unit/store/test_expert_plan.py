"""Planning how an expert is read: every part once, to its place; once for each expert."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.inspect.folder import inspect_folder
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import (
    ExpertId,
    ExpertLayout,
    ExpertPart,
    TensorEntry,
    expert_layout,
)
from runtime.store import checkpoint
from runtime.store.coalesce import MAX_GAP_BYTES
from runtime.store.expert_plan import GAP, ExpertPlan, plan_expert
from tests.support.checkpoint_folders import TinyModel, write_checkpoint

LAYOUT = expert_layout(WeightFormat.BF16, 64, 32)
gaps = st.sampled_from([0, 2, MAX_GAP_BYTES, MAX_GAP_BYTES + 2])


def entries_in(order: list[ExpertPart], lead: list[int]) -> dict[ExpertPart, TensorEntry]:
    """The parts in a file in an order, with so many bytes before each."""
    found, offset = {}, 0
    for part, gap in zip(order, lead, strict=True):
        place = LAYOUT[part]
        offset += gap
        shape = (place.rows, place.columns)
        found[part] = TensorEntry(part, "a", offset, place.num_bytes, place.format, shape)
        offset += place.num_bytes
    return found


@given(st.permutations(list(ExpertPart)), st.lists(gaps, min_size=3, max_size=3))
def test_plan_brings_every_byte_of_a_part_to_its_place(
    order: list[ExpertPart], lead: list[int]
) -> None:
    entries = entries_in(order, lead)
    found: dict[int, tuple[int, int]] = {}
    plan = plan_expert(entries, LAYOUT)
    for read in plan.reads:
        offset = read.offset_bytes
        for begin, num_bytes in read.places:
            assert begin != GAP or num_bytes <= MAX_GAP_BYTES
            if begin != GAP:
                found[begin] = (offset, num_bytes)
            offset += num_bytes
    assert found == {
        LAYOUT[part].offset_bytes: (entry.offset_bytes, entry.num_bytes)
        for part, entry in entries.items()
    }
    assert len(plan.reads) == 1 + sum(gap > MAX_GAP_BYTES for gap in lead[1:])
    assert not plan.woven
    assert not plan.converted


def test_store_plans_an_expert_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[ExpertId] = []

    def counted(entries: Mapping[ExpertPart, TensorEntry], layout: ExpertLayout) -> ExpertPlan:
        planned.extend(expert for expert, parts in inspection.experts.items() if parts is entries)
        return plan_expert(entries, layout)

    monkeypatch.setattr(checkpoint, "plan_expert", counted)
    inspection = inspect_folder(str(write_checkpoint(tmp_path / "m", TinyModel())))
    store = checkpoint.CheckpointStore(inspection)
    target = memoryview(bytearray(store.layout.record_bytes))
    experts = sorted(inspection.experts)[:2]
    for _ in range(3):
        for expert in experts:
            store.read_expert(expert, target)
    store.close()
    assert planned == experts
