"""What is said of a matrix in which something stands for no number."""

from runtime.protocol.errors import ErrorCode
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import TensorEntry
from runtime.store.not_finite import not_finite


def test_not_finite_names_the_matrix_and_a_file_whose_name_cannot_travel() -> None:
    entry = TensorEntry("w", "/m/\udcff.safetensors", 0, 4, WeightFormat.F32, (1,))
    error = not_finite(entry, "why")
    assert (error.code, error.detail) == (ErrorCode.WEIGHTS_NOT_FINITE, "why")
    assert error.parameters == {"place": "The matrix w in /m/?.safetensors"}
