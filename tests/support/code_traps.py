"""Model folders full of code that must not run: other programs would import or unpickle it."""

import json
import pickle
from pathlib import Path
from typing import Any

from tests.support.checkpoint_folders import edit_json, write_checkpoint


class Canary:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (Path.touch, (self.path,))


def make_trap(folder: Path, sign: Path) -> Path:
    """Write a good model with everything in it that other programs would run."""
    write_checkpoint(folder)
    code = f"from pathlib import Path\nPath({str(sign)!r}).touch()\n"
    for name in (
        "modeling_trap",
        "configuration_trap",
        "tokenization_trap",
        "__init__",
        "conftest",
    ):
        (folder / f"{name}.py").write_text(code)
    classes = {
        "AutoConfig": "configuration_trap.Config",
        "AutoModelForCausalLM": "modeling_trap.Model",
        "AutoTokenizer": ["tokenization_trap.Tokenizer", None],
    }
    edit_json(folder / "config.json", auto_map=classes, trust_remote_code=True)
    edit_json(folder / "tokenizer_config.json", auto_map=classes)
    for name in ("pytorch_model.bin", "training_args.bin", "optimizer.pt", "tokenizer.pkl"):
        (folder / name).write_bytes(pickle.dumps(Canary(sign)))
    (folder / "pytorch_model.bin.index.json").write_text(
        json.dumps({"weight_map": {"model.norm.weight": "pytorch_model.bin"}})
    )
    return folder
