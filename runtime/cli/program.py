"""One run of ``larderctl``, from its arguments to its exit status."""

import argparse
import contextlib
import faulthandler
import functools
import os
import sys
from collections.abc import Callable, Sequence

import msgspec

from runtime.cli.arguments import ArgumentsError, build_parser
from runtime.cli.client import Client, CommandFailedError
from runtime.cli.failure import (
    EXIT_PROBLEM,
    error_json,
    exit_status,
    print_json,
    tell_failure,
)
from runtime.cli.output import open_missing_streams, run_writing, tell
from runtime.cli.screen import use_forgiving_streams
from runtime.hardware.profile import MACHINE_VARIABLE
from runtime.protocol.errors import ErrorCode, ErrorReport, Severity
from runtime.protocol.messages import BudgetsAdapted, CommandFailed
from runtime.protocol.sentences import reason_sentence
from runtime.service.folders import find_folders, use_stated_machine
from runtime.service.guard import run_guarded
from runtime.service.log import ErrorLog, logging_to, open_log
from runtime.service.parentage import die_with_input, die_with_parent
from runtime.service.version import runtime_version
from runtime.service.workshop import WorkshopOptions, make_service

DEBUG_VARIABLE = "LARDER_DEBUG"


def run_program(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit status. Raises ``SystemExit`` for wrong arguments."""
    open_missing_streams()
    use_forgiving_streams()
    try:
        options = build_parser(runtime_version()).parse_args(arguments)
    except ArgumentsError as wrong:
        is_json = "--json" in (sys.argv[1:] if arguments is None else arguments)
        sys.exit(run_writing(functools.partial(_refuse, wrong, is_json=is_json)))
    except SystemExit as left:
        # The help and the version are output too.
        status = left.code if isinstance(left.code, int) else EXIT_PROBLEM
        sys.exit(run_writing(lambda: status))
    if getattr(options, "bound", False):
        die_with_parent()
        die_with_input()
    if getattr(options, "machine", None) is not None:
        os.environ[MACHINE_VARIABLE] = os.path.abspath(options.machine)  # noqa: PTH100
    else:
        use_stated_machine(os.environ)
    with contextlib.ExitStack() as log:
        return _run_guarded(options, _open_log(log))


def _run_guarded(options: argparse.Namespace, error_log: ErrorLog) -> int:
    """Run a command; whatever goes wrong becomes a sentence and an exit status."""
    status = 0

    def work() -> None:
        nonlocal status
        status = run_writing(lambda: _run(options, error_log))

    def fail(report: ErrorReport) -> None:
        nonlocal status
        status = run_writing(lambda: _fail(report, options))

    run_guarded(work, fail, error_log)
    return status


def _run(options: argparse.Namespace, error_log: ErrorLog) -> int:
    """Run a command on a service of its own; demo and replay need none."""
    from runtime.cli import calibrating, chat, hub, machine, models, replay

    if options.command == "demo":
        return machine.demo(options)
    if options.command == "replay":
        return replay.replay(options)
    commands: dict[str, Callable[[Client, argparse.Namespace], int]] = {
        "inspect": models.inspect,
        "plan": models.plan,
        "prepare": models.prepare,
        "calibrate": calibrating.calibrate,
        "search": hub.search,
        "download": hub.download,
        "chat": chat.chat,
        "doctor": machine.doctor,
    }
    making = WorkshopOptions(
        engine=options.engine,
        script=options.script,
        tokens_per_s=options.rate,
        is_in_terminal=True,
        routing_folder=getattr(options, "record_routing", None),
    )
    make = functools.partial(make_service, making, error_log)
    try:
        with Client(make, _tell_adapted) as client:
            return commands[options.command](client, options)
    except CommandFailedError as failed:
        return _fail(failed.report, options)


def _tell_adapted(event: BudgetsAdapted) -> None:
    """Say that memory was given back to other programs, or taken again."""
    tell(reason_sentence(event.plan.reasons[0]))


def _fail(report: ErrorReport, options: argparse.Namespace) -> int:
    if getattr(options, "progress_json", False):
        failed = CommandFailed(request_id=1, error=report)
        print(msgspec.json.encode(failed).decode(), flush=True)
    elif options.json:
        print_json(error_json(report))
    tell_failure(report)
    return exit_status(report)


def _refuse(wrong: ArgumentsError, *, is_json: bool) -> int:
    """Tell what is wrong with the arguments, to a program in the form that it reads."""
    if is_json:
        report = ErrorReport(code=ErrorCode.SETTING_INVALID, severity=Severity.REQUEST)
        print_json({"error": {**msgspec.to_builtins(report), "sentence": wrong.sentence}})
    tell(f"{wrong.usage}{wrong.sentence}")
    return EXIT_PROBLEM


def _open_log(log: contextlib.ExitStack) -> ErrorLog:
    """Log to the error stream when debugging, else to a file, else not at all."""
    if os.environ.get(DEBUG_VARIABLE) == "1":
        faulthandler.enable()
        log.enter_context(logging_to(sys.stderr))
        return ErrorLog()
    path = find_folders().logs / "larderctl.log"
    try:
        stream = log.enter_context(os.fdopen(open_log(path), "a", encoding="utf-8"))
    except OSError:
        return ErrorLog()
    log.enter_context(logging_to(stream))
    return ErrorLog(str(path))
