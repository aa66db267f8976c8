"""Searching a hub: what its list says of each model, those that suit this PC first."""

from collections.abc import Mapping

from runtime.hub.connection import HubConnection
from runtime.hub.gguf_listing import gguf_names, read_listed_gguf
from runtime.hub.repo import count_of, is_model_id, licence_of, texts_of
from runtime.inspect.families.llama import LLAMA
from runtime.inspect.families.qwen3 import QWEN3
from runtime.inspect.families.registry import FAMILIES
from runtime.inspect.header import DTYPE_BITS
from runtime.protocol.hub import HubFit, HubModel

MAX_MODELS = 60
_EXPAND = ["config", "safetensors", "gated", "downloads", "likes", "tags", "gguf", "siblings"]
_DENSE = frozenset(
    name for family in (LLAMA, QWEN3) for name in (family.model_type, *family.aliases)
)
_FOREIGN = frozenset({"gguf", "mlx", "onnx", "openvino", "exl2", "exl3", "bitsandbytes", "lora"})
"""Tags of files that are not downloaded, unless there are safetensors files too."""
_FIT_ORDER = list(HubFit)


def search_hub(hub: HubConnection, query: str, free_bytes: int) -> list[HubModel]:
    """Return what the hub finds, best suited first and then by downloads.

    Asked for are models that write text and, many of which are not marked so, those in GGUF.
    Raises ``LarderError``.
    """
    found: dict[str, HubModel] = {}
    for kind in ({"pipeline_tag": "text-generation"}, {"filter": "gguf"}):
        for model in _ask(hub, query, kind, free_bytes):
            found.setdefault(model.model_id, model)
    return sorted(found.values(), key=_rank)


def _ask(
    hub: HubConnection, query: str, kind: Mapping[str, str], free_bytes: int
) -> list[HubModel]:
    asked: dict[str, str | list[str]] = {
        **kind,
        "sort": "downloads",
        "direction": "-1",
        "limit": str(MAX_MODELS),
        "expand": _EXPAND,
    }
    if query.strip():
        asked["search"] = query.strip()[:200]
    answer = hub.ask("models", asked)
    if not isinstance(answer, list):
        raise hub.invalid("its list of models is none")
    read = [read_listed(each, free_bytes) for each in answer[:MAX_MODELS]]
    return [model for model in read if model is not None]


def read_listed(answer: object, free_bytes: int) -> HubModel | None:
    """Return one model of a list; None for what has no name that can be asked for."""
    if not isinstance(answer, dict):
        return None
    model_id = answer.get("id")
    if not (isinstance(model_id, str) and is_model_id(model_id)):
        return None
    config = answer.get("config")
    model_type = config.get("model_type") if isinstance(config, dict) else None
    model_type = model_type[:80] if isinstance(model_type, str) else ""
    num_parameters, size_bytes = _weights_of(answer.get("safetensors"))
    if not num_parameters and (names := gguf_names(answer)):
        return read_listed_gguf(answer, model_id, names, free_bytes)
    is_foreign = not num_parameters and bool(_FOREIGN.intersection(texts_of(answer.get("tags"))))
    return HubModel(
        model_id=model_id,
        fit=_fit(model_type, size_bytes, free_bytes, is_foreign=is_foreign),
        model_type=model_type,
        licence=licence_of(answer),
        is_gated=bool(answer.get("gated")),
        num_parameters=num_parameters,
        size_bytes=size_bytes,
        num_downloads=count_of(answer.get("downloads")),
        num_likes=count_of(answer.get("likes")),
    )


def _fit(model_type: str, size_bytes: int, free_bytes: int, *, is_foreign: bool) -> HubFit:
    if is_foreign:
        return HubFit.NOT_RUNNABLE
    if not model_type:
        return HubFit.UNKNOWN
    if model_type not in FAMILIES:
        return HubFit.NOT_RUNNABLE
    if model_type in _DENSE:
        return HubFit.DENSE
    return HubFit.FITS if size_bytes <= free_bytes else HubFit.NO_ROOM


def _weights_of(safetensors: object) -> tuple[int, int]:
    """Return how many numbers the weights are, and about how many bytes."""
    if not isinstance(safetensors, Mapping):
        return 0, 0
    by_type = safetensors.get("parameters")
    if not isinstance(by_type, Mapping):
        return count_of(safetensors.get("total")), 0
    counts = {str(name): count_of(count) for name, count in by_type.items()}
    num_bits = sum(DTYPE_BITS.get(name, 16) * count for name, count in counts.items())
    return sum(counts.values()), num_bits // 8


def _rank(model: HubModel) -> tuple[int, int]:
    return _FIT_ORDER.index(model.fit), -model.num_downloads
