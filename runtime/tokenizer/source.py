"""Where a model's tokenizer and template are: files of its folder, or a GGUF file's metadata."""

from pathlib import Path

from runtime.tokenizer.files import TokenizerFiles, read_tokenizer_files
from runtime.tokenizer.gguf_file import read_gguf_files


def tokenizer_files(model: Path) -> TokenizerFiles:
    """Return what a model says; ``model`` is its folder, or its first file in GGUF."""
    return read_gguf_files(model) if model.is_file() else read_tokenizer_files(model)
