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


_GROUPED_ARGUMENTS = {"bases": "*i64", "starts": "*i64", "counts": "*i64", **_RUNTIME_ARGUMENTS}


def main(capability: int) -> None:
    """Compile the programs of every format."""
    for weight_format in triton_matvec.KINDS:
        one = triton_matvec.constants_of(weight_format)
        many = triton_matvec.grouped_constants_of(weight_format)
        cases = (
            (str(weight_format), triton_matvec.multiply, _RUNTIME_ARGUMENTS, one),
            (f"{weight_format}-grouped", triton_matvec.multiply_groups, _GROUPED_ARGUMENTS, many),
        )
        for name, program, arguments, constants in cases:
            signature = arguments | dict.fromkeys(constants, "constexpr")
            source = ASTSource(program, signature, constants)
            compiled = triton.compile(source, GPUTarget("cuda", capability, 32))
            sys.stdout.write(f"{name} {len(compiled.asm['cubin'])}\n")
    for weight_format in triton_matvec.PLAIN_KINDS:
        constants = triton_matvec.plain_constants_of(weight_format)
        arguments = {key: kind for key, kind in _RUNTIME_ARGUMENTS.items() if key != "block_bytes"}
        signature = arguments | dict.fromkeys(constants, "constexpr")
        source = ASTSource(triton_matvec.multiply_plain, signature, constants)
        compiled = triton.compile(source, GPUTarget("cuda", capability, 32))
        sys.stdout.write(f"{weight_format} {len(compiled.asm['cubin'])}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]))
