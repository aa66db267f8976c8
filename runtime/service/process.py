"""The background process around the channel: arguments, log, priority, and a sure end."""

import argparse
import contextlib
import faulthandler
import functools
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from runtime.service.channel import Channel, ExitStatus
from runtime.service.engine_loader import EngineKind
from runtime.service.folders import find_folders, use_stated_machine
from runtime.service.handles import send_output_to
from runtime.service.log import ErrorLog, logging_to, open_log
from runtime.service.parentage import die_with_parent, step_back
from runtime.service.workshop import WorkshopOptions, make_service

LEAVE_TIMEOUT_S = 4.5
"""From the first reason to leave to the end of the process, whatever the engine does."""
SWITCH_INTERVAL_S = 0.001
"""How long one thread may keep the interpreter from another that waits for it."""

_logger = logging.getLogger(__name__)


def run_process(streams: tuple[int, int], arguments: Sequence[str]) -> int:
    """Serve the channel on private handles until it ends; does not return when it must not wait."""
    options = _parse(arguments)
    folders = find_folders()
    use_stated_machine(os.environ)
    log_path: Path = options.log or folders.logs / "runtime.log"
    place = _redirect(log_path)
    faulthandler.enable()
    # Both reach the window as well; it saves what it has and then closes the channel.
    for name in ("SIGINT", "SIGHUP"):
        if name in signal.Signals.__members__:
            signal.signal(signal.Signals[name], signal.SIG_IGN)
    die_with_parent()
    step_back()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    error_log = ErrorLog(place)
    channel = Channel(*streams, leaving=_arm_watchdog, leave=_leave, error_log=error_log)
    making = WorkshopOptions(
        engine=options.engine, script=options.script, tokens_per_s=options.rate
    )
    with logging_to(sys.stderr):
        _logger.info("runtime started: %s", " ".join(arguments))
        status = channel.serve(functools.partial(make_service, making, error_log))
        _leave(status)
    return status


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m runtime.service", description="The background process of Larder."
    )
    parser.add_argument(
        "--engine", type=EngineKind, choices=list(EngineKind), default=EngineKind.TIERED
    )
    parser.add_argument("--script", type=Path, help="what the scripted engine does, as JSON")
    parser.add_argument("--rate", type=float, help="tokens per second of the scripted engine")
    parser.add_argument("--log", type=Path, help="the log file")
    return parser.parse_args(arguments)


def _redirect(log_path: Path) -> str:
    """Send output to the log; return where it is, empty if it could not be opened."""
    try:
        send_output_to(open_log(log_path))
    except OSError as error:
        sys.stderr.write(f"the log {log_path} cannot be written: {error}\n")
        return ""
    return str(log_path)


def _arm_watchdog() -> None:
    """End the process in a few seconds even if a thread keeps the interpreter to itself."""
    faulthandler.dump_traceback_later(LEAVE_TIMEOUT_S, exit=True)


def _leave(status: ExitStatus) -> None:
    """End the process now; threads that wait in native code cannot hold it up."""
    _logger.info("runtime leaves: %s", status.name)
    logging.shutdown()
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(status)
