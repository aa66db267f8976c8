"""Which kinds of plans there are: those of written mixes stand among the others."""

import dataclasses

import msgspec

from runtime.plan.planner import plan_curve, plan_kinds, plan_model
from runtime.protocol.model import PreparedCopy
from runtime.protocol.plan import MemoryPart, PlacementPlan, PlanKind
from runtime.protocol.values import Budgets, WeightFormat
from runtime.spec.facts import ModelFacts
from runtime.spec.footprint import policy_bytes
from runtime.spec.ram_slots import Records, ram_experts_bytes
from runtime.spec.tensors import PAGE_BYTES
from tests.support.plan_cases import GIB, facts, machine, spec

MODEL = spec()
_HUGE = machine(total_gib=4096, available_gib=4000)


def _mixed(bits: float) -> PreparedCopy:
    """A copy of mixed bits of ``MODEL``, its largest records twice the usual ones."""
    records_bytes = int(48 * 128 * 3 * 2048 * 768 * bits / 8)
    return PreparedCopy(
        folder=f"/prepared/mix-{bits}",
        expert_format=WeightFormat.Q3_G16,
        size_bytes=records_bytes + GIB,
        mix_bits=bits,
        records_bytes=records_bytes,
        slot_bytes=[2 * records_bytes // (48 * 128) // PAGE_BYTES * PAGE_BYTES] * 48,
        dense_ram_bytes=GIB,
    )


def _with_mixes(*bits: float) -> ModelFacts:
    known = facts(MODEL)
    about = msgspec.structs.replace(known.report, prepared=[_mixed(each) for each in bits])
    return dataclasses.replace(known, report=about)


def test_plan_of_a_mix_stands_among_the_others_by_its_bits() -> None:
    kinds = [kind for kind in PlanKind if kind is not PlanKind.MIXED]
    for bits, place in ((9.0, 1), (5.0, 3), (2.8, 5)):
        found = plan_kinds(_with_mixes(bits), _HUGE, Budgets())
        assert [plan.kind for plan in found] == [
            *kinds[:place],
            PlanKind.MIXED,
            *kinds[place:],
        ]
        mixed = found[place]
        offered = plan_model(_with_mixes(bits), _HUGE, Budgets())
        assert PlanKind.MIXED in [plan.kind for plan in offered]
        assert not mixed.needs_prepare
        assert mixed.store_folder == f"/prepared/mix-{bits}"
        assert mixed.expert_format is WeightFormat.Q3_G16
        # Slots of exact sizes where every expert has one.
        copy = _mixed(bits)
        experts = copy.records_bytes + policy_bytes(48, 128)
        assert mixed.ram_parts[MemoryPart.EXPERTS] == experts
        assert mixed.ram_parts[MemoryPart.DENSE] == GIB
        assert sum(mixed.slots_per_layer) == 48 * 128
        said = [each.parameters["bits"] for each in mixed.reasons if "bits" in each.parameters]
        assert said == [round(bits, 1)]


def test_plan_takes_the_mix_of_the_most_bits_that_stays_in_ram() -> None:
    known = _with_mixes(3.0, 5.0, 4.0)
    needed = {
        bits: next(
            plan
            for plan in plan_model(_with_mixes(bits), _HUGE, Budgets())
            if plan.kind is PlanKind.MIXED
        ).all_ram_bytes
        for bits in (3.0, 4.0, 5.0)
    }

    def taken(ram_bytes: int | None) -> PlacementPlan:
        offered = plan_model(known, _HUGE, Budgets(ram_bytes=ram_bytes))
        return next(plan for plan in offered if plan.kind is PlanKind.MIXED)

    assert taken(None).store_folder == "/prepared/mix-5.0"
    assert taken(needed[4.0] + GIB).store_folder == "/prepared/mix-4.0"
    # None stays in RAM whole: slots of the largest size.
    small = taken(needed[3.0] // 2)
    assert small.store_folder == "/prepared/mix-3.0"
    num_slots = sum(small.slots_per_layer)
    assert 0 < num_slots < 48 * 128
    copy = _mixed(3.0)
    records = Records(copy.records_bytes, tuple(copy.slot_bytes))
    taken_bytes = ram_experts_bytes(MODEL, records, small.slots_per_layer)
    assert small.ram_parts[MemoryPart.EXPERTS] == taken_bytes
    assert small.ram_bytes <= needed[3.0] // 2


def test_a_copy_of_a_model_with_other_layers_is_no_mix() -> None:
    known = _with_mixes(4.0)
    (copy,) = known.report.prepared
    other = msgspec.structs.replace(copy, slot_bytes=copy.slot_bytes[1:])
    known = dataclasses.replace(
        known, report=msgspec.structs.replace(known.report, prepared=[other])
    )
    assert PlanKind.MIXED not in [plan.kind for plan in plan_kinds(known, _HUGE, Budgets())]


def test_curves_exist_for_every_kind_that_may_be_offered() -> None:
    mixed = plan_curve(_with_mixes(4.0), _HUGE, PlanKind.MIXED)
    assert mixed is not None
    assert mixed.kind is PlanKind.MIXED
    for kind in set(PlanKind) - {PlanKind.MIXED}:
        curve = plan_curve(facts(MODEL), _HUGE, kind)
        assert curve is not None
        assert curve.kind is kind
    assert plan_curve(facts(MODEL), _HUGE, PlanKind.MIXED) is None
