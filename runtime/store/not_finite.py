"""What is said of a matrix in which something stands for no number."""

from runtime.errors import LarderError
from runtime.inspect.files import shown
from runtime.protocol.errors import ErrorCode
from runtime.spec.tensors import TensorEntry


def not_finite(entry: TensorEntry, detail: str = "") -> LarderError:
    """Return the error that names the matrix and its file."""
    place = f"The matrix {entry.name} in {shown(entry.file)}"
    return LarderError(ErrorCode.WEIGHTS_NOT_FINITE, detail, place=place)
