"""What others published of models on home PCs, with what has to be assumed to forecast them.

Rates of RAM, drives and cards are what such parts usually have, in GB/s; a drive's is its nominal
one. ``expert_gb`` is what memory was left for experts. All weights are in about 4.5 bits.
"""

import dataclasses

from runtime.plan.cost import DeviceRates, Held, Known, Rates, Reads, forecast
from runtime.plan.hits import curve_of
from runtime.protocol.values import Forecast, WeightFormat
from runtime.spec.model import ModelSpec
from tests.support.plan_cases import spec


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A published model."""

    model_type: str
    hidden: int
    layers: int
    first_dense: int = 0
    experts: int
    top_k: int
    width: int
    expert_mb: float
    dense_gb: float

    def spec(self) -> ModelSpec:
        """Return its architecture, as far as the forecast looks at it."""
        plain = spec(
            hidden_size=self.hidden,
            num_layers=self.layers,
            num_dense_layers=self.first_dense,
            num_experts=self.experts,
            top_k=self.top_k,
            expert_width=self.width,
        )
        return dataclasses.replace(plain, model_type=self.model_type)


QWEN3_235B = Shape(
    model_type="qwen3_moe", hidden=4096, layers=94, experts=128, top_k=8, width=1536,
    expert_mb=10.6, dense_gb=5.5,
)  # fmt: skip
GLM_5_2 = Shape(
    model_type="glm_moe_dsa", hidden=6144, layers=78, first_dense=3, experts=256, top_k=8,
    width=2048, expert_mb=19, dense_gb=10,
)  # fmt: skip
QWEN3_30B = Shape(
    model_type="qwen3_moe", hidden=2048, layers=48, experts=128, top_k=8, width=768,
    expert_mb=2.86, dense_gb=1.0,
)  # fmt: skip
GPT_OSS_20B = Shape(
    model_type="gpt_oss", hidden=2880, layers=24, experts=32, top_k=4, width=2880,
    expert_mb=13.25, dense_gb=2.3,
)  # fmt: skip


RAM_PART = 0.7
"""Of a nominal RAM rate what plain reading reaches; where Larder runs, that is measured."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """One result: a PC, a model, tokens per second."""

    about: str
    shape: Shape
    expert_gb: float | None = None
    """None: all experts stay in memory."""
    vram_expert_gb: float = 0.0
    ram: float
    drive: float = 3.0
    card: float | None = None
    tokens_per_s: float

    def forecast(self, drive_part: float) -> Forecast:
        """Return what the cost model says if a drive gives so much of its nominal rate."""
        of, shape = self.shape.spec(), self.shape
        num_all = len(of.moe_layers) * of.num_experts
        expert_bytes = round(shape.expert_mb * 1e6)
        in_vram = min(num_all, int(self.vram_expert_gb * 1e9 / expert_bytes))
        room = None if self.expert_gb is None else int(self.expert_gb * 1e9 / expert_bytes)
        in_ram = num_all - in_vram if room is None else min(num_all - in_vram, room)
        reads = Reads(
            dense_bytes=round(shape.dense_gb * 1e9),
            dense_format=WeightFormat.Q4A_G32,
            expert_record_bytes=expert_bytes,
            expert_drive_bytes=expert_bytes,
            expert_formats={WeightFormat.Q4A_G32: 1},
            kv_bytes_per_token=50_000,
            num_active_parameters=10**10,
        )
        card = None
        if self.card is not None:
            card = DeviceRates(
                read_bytes_per_s=self.card * 1e9,
                link_bytes_per_s=12e9,
                link_back_bytes_per_s=12e9,
                is_measured=True,
            )
        rates = Rates(
            ram_bytes_per_s=self.ram * RAM_PART * 1e9,
            drive_bytes_per_s=self.drive * drive_part * 1e9,
            is_ram_measured=True,
            is_drive_measured=True,
            num_cores=8,
            has_native_kernels=True,
            device=card,
        )
        return forecast(of, reads, rates, Held(in_vram, in_ram), Known(curve_of(of)))


FITTED = (
    Published(
        about="RTX 3070 8 GB, 32 GB DDR4, 2.4 GB/s drive, warm", shape=QWEN3_235B, expert_gb=18,
        ram=40, drive=2.4, card=448, tokens_per_s=0.44,
    ),
    Published(
        about="i5-13600K, 62 GB, RTX 5070 Ti, 5.9 GB/s drive", shape=GLM_5_2, expert_gb=50,
        vram_expert_gb=5, ram=60, drive=5.9, card=896, tokens_per_s=0.46,
    ),
    Published(
        about="CPU only, 8840U", shape=QWEN3_30B, ram=60, tokens_per_s=15,
    ),
)  # fmt: skip
"""The half from which the one constant was taken."""
HELD_OUT = (
    Published(
        about="9950X3D2, 121 GB, RTX 5090, 11.5 GB/s drive", shape=GLM_5_2, expert_gb=103,
        vram_expert_gb=14, ram=75, drive=11.5, card=1700, tokens_per_s=1.23,
    ),
    Published(
        about="Ryzen 5700G, 40 GB allowed, PCIe 3 drive", shape=GLM_5_2, expert_gb=28, ram=40,
        drive=3.5, tokens_per_s=0.16,
    ),
    Published(
        about="laptop of 32 GB, 0.1 to 0.2 tokens/s", shape=GLM_5_2, expert_gb=18, ram=45,
        drive=3.0, tokens_per_s=0.15,
    ),
    Published(
        about="RTX 2080 8 GB, DDR4 at four channels", shape=QWEN3_30B, vram_expert_gb=4.4, ram=70,
        card=448, tokens_per_s=36.7,
    ),
    Published(
        about="RTX 2080 8 GB, DDR4 at four channels", shape=GPT_OSS_20B, vram_expert_gb=5, ram=70,
        card=448, tokens_per_s=36.4,
    ),
)  # fmt: skip
