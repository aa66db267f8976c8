"""What several contract tests share."""

from collections.abc import Iterator

import pytest

from runtime.kernels.base import Kernels
from runtime.kernels.reference import ReferenceKernels
from tests.support.kernel_inputs import native_kernels, usable_instruction_sets
from tests.support.measured_pc import kept_rates, measured_before  # noqa: F401


@pytest.fixture(params=["reference", *usable_instruction_sets()])
def kernels(request: pytest.FixtureRequest) -> Iterator[Kernels]:
    """Every set of kernels that this machine can run, one after another."""
    if request.param == "reference":
        yield ReferenceKernels()
    else:
        with native_kernels(request.param) as kernels:
            yield kernels
