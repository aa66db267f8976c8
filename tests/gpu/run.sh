#!/usr/bin/env bash
# Runs the tests that need an accelerator, on a machine that has one, with the torch that is
# installed there, then measures copies, kernels, the fixed part of a token (piece by piece and
# recorded), a synthetic model at three VRAM budgets and how far they agree, the demo end to end
# where it was built or LARDER_DEMO names its folder, and llama.cpp where that interpreter has a
# llama_cpp for cards (benchmarks/card.py). No set-up and no network: PYTHON names the interpreter
# (default python3). Writes a JUnit file and gpu.json to $OUT where that is set, else to
# build/tests. Given names of tests, it runs those alone.
set -u
cd "$(dirname "$0")/../.." || exit 1
python=${PYTHON:-python3}
out=${OUT:-build/tests}
mkdir -p "$out"

"$python" - <<'PROBE' || exit 1
import sys
try:
    import torch
except ImportError:
    sys.exit("larder: torch is not installed here; name an interpreter that has it with PYTHON=")
accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
if accelerator is None:
    sys.exit("larder: torch finds no accelerator here, and these tests need one")
print(f"larder: torch {torch.__version__} on {accelerator}")
PROBE

if ! ls tests/gpu/test_*.py >/dev/null 2>&1; then
    echo "larder: there are no tests in tests/gpu yet" >&2
    exit 1
fi
"$python" -m pytest -q -c pyproject.toml --rootdir=. -m gpu --junitxml="$out/gpu.xml" tests/gpu "$@"
status=$?
if [ $# -eq 0 ]; then
    "$python" benchmarks/card.py --out "$out" || status=1
fi
exit $status
