"""How vocabularies in GGUF files have text cut before pieces are merged, by what names the way.

The names stand in ``tokenizer.ggml.pre``. A way is one pattern, or several, of which each cuts what
those before it left; what a pattern does not match is a piece too.
"""

from collections.abc import Mapping
from typing import NamedTuple

from runtime.tokenizer.tiktoken_file import PATTERNS

_ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_PLAIN_ENDINGS = r"'s|'t|'re|'ve|'m|'ll|'d"
_REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_GPT2 = rf"{_PLAIN_ENDINGS}| ?\p{{L}}+| ?\p{{N}}+| ?[^\s\p{{L}}\p{{N}}]+|\s+(?!\S)|\s+"
_CL100K = PATTERNS["llama"]
_QWEN2 = rf"{_ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}|{_REST}"
_QWEN35 = (
    rf"{_ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}"
    r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_CAPITAL, _SMALL = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
_SLASHED_REST = r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def _cased(ending: str, digits: str) -> str:
    """Return the pattern of words whose capitals come first."""
    start = r"[^\r\n\p{L}\p{N}]?"
    return "|".join(
        (
            f"{start}[{_CAPITAL}]*[{_SMALL}]+{ending}",
            f"{start}[{_CAPITAL}]+[{_SMALL}]*{ending}",
            digits,
            _SLASHED_REST,
        )
    )


_O200K = _cased(f"{_ENDINGS}?", r"\p{N}{1,3}")
_TEKKEN = _cased("", r"\p{N}")
_SIGNS = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]"""
_DEEPSEEK_LETTERS = (
    "A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af"
    "\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1"
    "\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5"
    "\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a"
    "\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d"
    "\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3"
    "\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115"
    "\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149"
    "\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d"
    "\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06"
    "\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3"
    "\U000104d8-\U000104fb\U00010c80-\U00010cb2\U00010cc0-\U00010cf2\U000118a0-\U000118df"
    "\U0001e900-\U0001e943"
)
"""Letters that have a capital and a small form, as DeepSeek's first models list them."""


class Cuts(NamedTuple):
    """One way to cut."""

    patterns: tuple[str, ...]
    has_whole_words: bool = False
    """A word that is a piece itself is taken without merging."""
    is_composed: bool = False
    """Letters with their accents become one sign first (NFC)."""


_EASTERN = r"[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
_DIGITS_APART = Cuts((r"\p{N}", _GPT2))
_DEEPSEEK_V3 = Cuts(
    (
        r"\p{N}{1,3}",
        r"[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
        (
            rf"{_SIGNS}[A-Za-z]+|[^\r\n\p{{L}}\p{{P}}\p{{S}}]?[\p{{L}}\p{{M}}]+"
            r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        ),
    )
)
_WAYS: Mapping[Cuts, tuple[str, ...]] = {
    Cuts((_GPT2,)): (
        "gpt-2", "phi-2", "olmo", "mpt", "jais", "gigachat", "a.x-4.0", "mellum", "trillion",
        "granite-docling", "exaone4",
    ),
    Cuts((_CL100K,), has_whole_words=True): (
        "llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2",
        "glm4", "glm5",
    ),
    Cuts((_CL100K,)): ("chatglm-bpe", "dbrx", "smaug-bpe"),
    Cuts((_QWEN2,), is_composed=True): ("qwen2", "deepseek-r1-qwen", "kormo", "megrez"),
    Cuts((_QWEN2,)): ("stablelm2", "hunyuan", "solar-open", "grok-2"),
    Cuts((_QWEN35,)): ("qwen35",),
    Cuts((_O200K,)): ("gpt-4o", "llama4", "kanana2", "minimax-m2"),
    Cuts((_TEKKEN,), has_whole_words=True): ("tekken",),
    Cuts((PATTERNS["kimi_k2"],)): ("kimi-k2",),
    _DIGITS_APART: (
        "smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b",
    ),
    _DEEPSEEK_V3: ("deepseek-v3", "hunyuan-dense", "joyai-llm"),
    Cuts(
        (
            r"[\r\n]",
            rf"\s?[{_DEEPSEEK_LETTERS}]+",
            r"\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+",
            r"\s+$",
            _EASTERN,
            r"\p{N}+",
        )
    ): ("deepseek-llm",),
    Cuts((r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _EASTERN, r"\p{N}")): ("deepseek-coder",),
    Cuts((r"[\p{P}\$\+<=>\^~\|`]+", _GPT2, r"[0-9][0-9][0-9]")): ("falcon",),
    Cuts((r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", r"[0-9][0-9][0-9]")): ("default", ""),
}  # fmt: skip
CUTS: Mapping[str, Cuts] = {name: way for way, names in _WAYS.items() for name in names}
"""By name; the empty one is for files from before it was written."""
