"""Every figure of the forecast that can be calibrated.

Where they come from is in ``docs/decisions/0051-forecast.md``.
"""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType

from runtime.protocol.values import WeightFormat

NATIVE_CORE_BYTES_PER_S: Mapping[WeightFormat, float] = MappingProxyType(
    {
        WeightFormat.F32: 20e9,
        WeightFormat.F16: 20e9,
        WeightFormat.BF16: 20e9,
        WeightFormat.Q8_G32: 20e9,
        WeightFormat.Q4_G32: 17e9,
        WeightFormat.MXFP4: 15.5e9,
        WeightFormat.Q4A_G32: 17e9,
        WeightFormat.Q6_G32: 18e9,
        WeightFormat.Q3_G16: 13e9,
        WeightFormat.Q2_G16: 12.5e9,
        WeightFormat.Q4K_G32: 17e9,
        WeightFormat.Q6K_G16: 18e9,
        WeightFormat.Q5K_G32: 17e9,
        WeightFormat.Q3K_G16: 13e9,
        WeightFormat.Q2K_G16: 12.5e9,
    }
)
"""Of one core of a Zen 4 with the others at work; see ``docs/decisions/0416-rate-of-a-core.md``."""
REFERENCE_BYTES_PER_S: Mapping[WeightFormat, float] = MappingProxyType(
    {
        WeightFormat.F32: 6e9,
        WeightFormat.F16: 0.8e9,
        WeightFormat.BF16: 2.0e9,
        WeightFormat.Q8_G32: 0.28e9,
        WeightFormat.Q4_G32: 0.13e9,
        WeightFormat.MXFP4: 0.13e9,
        WeightFormat.Q4A_G32: 0.13e9,
        WeightFormat.Q6_G32: 0.13e9,
        WeightFormat.Q3_G16: 0.09e9,
        WeightFormat.Q2_G16: 0.06e9,
        WeightFormat.Q4K_G32: 0.13e9,
        WeightFormat.Q6K_G16: 0.13e9,
        WeightFormat.Q5K_G32: 0.13e9,
        WeightFormat.Q3K_G16: 0.09e9,
        WeightFormat.Q2K_G16: 0.06e9,
    }
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CostConstants:
    """What is assumed about this program's own speed, and about a PC nothing was measured on."""

    native_core_bytes_per_s: Mapping[WeightFormat, float] = dataclasses.field(
        default_factory=lambda: NATIVE_CORE_BYTES_PER_S
    )
    """What a core gets through with the native kernels where RAM gives it all that it asks for."""
    reference_bytes_per_s: Mapping[WeightFormat, float] = dataclasses.field(
        default_factory=lambda: REFERENCE_BYTES_PER_S
    )
    """Bytes that the reference kernels unpack and use per second: work of one core, so that
    neither more cores nor faster memory help."""
    reference_expert_s: float = 0.00009
    """Time of one expert of a token that does not depend on its size, with the reference."""
    reference_layer_s: float = 0.001
    """``layer_s`` with the reference."""
    layer_s: float = 0.00012
    """Time of a layer that does not depend on its weights: many small operations."""
    token_s: float = 0.001
    """The same for a token: sampling, text, messages."""
    flops_per_core: float = 30e9
    """Multiplications and additions per second and core while a prompt is read."""
    device_efficiency: float = 0.5
    """Part of a device's plain read rate that its kernels reach."""
    device_layer_s: float = 0.00015
    """Further time of a layer whose experts are computed in two places: starts, copies, waits."""
    kv_hop_s: float = 0.00006
    """Further time of a layer whose keys and values lie in RAM beside a device: there and back."""
    flops_per_device_byte: float = 20.0
    """Multiplications and additions that a device does in the time of reading one byte."""
    assumed_device_bytes_per_s: float = 250e9
    assumed_link_bytes_per_s: float = 8e9
    miss_s: float = 0.0002
    """Time of a read from the drive that does not depend on its size; a layer's reads share it."""
    widened_bytes_per_s: float = 0.6e9
    """Bytes in RAM that come of experts which are published in fewer bits and widened while they
    are read, per second: work of one core behind each read, side by side for those of a layer."""
    assumed_ram_bytes_per_s: float = 12e9
    assumed_drive_bytes_per_s: float = 500e6
    kv_depth_tokens: int = 512
    """Length of conversation that a forecast is made for."""
    low_ratio: float = 0.65
    """Lower end of the band, as part of the predicted speed."""
    high_ratio: float = 1.4


DEFAULT_COSTS = CostConstants()
