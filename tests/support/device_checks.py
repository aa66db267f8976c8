"""What every device promises, as functions that contract tests run over one."""

import pytest
import torch

from runtime.device.base import Device, DeviceArena
from runtime.device.link_rate import MIN_COPY_BYTES, measure_link
from runtime.device.modules import KINDS
from runtime.errors import LarderError
from runtime.kernels.base import Kernels
from runtime.kernels.matrix import Matrix, Slot
from runtime.kernels.reference import ReferenceKernels
from runtime.kernels.tiered import TieredKernels
from runtime.protocol.errors import ErrorCode
from runtime.protocol.plan import MemoryPart
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import ExpertLayout, MatrixLayout, expert_layout, layout_in
from runtime.telemetry.recorder import Counters
from tests.support.kernel_inputs import random_matrix, random_rows, random_slots

SLOT_BYTES = 3 * 4096
BUDGET_BYTES = 64 * SLOT_BYTES


def filled(value: int, num_bytes: int = SLOT_BYTES) -> torch.Tensor:
    """Return host bytes that all have one value."""
    return torch.full((num_bytes,), value, dtype=torch.uint8)


def check_arena_counts_and_gives_back(device: Device) -> None:
    """Slots come and go one by one; the ledger follows; numbers are given out again."""
    arena = device.arena(MemoryPart.EXPERTS, 3, SLOT_BYTES)
    assert device.ledger.by_kind()[MemoryPart.EXPERTS] == 3 * SLOT_BYTES
    arena.drop([1])
    assert device.ledger.by_kind()[MemoryPart.EXPERTS] == 2 * SLOT_BYTES
    assert arena.extend(1) == [1]
    arena.check()
    assert arena.tensor(1).numel() >= SLOT_BYTES
    assert arena.tensor(1).dtype is torch.uint8
    arena.close()
    arena.close()
    assert device.ledger.held_bytes == 0


def check_budget_is_never_passed(device: Device) -> None:
    """A slot too many is refused, and the refusal takes nothing."""
    arena = device.arena(MemoryPart.EXPERTS, 64, SLOT_BYTES)
    with pytest.raises(LarderError) as refused:
        arena.extend(1)
    assert refused.value.code is ErrorCode.RAM_BUDGET_TOO_SMALL
    assert device.ledger.held_bytes == BUDGET_BYTES
    arena.drop([0])
    device.ledger.set_limit(BUDGET_BYTES - SLOT_BYTES)
    arena.check()
    arena.close()


def check_copies_arrive_in_order(device: Device) -> None:
    """What was copied lies there after the event, byte for byte, and is counted."""
    arena = device.arena(MemoryPart.EXPERTS, 2, SLOT_BYTES)
    before = device.num_bytes_copied
    sources = [filled(value) for value in (1, 2, 3)]
    events = [
        device.copy(source, arena.tensor(slot)[:SLOT_BYTES])
        for source, slot in zip(sources, (0, 1, 0), strict=True)
    ]
    for event in events:
        event.wait()
        assert event.is_done
    assert _host(arena, 0) == 3
    assert _host(arena, 1) == 2
    assert device.num_bytes_copied - before == 3 * SLOT_BYTES
    arena.close()


def check_large_copy_arrives_whole(device: Device) -> None:
    """A copy longer than any staging buffer arrives piece by piece."""
    num_bytes = 20 * 1024 * 1024 + 12
    device.ledger.set_limit(2 * num_bytes)
    arena = device.arena(MemoryPart.DENSE, 1, num_bytes)
    source = torch.arange(num_bytes, dtype=torch.int64).remainder(251).to(torch.uint8)
    device.copy(source, arena.tensor(0)[:num_bytes]).wait()
    assert torch.equal(arena.tensor(0)[:num_bytes].cpu(), source)
    arena.close()


def check_small_tensors_are_sent(device: Device) -> None:
    """A sent tensor lies there with its numbers and is counted."""
    before = device.num_bytes_copied
    source = random_rows(2, 64)
    there = device.send(source)
    assert there.device.type == device.torch_device.type
    assert torch.equal(there.cpu(), source)
    assert device.num_bytes_copied - before == source.nbytes


def check_free_memory_is_told_where_it_is_known(device: Device) -> None:
    """Only a real card tells what nobody holds of it."""
    free_bytes = device.free_bytes
    assert (free_bytes is None) == (device.device.partition(":")[0] not in KINDS)
    assert free_bytes is None or free_bytes > 0


def check_launches_follow_each_other(device: Device) -> None:
    """A launch sees what those before it did."""
    values = torch.ones(4, device=device.torch_device)
    for _ in range(5):
        device.launch(lambda: values.mul_(2))
    total = device.launch(values.sum)
    device.synchronize()
    assert float(total) == 4 * 32


