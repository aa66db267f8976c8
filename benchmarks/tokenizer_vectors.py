"""Vocabularies of GGUF files beside llama.cpp's own test vectors: `make bench-tokenizer_vectors`.

The vocabularies (real GGUF files without weights) lie with their texts and ids in the sources of
the peer, which pip brings into build/; they are too large for the repository and for the gate. Of
each one every text must give the very ids. Writes benchmarks/results/tokenizer_vectors.json.

    python benchmarks/tokenizer_vectors.py --vectors FOLDER     texts and ids from elsewhere
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tarfile
from pathlib import Path

import peer
import reporting

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from runtime.tokenizer.gguf_file import read_gguf_tokenizer  # noqa: E402

FOLDER = ROOT / "build" / "tokenizer-vectors"
BETWEEN = "\n__ggml_vocab_test__\n"
_INSIDE = "vendor/llama.cpp/models/ggml-vocab-"


def fetch(folder: Path) -> None:
    """Bring the sources of the peer, and take the vocabularies and vectors out of them."""
    if any(folder.glob("*.gguf")):
        return
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:"]
    subprocess.run(
        [*command, "--no-build-isolation", "--dest", str(folder), peer.PACKAGE], check=True
    )
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as sources:
        for member in sources:
            if _INSIDE in member.name and member.isfile():
                member.name = Path(member.name).name
                sources.extract(member, folder, filter="data")
    archive.unlink()


def wrong_texts(vocabulary: Path, vectors: Path) -> tuple[int, list[str]]:
    """Return how many texts there are, and those whose ids are others."""
    texts = (vectors / f"{vocabulary.name}.inp").read_text(encoding="utf-8").split(BETWEEN)
    lines = (vectors / f"{vocabulary.name}.out").read_text(encoding="utf-8").split("\n")
    tokenizer = read_gguf_tokenizer(vocabulary)
    wrong = []
    for text, line in zip(texts, lines, strict=False):
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        if ids != [int(number) for number in line.split()]:
            wrong.append(text)
    return len(texts), wrong


def main() -> None:
    """Compare all vocabularies that have vectors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vectors", type=Path, help="a folder with .inp and .out files")
    wishes = parser.parse_args()
    fetch(FOLDER)
    vectors = wishes.vectors or FOLDER
    rows, refused = [], []
    for vocabulary in sorted(FOLDER.glob("*.gguf")):
        if not (vectors / f"{vocabulary.name}.inp").exists():
            continue
        name = vocabulary.stem.removeprefix("ggml-vocab-")
        try:
            number, wrong = wrong_texts(vocabulary, vectors)
        except ValueError as error:
            refused.append(f"{name}: {error}")
            print(f"refused: {refused[-1]}", flush=True)
            continue
        right = number - len(wrong)
        rows.append(
            reporting.row(
                what=f"{name}: texts with the very ids",
                ours=right,
                peer=number,
                target="all",
                is_reached=not wrong,
            )
        )
        print(f"{name}: {right} of {number}", *map(repr, wrong[:3]), flush=True)
    if not rows:
        sys.exit(f"no vocabulary in {FOLDER} has vectors in {vectors}")
    if wishes.vectors is None:
        print(reporting.write_result("tokenizer_vectors", rows, refused=refused, peer=peer.PACKAGE))
    if any(not row["is_reached"] for row in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
