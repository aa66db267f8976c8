"""All families that this version reads."""

from runtime.inspect.families.base import Family
from runtime.inspect.families.deepseek_v2 import DEEPSEEK_V2
from runtime.inspect.families.deepseek_v3 import DEEPSEEK_V3
from runtime.inspect.families.ernie4_5_moe import ERNIE4_5_MOE
from runtime.inspect.families.gemma4 import GEMMA4, GEMMA4_TEXT
from runtime.inspect.families.glm4_moe import GLM4_MOE
from runtime.inspect.families.glm4_moe_lite import GLM4_MOE_LITE
from runtime.inspect.families.gpt_oss import GPT_OSS
from runtime.inspect.families.granitemoe import GRANITEMOE
from runtime.inspect.families.kimi_k25 import KIMI_K25
from runtime.inspect.families.llama import LLAMA
from runtime.inspect.families.minimax_m2 import MINIMAX_M2
from runtime.inspect.families.mixtral import MIXTRAL
from runtime.inspect.families.olmoe import OLMOE
from runtime.inspect.families.phimoe import PHIMOE
from runtime.inspect.families.qwen2_moe import QWEN2_MOE
from runtime.inspect.families.qwen3 import QWEN3
from runtime.inspect.families.qwen3_moe import QWEN3_MOE
from runtime.inspect.families.qwen3_vl_moe import QWEN3_VL_MOE

_ALL = (
    DEEPSEEK_V2,
    DEEPSEEK_V3,
    ERNIE4_5_MOE,
    GEMMA4,
    GEMMA4_TEXT,
    GLM4_MOE,
    GLM4_MOE_LITE,
    GPT_OSS,
    GRANITEMOE,
    KIMI_K25,
    LLAMA,
    MINIMAX_M2,
    MIXTRAL,
    OLMOE,
    PHIMOE,
    QWEN2_MOE,
    QWEN3,
    QWEN3_MOE,
    QWEN3_VL_MOE,
)
FAMILIES = {name: family for family in _ALL for name in (family.model_type, *family.aliases)}
"""By every name that ``model_type`` can have."""
SUPPORTED = ", ".join(sorted(FAMILIES))


def find_family(model_type: object, architectures: object) -> Family | None:
    """Return the family of a config, None if there is none that computes what it asks for.

    ``architectures`` may be absent; if it is there, it must name the family's class that can chat.
    """
    family = FAMILIES.get(model_type) if isinstance(model_type, str) else None
    if family is None or architectures is None:
        return family
    is_named = isinstance(architectures, list) and any(
        name in family.architectures for name in architectures if isinstance(name, str)
    )
    return family if is_named else None
