"""The exception that carries an ``ErrorCode`` through the runtime, and the one way to report it."""

from runtime.protocol.errors import ErrorCode, ErrorReport, Severity

_REQUEST = frozenset(
    {
        ErrorCode.PROMPT_TOO_LONG,
        ErrorCode.ENGINE_BUSY,
        ErrorCode.NO_MODEL_LOADED,
        ErrorCode.MODEL_ALREADY_LOADED,
        ErrorCode.SETTING_INVALID,
        ErrorCode.MACHINE_FILE_INVALID,
        ErrorCode.TEXT_INVALID,
        ErrorCode.CONVERSATION_INVALID,
        ErrorCode.HUB_OFFLINE,
        ErrorCode.HUB_UNREACHABLE,
        ErrorCode.HUB_ANSWER_INVALID,
        ErrorCode.HUB_MODEL_MISSING,
        ErrorCode.HUB_MODEL_GATED,
        ErrorCode.HUB_MODEL_UNUSABLE,
        ErrorCode.DOWNLOAD_MISMATCHED,
        ErrorCode.DOWNLOAD_PLACE_TAKEN,
        ErrorCode.DOWNLOAD_BUSY,
        ErrorCode.DOWNLOAD_WRITE_FAILED,
        ErrorCode.UPDATE_UNREACHABLE,
        ErrorCode.UPDATE_INVALID,
        ErrorCode.UPDATE_UNSIGNED,
        ErrorCode.ENGINE_PARTS_UNREACHABLE,
        ErrorCode.ENGINE_PARTS_UNUSABLE,
    }
)
_RUNTIME = frozenset(
    {
        ErrorCode.ENGINE_MISSING,
        ErrorCode.OUT_OF_MEMORY,
        ErrorCode.DEVICE_LOST,
        ErrorCode.PROTOCOL_MISMATCHED,
        ErrorCode.FRAME_INVALID,
        ErrorCode.RUNTIME_NOT_STARTED,
        ErrorCode.RUNTIME_ENDED,
        ErrorCode.RUNTIME_SILENT,
        ErrorCode.INTERNAL,
    }
)


def severity_of(code: ErrorCode) -> Severity:
    """Return what has to change before trying again after an error of this code."""
    if code in _REQUEST:
        return Severity.REQUEST
    return Severity.RUNTIME if code in _RUNTIME else Severity.MODEL


class LarderError(Exception):
    """An error that a person can meet: a code, the values for its sentence, technical detail.

    Raise it where a library or system error is first understood, with ``from`` keeping the cause.
    """

    def __init__(self, code: ErrorCode, detail: str = "", **parameters: str | float) -> None:
        super().__init__(code, detail, parameters)
        self.code = code
        self.detail = detail
        self.parameters = parameters

    def __str__(self) -> str:
        values = ", ".join(f"{key}={value}" for key, value in self.parameters.items())
        return " · ".join(part for part in (self.code.value, values, self.detail) if part)


class CancelledError(Exception):
    """Work that a person stopped; never reported as an error."""


def _printable(text: str) -> str:
    """Return text with whatever is not Unicode escaped, as it can be in names of files."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def report_of(error: BaseException, log_reference: str = "") -> ErrorReport:
    """Return the report of any exception; one that is not ours becomes ``INTERNAL``."""
    if isinstance(error, LarderError):
        return ErrorReport(
            code=error.code,
            severity=severity_of(error.code),
            parameters={
                key: _printable(value) if isinstance(value, str) else value
                for key, value in error.parameters.items()
            },
            detail=_printable(error.detail),
            log_reference=log_reference,
        )
    code = ErrorCode.OUT_OF_MEMORY if isinstance(error, MemoryError) else ErrorCode.INTERNAL
    return ErrorReport(
        code=code,
        severity=severity_of(code),
        detail=_printable(f"{type(error).__name__}: {error}"),
        log_reference=log_reference,
    )
