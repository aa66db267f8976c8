import dataclasses
from pathlib import Path

from runtime.hardware.power import EnergyMeter
from runtime.hardware.strain import StrainMeter
from runtime.hardware.system_files import SystemFiles
from runtime.protocol.plan import MemoryPart
from runtime.protocol.telemetry import NoteCode, RateLimits, RuntimeNote
from runtime.protocol.values import Tier
from runtime.telemetry.expert_tally import IN_RAM, IN_VRAM, ON_DRIVE, ExpertTally
from runtime.telemetry.recorder import Counters
from runtime.telemetry.sampler import Gauges, NoteBox, Sampler

LIMITS = RateLimits(ram_read=20e9, link=1e9, drive=3e9)


@dataclasses.dataclass
class Bench:
    """A sampler and everything that it reads."""

    counters: Counters = dataclasses.field(default_factory=Counters)
    tally: ExpertTally = dataclasses.field(default_factory=lambda: ExpertTally(2, 4, 16))
    notes: NoteBox = dataclasses.field(default_factory=NoteBox)
    vram: dict[MemoryPart, int] = dataclasses.field(default_factory=dict)
    drive_bytes: int = 1000
    link_bytes: int = 10

    def sampler(self) -> Sampler:
        gauges = Gauges(
            resident_bytes=lambda: 1234,
            ram_by_kind=lambda: {MemoryPart.DENSE: 10},
            vram_by_kind=lambda: self.vram,
            drive_bytes=lambda: self.drive_bytes,
            link_bytes=lambda: self.link_bytes,
            limits=LIMITS,
            energy=EnergyMeter(SystemFiles(Path("/nowhere"))),
            strain=StrainMeter("/nowhere", SystemFiles(Path("/nowhere"))),
        )
        return Sampler(self.counters, self.tally, gauges, self.notes)


def test_sampler_two_samples_each_hold_their_interval_alone() -> None:
    bench = Bench()
    sampler = bench.sampler()
    live = bench.counters
    live.expert_hits += 7
    live.expert_hit_bytes += 700
    live.expert_misses += 2
    live.expert_miss_bytes += 200
    live.num_decoded_tokens += 4
    live.ram_bytes_read += 900
    live.decode_s += 0.4
    live.compute_s += 0.2
    live.drive_wait_s += 0.1
    bench.drive_bytes += 256

    first = sampler.sample(0.5)
    second = sampler.sample(0.5)

    assert first.num_tokens == 4
    assert round(first.decode_tokens_per_s, 6) == 10
    assert [(tier.tier, tier.hits, tier.misses, tier.bytes) for tier in first.tiers] == [
        (Tier.RAM, 7, 2, 700),
        (Tier.DRIVE, 2, 0, 200),
    ]
    assert first.drive_bytes_read == 256
    assert first.ram_bytes_read == 900
    assert {cause: round(value, 6) for cause, value in first.seconds.items()} == {
        "compute": 0.2,
        "drive_wait": 0.1,
        "other": 0.1,
    }
    assert first.resident_bytes == 1234
    assert first.ram_by_kind == {"dense": 10}
    assert first.vram_by_kind == {}
    assert first.limits == LIMITS
    assert sum(part.joules for part in first.energy) > 0
    assert second.num_tokens == second.drive_bytes_read == 0
    assert second.decode_tokens_per_s == 0
    assert sum(second.seconds.values()) == 0


def test_sampler_with_a_device_shows_its_tier_link_and_memory() -> None:
    bench = Bench(vram={MemoryPart.EXPERTS: 77})
    sampler = bench.sampler()
    bench.link_bytes += 55
    bench.counters.device_hits += 3

    sample = sampler.sample(0.1)

    assert sample.link_bytes == 55
    assert sample.vram_by_kind == {"experts": 77}
    assert [tier.tier for tier in sample.tiers] == [Tier.VRAM, Tier.RAM, Tier.DRIVE]
    assert "device" in sample.seconds


def test_sampler_notes_are_told_once() -> None:
    bench = Bench()
    sampler = bench.sampler()
    note = RuntimeNote(code=NoteCode.EXPERTS_LOADED, parameters={"num_experts": 3, "seconds": 0.5})
    bench.notes.put(note)

    assert sampler.sample(0.1).notes == [note]
    assert sampler.sample(0.1).notes == []


def test_sampler_expert_map_shows_uses_on_a_log_scale_that_fade() -> None:
    bench = Bench()
    sampler = bench.sampler()
    bench.tally.note_uses(4, [1])
    for _ in range(3):
        bench.tally.note_uses(4, [2])
    bench.tally.tiers[6] = IN_RAM

    fresh = sampler.sample(0.0).experts
    later = sampler.sample(60.0).experts

    assert fresh is not None
    assert later is not None
    assert (fresh.num_layers, fresh.num_experts) == (2, 4)
    assert list(fresh.use) == [0, 0, 0, 0, 0, 16, 32, 0]
    assert list(fresh.tier) == [ON_DRIVE] * 6 + [IN_RAM, ON_DRIVE]
    assert list(fresh.bits) == [16] * 8
    assert 0 < later.use[6] < fresh.use[6]


def test_sampler_layer_hits_say_which_tiers_answered_of_late() -> None:
    bench = Bench()
    sampler = bench.sampler()
    bench.tally.note_uses(4, [1])
    bench.tally.tiers[4:6] = bytes([IN_VRAM, IN_RAM])
    for _ in range(3):
        bench.tally.note_uses(4, [0])
    bench.tally.note_uses(4, [1])

    fresh = sampler.sample(0.0).experts
    resting = sampler.sample(1.0).experts
    long_ago = sampler.sample(600.0).experts

    assert fresh is not None
    assert resting is not None
    assert long_ago is not None
    assert list(fresh.layer_hits) == [0, 0, 0, 153, 51, 51]
    assert resting.layer_hits == fresh.layer_hits
    assert list(long_ago.layer_hits) == [0] * 6


def test_sampler_expert_used_without_end_stays_within_a_byte() -> None:
    bench = Bench()
    sampler = bench.sampler()
    bench.tally.uses[0] = 2**40

    experts = sampler.sample(0.0).experts

    assert experts is not None
    assert experts.use[0] == 255
