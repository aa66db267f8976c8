"""The one place where every exception of a thread or command ends as an ``ErrorReport``."""

from collections.abc import Callable

from runtime.errors import LarderError, report_of
from runtime.protocol.errors import ErrorReport
from runtime.service.log import ErrorLog


def run_guarded(
    work: Callable[[], None], fail: Callable[[ErrorReport], None], error_log: ErrorLog
) -> None:
    """Run the work of a thread's or a command's entry point; hand what it raises to ``fail``.

    Errors that are ours are reported as they are. Anything else is a bug or an exhausted machine:
    it goes into the log with its stack, and the report says where.
    """
    try:
        work()
    except LarderError as error:
        fail(report_of(error))
    except Exception as error:  # noqa: BLE001 - the entry point of a thread or command
        fail(report_of(error, error_log.record(error)))
