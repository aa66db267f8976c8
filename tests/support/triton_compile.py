"""Compiles Triton's programs for a card that need not be there: format and bytes of machine code.

``python -m tests.support.triton_compile 86``
"""

import sys

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from runtime.kernels import triton_matvec

_RUNTIME_ARGUMENTS = {
    "bases": "*i64",
    "x": "*fp32",
    "sources": "*i64",
    "out": "*fp32",
    "rows": "i32",
    "columns": "i32",
    "x_stride": "i32",
    "block_bytes": "i32",
}


def main(capability: int) -> None:
    """Compile the program of every format."""
    for weight_format in triton_matvec.KINDS:
        constants = triton_matvec.constants_of(weight_format)
        signature = _RUNTIME_ARGUMENTS | dict.fromkeys(constants, "constexpr")
        source = ASTSource(triton_matvec.multiply, signature, constants)
        compiled = triton.compile(source, GPUTarget("cuda", capability, 32))
        sys.stdout.write(f"{weight_format} {len(compiled.asm['cubin'])}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]))
