"""What is known of published models, by the name of their config in ``tests/golden``."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class KnownModel:
    """Facts that the publisher states, or that follow from the shapes of the tensors."""

    num_layers: int
    num_moe_layers: int
    num_experts: int
    top_k: int
    total_billions: float
    active_billions: float
    expert_parameters: int
    """Of one routed expert."""
    kv_channels: int
    """Numbers kept of each position, all layers together."""
    counts_embedding: bool = True
    """Whether the active parameters count the whole embedding."""


FACTS = {
    # Their active parameters are published as 10 billions, without embedding and output matrix.
    "MiniMaxAI--MiniMax-M2.5": KnownModel(62, 62, 256, 8, 229, 11.03, 14155776, 126976),
    "MiniMaxAI--MiniMax-M2.7": KnownModel(62, 62, 256, 8, 229, 11.03, 14155776, 126976),
    "Qwen--Qwen1.5-MoE-A2.7B": KnownModel(24, 24, 60, 4, 14.3, 2.7, 8650752, 98304),
    "Qwen--Qwen2-57B-A14B": KnownModel(28, 28, 64, 8, 57.4, 14.2, 27525120, 28672),
    "Qwen--Qwen3-235B-A22B": KnownModel(94, 94, 128, 8, 235.1, 22.2, 18874368, 96256),
    "Qwen--Qwen3-235B-A22B-FP8": KnownModel(94, 94, 128, 8, 235.1, 22.2, 18874368, 96256),
    "Qwen--Qwen3-30B-A3B-FP8": KnownModel(48, 48, 128, 8, 30.5, 3.3, 4718592, 49152),
    "Qwen--Qwen3-30B-A3B": KnownModel(48, 48, 128, 8, 30.5, 3.3, 4718592, 49152),
    "Qwen--Qwen3-Coder-480B-A35B-Instruct": KnownModel(
        62, 62, 160, 8, 480.2, 35.5, 47185920, 126976
    ),
    "Qwen--Qwen3-VL-30B-A3B-Instruct": KnownModel(48, 48, 128, 8, 30.5, 3.3, 4718592, 49152),
    "allenai--OLMoE-1B-7B-0125": KnownModel(16, 16, 64, 8, 6.9, 1.3, 6291456, 65536),
    # Its active parameters are published as 3.0 billions, without embedding.
    "baidu--ERNIE-4.5-21B-A3B-PT": KnownModel(28, 27, 64, 6, 21.8, 3.35, 11796480, 28672),
    "deepseek-ai--DeepSeek-R1": KnownModel(61, 58, 256, 8, 671, 37, 44040192, 35136),
    # Its active parameters are published as 2.4 billions, without embedding and output matrix.
    "deepseek-ai--DeepSeek-V2-Lite": KnownModel(27, 26, 64, 6, 15.7, 2.66, 8650752, 15552),
    "deepseek-ai--DeepSeek-V3": KnownModel(61, 58, 256, 8, 671, 37, 44040192, 35136),
    "google--gemma-4-26B-A4B": KnownModel(30, 30, 128, 8, 25.2, 3.8, 5947392, 112640),
    "ibm-granite--granite-3.1-1b-a400m-instruct": KnownModel(
        24, 24, 32, 8, 1.33, 0.43, 1572864, 24576
    ),
    "ibm-research--PowerMoE-3b": KnownModel(32, 32, 40, 8, 3.3, 0.88, 2359296, 32768),
    "microsoft--GRIN-MoE": KnownModel(32, 32, 16, 2, 41.9, 6.6, 78643200, 65536),
    "microsoft--Phi-3.5-MoE-instruct": KnownModel(32, 32, 16, 2, 41.9, 6.6, 78643200, 65536),
    "mistralai--Mixtral-8x22B-v0.1": KnownModel(56, 56, 8, 2, 140.6, 39.1, 301989888, 114688),
    "mistralai--Mixtral-8x7B-v0.1": KnownModel(32, 32, 8, 2, 46.7, 12.9, 176160768, 65536),
    "openai--gpt-oss-120b": KnownModel(
        36, 36, 128, 4, 116.8, 5.1, 24883200, 36864, counts_embedding=False
    ),
    "openai--gpt-oss-20b": KnownModel(
        24, 24, 32, 4, 20.9, 3.6, 24883200, 24576, counts_embedding=False
    ),
    "moonshotai--Kimi-K2-Instruct": KnownModel(61, 60, 384, 8, 1026, 32.6, 44040192, 35136),
    "moonshotai--Kimi-K2.5": KnownModel(61, 60, 384, 8, 1026, 32.6, 44040192, 35136),
    # Its active parameters are published as 12 billions, without embedding and output matrix.
    "zai-org--GLM-4.5-Air": KnownModel(46, 45, 128, 8, 106.9, 13.42, 17301504, 94208),
}
