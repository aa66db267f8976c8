"""The peer in its own process: llama.cpp through llama-cpp-python, driven by lines on stdin.

Started with the Python of the peer's environment, which has no other package of ours. Each line is
a JSON object; each answer is one line of JSON:

    {"load": path, "repack": bool, "flash": bool, "threads": n, "ubatch": n,
     "context": n}                                                          -> {"info": ...}
       further, on a card: "gpu_layers": n, and "cpu_experts": n, the first layers whose experts
       stay in RAM although the layers lie on the card; "f32_kv": true, where f16 is usual
    {"prompt": [ids]}                 a whole prompt from nothing               -> {"seconds": s}
    {"decode": n, "first": id}        n tokens one by one, the likeliest each   -> {"seconds": s}
    {"feed": [ids], "goes_on": bool}  these tokens one by one                   -> {"seconds": s}
    {"routes": [ids]}                 these too, with the experts of each        -> {"ids": [...]}
    {"greedy": n, "first": id}        n tokens, the likeliest each               -> {"ids": [...]}
    {"logits": [ids]}                 these tokens one by one                -> {"logits": [...]}
    {"quantise": path, "to": path, "type": n, "pure": bool, "threads": n}      -> {}
    {"all_logits": [ids], "to": path} these at once; a row for each as .npy     -> {}
    {"close": true}

For routes a model has to be loaded with "watched": true, and then computes more slowly.
"""

import contextlib
import ctypes
import importlib
import json
import os
import sys
import time
from types import ModuleType
from typing import Any

F32_TYPE = 0
"""What ggml calls f32."""


