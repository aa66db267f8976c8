"""How an error ends the program: a sentence, an exit status, never a stack."""

from typing import Any

import msgspec

from runtime.cli.output import tell
from runtime.cli.screen import safe_text
from runtime.protocol.errors import ErrorCode, ErrorReport
from runtime.protocol.sentences import sentence

EXIT_INTERNAL = 1
EXIT_PROBLEM = 2
EXIT_INTERRUPTED = 130


def exit_status(report: ErrorReport) -> int:
    """Return the exit status that goes with an error."""
    return EXIT_INTERNAL if report.code is ErrorCode.INTERNAL else EXIT_PROBLEM


def tell_failure(report: ErrorReport) -> None:
    """Write the sentence of an error to the error stream, with where to read more."""
    text = f"larderctl: {safe_text(sentence(report))}"
    if report.log_reference:
        text += f" (log: {safe_text(report.log_reference)})"
    tell(text)


def error_json(report: ErrorReport) -> dict[str, Any]:
    """Return what ``--json`` prints for an error."""
    fields: dict[str, Any] = msgspec.to_builtins(report)
    return {"error": {**fields, "sentence": sentence(report)}}


def print_json(value: object) -> None:
    """Print a value as JSON of one document."""
    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
