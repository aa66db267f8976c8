"""Kimi K2.5 checkpoints: a DeepSeek-V3 beside what sees."""

from runtime.inspect.families.deepseek_v3 import DEEPSEEK_V3
from runtime.inspect.families.wrapped import wrapped
from runtime.spec.naming import Naming

KIMI_K25 = wrapped(
    DEEPSEEK_V3,
    model_type="kimi_k25",
    architectures=("KimiK25ForConditionalGeneration", "Kimi_K25ForConditionalGeneration"),
    text_types=("kimi_k2", "deepseek_v3"),
    naming=Naming(body="language_model.model", head="language_model.lm_head"),
)