class _Tensor(ctypes.Structure):
    """What ggml keeps of a tensor, as far as its name and data are concerned."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("buffer", ctypes.c_void_p),
        ("ne", ctypes.c_int64 * 4),
        ("nb", ctypes.c_size_t * 4),
        ("op", ctypes.c_int),
        ("op_params", ctypes.c_int32 * 16),
        ("flags", ctypes.c_int32),
        ("src", ctypes.c_void_p * 10),
        ("view_src", ctypes.c_void_p),
        ("view_offs", ctypes.c_size_t),
        ("data", ctypes.c_void_p),
        ("name", ctypes.c_char * 64),
    )


class _Override(ctypes.Structure):
    """Where tensors lie whose names a pattern finds."""

    _fields_ = (("pattern", ctypes.c_char_p), ("buffer_type", ctypes.c_void_p))


def _experts_in_ram(num_layers: int) -> Any:  # noqa: ANN401 - an array of ctypes
    """Return that the experts of the first layers lie in RAM; the end is marked by nothing."""
    overrides = (_Override * (num_layers + 1))()
    if num_layers:
        library = importlib.import_module("llama_cpp._ggml").libggml
        library.ggml_backend_cpu_buffer_type.restype = ctypes.c_void_p
        buffer_type = library.ggml_backend_cpu_buffer_type()
        for layer in range(num_layers):
            pattern = f"blk\\.{layer}\\.ffn_(up|down|gate)_exps".encode()
            overrides[layer] = _Override(pattern, buffer_type)
    return overrides


class Choices:
    """Sees every tensor that is computed and keeps the experts that routers chose."""

    _PREFIX = b"ffn_moe_topk-"

    def __init__(self) -> None:
        self.found: dict[int, list[list[int]]] = {}

    def __call__(self, place: int, is_asked: bool, _: object) -> bool:
        """Say which tensors are wanted, then take them; true lets it go on."""
        tensor = _Tensor.from_address(place)
        if not tensor.name.startswith(self._PREFIX):
            return not is_asked
        if not is_asked:
            layer = int(tensor.name[len(self._PREFIX) :])
            for row in range(tensor.ne[1]):
                ids = (ctypes.c_int32 * tensor.ne[0]).from_address(tensor.data + row * tensor.nb[1])
                self.found.setdefault(layer, []).append(list(ids))
        return True


class Peer:
    """One loaded model with one context."""

    def __init__(self, library: ModuleType) -> None:
        self._library = library
        self._model: Any = None
        self._context: Any = None
        self._loaded: tuple[object, ...] = ()
        self._num_vocabulary = 0
        self._num_batch = 0
        self._overrides: Any = None
        """Read by the library while a model is loaded."""
        self._choices = Choices()
        self._watch = library.ggml_backend_sched_eval_callback(self._choices)

    def load(self, wish: dict[str, Any]) -> dict[str, Any]:
        """Make a context with the settings asked for, on the model that is loaded if it fits."""
        library = self._library
        wanted = (
            wish["load"],
            bool(wish["repack"]),
            wish.get("gpu_layers", 0),
            wish.get("cpu_experts", 0),
        )
        if wanted != self._loaded:
            self.close()
            parameters = library.llama_model_default_params()
            parameters.use_mmap = True
            parameters.use_extra_bufts = wanted[1]
            parameters.n_gpu_layers = wanted[2]
            self._overrides = _experts_in_ram(wanted[3])
            if wanted[3]:
                parameters.tensor_buft_overrides = ctypes.cast(self._overrides, ctypes.c_void_p)
            self._model = library.llama_model_load_from_file(wish["load"].encode(), parameters)
            if not self._model:
                return {"error": "the model could not be loaded"}
            self._loaded = wanted
        elif self._context:
            library.llama_free(self._context)
            self._context = None
        settings = library.llama_context_default_params()
        settings.n_ctx = wish["context"]
        settings.n_batch = max(512, wish["ubatch"])
        settings.n_ubatch = wish["ubatch"]
        self._num_batch = settings.n_batch
        settings.n_threads = settings.n_threads_batch = wish["threads"]
        settings.flash_attn_type = 1 if wish["flash"] else 0
        settings.no_perf = True
        if wish.get("f32_kv"):
            settings.type_k = settings.type_v = F32_TYPE
        if wish.get("watched"):
            settings.cb_eval = self._watch
        self._context = library.llama_init_from_model(self._model, settings)
        if not self._context:
            return {"error": "no context could be made"}
        vocabulary = library.llama_model_get_vocab(self._model)
        self._num_vocabulary = library.llama_vocab_n_tokens(vocabulary)
        return {"info": library.llama_print_system_info().decode()}

    def prompt(self, ids: list[int]) -> dict[str, Any]:
        """Put a prompt through the model, from an empty cache."""
        self._clear()
        start = time.perf_counter()
        for first in range(0, len(ids), self._num_batch):
            self._feed(ids[first : first + self._num_batch])
        self._likeliest()
        return {"seconds": time.perf_counter() - start}

    def decode(self, count: int, first: int) -> dict[str, Any]:
        """Decode greedily from one token on."""
        self._clear()
        token = first
        start = time.perf_counter()
        for _ in range(count):
            self._feed([token])
            token = self._likeliest()
        return {"seconds": time.perf_counter() - start}

    def feed(self, ids: list[int], *, is_going_on: bool = False) -> dict[str, Any]:
        """Put tokens through the model one by one, from an empty cache unless it goes on."""
        if not is_going_on:
            self._clear()
        start = time.perf_counter()
        for token in ids:
            self._feed([token])
            self._likeliest()
        return {"seconds": time.perf_counter() - start}

    def routes(self, ids: list[int]) -> dict[str, Any]:
        """Put tokens through one by one; tell the experts of each, and what follows the last."""
        self._clear()
        self._choices.found.clear()
        for token in ids:
            self._feed([token])
        found = self._choices.found
        layers = [found[layer] for layer in sorted(found)]
        return {"ids": layers, "likeliest": self._likeliest()}

    def greedy(self, count: int, first: int) -> dict[str, Any]:
        """Decode from one token on and tell the tokens."""
        self._clear()
        ids, token = [], first
        for _ in range(count):
            self._feed([token])
            token = self._likeliest()
            ids.append(token)
        return {"ids": ids}

    def logits(self, ids: list[int]) -> dict[str, Any]:
        """Put tokens through one by one; tell what stands behind the last."""
        self._clear()
        for token in ids:
            self._feed([token])
        return {"logits": self._last_logits().tolist()}

    def quantise(self, wish: dict[str, Any]) -> dict[str, Any]:
        """Write a file in another type, as its own tool does."""
        library = self._library
        settings = library.llama_model_quantize_default_params()
        settings.ftype = wish["type"]
        settings.pure = wish["pure"]
        settings.nthread = wish["threads"]
        code = library.llama_model_quantize(
            wish["quantise"].encode(), wish["to"].encode(), ctypes.byref(settings)
        )
        return {"error": f"quantising ended with {code}"} if code else {}

    def all_logits(self, ids: list[int], to: str) -> dict[str, Any]:
        """Put tokens through at once, from an empty cache; write what stands behind each."""
        numpy = importlib.import_module("numpy")
        library = self._library
        self._clear()
        batch = library.llama_batch_init(len(ids), 0, 1)
        batch.n_tokens = len(ids)
        for place, token in enumerate(ids):
            batch.token[place], batch.pos[place] = token, place
            batch.n_seq_id[place], batch.seq_id[place][0] = 1, 0
            batch.logits[place] = True
        code = library.llama_decode(self._context, batch)
        if code:
            return {"error": f"decoding ended with {code}"}
        rows = [
            numpy.ctypeslib.as_array(
                library.llama_get_logits_ith(self._context, place), (self._num_vocabulary,)
            ).copy()
            for place in range(len(ids))
        ]
        numpy.save(to, numpy.stack(rows))
        library.llama_batch_free(batch)
        return {}

    def close(self) -> None:
        """Free model and context."""
        if self._context:
            self._library.llama_free(self._context)
        if self._model:
            self._library.llama_model_free(self._model)
        self._context = self._model = None
        self._loaded = ()

    def _clear(self) -> None:
        self._library.llama_memory_clear(self._library.llama_get_memory(self._context), False)

    def _feed(self, ids: list[int]) -> None:
        tokens = (ctypes.c_int32 * len(ids))(*ids)
        batch = self._library.llama_batch_get_one(tokens, len(ids))
        if self._library.llama_decode(self._context, batch):
            raise RuntimeError("llama_decode failed")

    def _last_logits(self) -> Any:  # noqa: ANN401 - numpy is the other environment's
        numpy = importlib.import_module("numpy")
        logits = self._library.llama_get_logits_ith(self._context, -1)
        return numpy.ctypeslib.as_array(logits, (self._num_vocabulary,))

    def _likeliest(self) -> int:
        return int(self._last_logits().argmax())


def answer(peer: Peer, wish: dict[str, Any]) -> dict[str, Any]:
    """Do what one line asks."""
    if "load" in wish:
        return peer.load(wish)
    if "prompt" in wish:
        return peer.prompt(wish["prompt"])
    if "feed" in wish:
        return peer.feed(wish["feed"], is_going_on=wish.get("goes_on", False))
    if "routes" in wish:
        return peer.routes(wish["routes"])
    if "greedy" in wish:
        return peer.greedy(wish["greedy"], wish["first"])
    if "quantise" in wish:
        return peer.quantise(wish)
    if "all_logits" in wish:
        return peer.all_logits(wish["all_logits"], wish["to"])
    if "logits" in wish:
        return peer.logits(wish["logits"])
    return peer.decode(wish["decode"], wish["first"])


def main() -> None:
    """Answer lines until one says close."""
    # What the library says goes nowhere; answers have a channel of their own.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stdout(nowhere):  # noqa: PTH123
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
        library = importlib.import_module("llama_cpp.llama_cpp")
        library.llama_backend_init()
        peer = Peer(library)
        for line in sys.stdin:
            wish = json.loads(line)
            if wish.get("close"):
                break
            answers.write(json.dumps(answer(peer, wish)) + "\n")
            answers.flush()
        peer.close()


if __name__ == "__main__":
    main()