def check_formats_are_the_hosts(device: Device) -> None:
    """Weights of every format stand for the same numbers there, bit for bit."""
    reference = ReferenceKernels()
    x = random_rows(3, 70)
    identity = torch.eye(70)
    for weight_format in WeightFormat:
        matrix = random_matrix(weight_format, 40, 70)
        there = _sent(device, matrix)
        weights = reference.linear(identity, matrix)
        assert torch.equal(reference.linear(identity.to(device.torch_device), there).cpu(), weights)
        result = reference.linear(x.to(device.torch_device), there).cpu()
        torch.testing.assert_close(result, reference.linear(x, matrix), atol=1e-4, rtol=1e-4)


def check_experts_here_and_there(device: Device, host: Kernels) -> None:
    """Experts in RAM and on the device together give what the host gives alone.

    With a device that shares the host's kernels the bits are the same. So it is where matrices have
    several formats.
    """
    several = (WeightFormat.Q4K_G32, WeightFormat.Q4K_G32, WeightFormat.Q6K_G16)
    for layout in (expert_layout(WeightFormat.Q8_G32, 64, 32), layout_in(several, 64, 32)):
        _check_here_and_there(device, host, layout)


def _check_here_and_there(device: Device, host: Kernels, layout: ExpertLayout) -> None:
    slots = random_slots(layout, 6)
    device.ledger.set_limit(64 * layout.record_bytes)
    arena = device.arena(MemoryPart.EXPERTS, 6, layout.record_bytes)
    mixed: list[tuple[int, Slot]] = []
    for number, slot in slots:
        there = arena.tensor(number)[: layout.record_bytes]
        device.copy(slot.bytes(), there).wait()
        is_here = number in {1, 2, 5}
        mixed.append((number, slot if is_here else Slot.from_buffer(there, device.device)))
    x = random_rows(5, 64)
    ids, weights = host.route(random_rows(5, 6, seed=3), 3, is_normalised=True)
    expected = torch.zeros(5, 64)
    host.experts(x, layout, slots, ids, weights, expected)
    target = device.torch_device
    out = torch.zeros(5, 64, device=target)
    counters = Counters()

    tiered = TieredKernels(host, device, counters)
    tiered.experts(x.to(target), layout, mixed, ids.to(target), weights.to(target), out)

    assert counters.compute_s > 0
    if device.is_simulated:
        assert torch.equal(out, expected)
    torch.testing.assert_close(out.cpu(), expected, atol=1e-4, rtol=1e-4)
    del mixed, there
    arena.close()


def check_link_is_measured(device: Device) -> None:
    """A measurement copies over the link what it says, and leaves the budget as it was."""
    device.ledger.set_limit(4 * MIN_COPY_BYTES)
    before = device.num_bytes_copied
    measured = measure_link(device)
    assert measured is not None
    assert measured.to_host is not None
    assert measured.to_host.value > 0
    copied_bytes = device.num_bytes_copied - before - MIN_COPY_BYTES
    assert copied_bytes > 0
    assert copied_bytes % (4 * MIN_COPY_BYTES) == 0
    assert measured.to_device.value > 0
    assert measured.to_device.method == f"measured, {copied_bytes >> 20} MiB copied"
    assert device.ledger.held_bytes == 0
    device.ledger.set_limit(MIN_COPY_BYTES - 1)
    assert measure_link(device) is None


def check_close_gives_everything_back(device: Device) -> None:
    """Closing twice is allowed; nothing is held afterwards."""
    arena = device.arena(MemoryPart.KV_CACHE, 4, SLOT_BYTES)
    device.copy(filled(9), arena.tensor(3)[:SLOT_BYTES])
    device.close()
    device.close()
    assert device.ledger.held_bytes == device.num_host_bytes == 0


ALL_CHECKS = (
    check_arena_counts_and_gives_back,
    check_budget_is_never_passed,
    check_copies_arrive_in_order,
    check_large_copy_arrives_whole,
    check_small_tensors_are_sent,
    check_free_memory_is_told_where_it_is_known,
    check_launches_follow_each_other,
    check_formats_are_the_hosts,
    check_link_is_measured,
    check_close_gives_everything_back,
)


def _host(arena: DeviceArena, slot: int) -> int:
    """Return the one value that all bytes of a slot have."""
    (value,) = set(arena.tensor(slot)[:SLOT_BYTES].tolist())
    return int(value)


def _sent(device: Device, matrix: Matrix) -> Matrix:
    """Return a matrix with its bytes on a device."""
    data = torch.from_numpy(matrix.data) if not isinstance(matrix.data, torch.Tensor) else None
    assert data is not None
    layout = MatrixLayout(matrix.format, matrix.rows, matrix.columns, 0, data.numel())
    return Matrix.from_buffer(layout, data.to(device.torch_device))
