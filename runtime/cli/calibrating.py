"""The command that reads a text with a model: calibrate."""

import argparse
import signal
from pathlib import Path

import msgspec

from runtime.cli.client import Client, CommandFailedError
from runtime.cli.failure import print_json
from runtime.cli.models import EXIT_CANCELLED, absolute, ask_plans, ask_report
from runtime.cli.output import tell
from runtime.cli.screen import ProgressLine, duration_text, print_rows, safe_text
from runtime.engine.base import CancelToken
from runtime.errors import CancelledError, LarderError, report_of
from runtime.prepare.calibration import (
    Calibration,
    CalibrationStep,
    calibration_path,
    read_calibration,
)
from runtime.prepare.calibration_text import SUPPLIED, read_text
from runtime.protocol.errors import ErrorCode
from runtime.protocol.messages import ModelPlanned, PreparePhase, PrepareProgressed
from runtime.protocol.plan import PlacementPlan, PlanKind
from runtime.service import engine_loader
from runtime.service.folders import find_folders

USUAL_TOKENS = 8192
_CONTEXT_TOKENS = 512


def calibrate(client: Client, options: argparse.Namespace) -> int:
    """Read a text, tell what was learnt; ending it early keeps what was read."""
    found = _calibrated(client, options)
    if found is None:
        return EXIT_CANCELLED
    _tell(*found, options)
    return 0


def calibrate_first(client: Client, options: argparse.Namespace) -> int | None:
    """Calibrate a model that is to be prepared, unless it was; return a status if that ended.

    A text that was named is read in any case; where that was done before, it takes no time.
    """
    report = ask_report(client, options)
    kept = read_calibration(calibration_path(find_folders().data, report), report.fingerprint)
    if options.text is None and kept is not None and kept.is_complete:
        return None
    wanted = argparse.Namespace(
        folder=options.folder,
        text=options.text,
        tokens=USUAL_TOKENS,
        ram=None,
        context=0,
        progress_json=options.progress_json,
    )
    return EXIT_CANCELLED if _calibrated(client, wanted) is None else None


def _calibrated(client: Client, options: argparse.Namespace) -> tuple[Path, Calibration] | None:
    """Read a text; return where it is kept and what was found, None if it was stopped."""
    cancel = CancelToken()
    options.context = options.context or _CONTEXT_TOKENS
    # What is looked at passes through the processor's kernels.
    options.vram = 0
    planned = ask_plans(client, absolute(options.folder), options)
    path = calibration_path(find_folders().data, planned.report)
    step, line = CalibrationStep(PreparePhase.READING_TEXT, 0, 0, 0.0), ProgressLine()
    is_json = getattr(options, "progress_json", False)

    def show(latest: CalibrationStep) -> None:
        nonlocal step
        step = latest
        if is_json:
            _tell_step(step)
        else:
            line.write(_step_text(step))

    before = {
        wish: signal.signal(wish, lambda *_: cancel.cancel())
        for wish in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        plan = _plan_of(planned)
        place = options.text or SUPPLIED
        text = read_text(place)
        found = engine_loader.calibrate(plan, text, options.tokens, path, show, cancel, place)
    except CancelledError:
        line.clear()
        tell(f"larderctl: stopped; {_kept_text(step)}")
        return None
    except LarderError as error:
        raise CommandFailedError(report_of(error)) from error
    finally:
        for wish, handler in before.items():
            signal.signal(wish, handler)
        line.clear()
    return path, found


def _tell_step(step: CalibrationStep) -> None:
    """Tell another process how far the calibration is, in one line."""
    event = PrepareProgressed(
        request_id=1,
        done_bytes=step.done,
        total_bytes=step.total,
        bytes_per_s=step.per_s,
        phase=step.phase,
    )
    print(msgspec.json.encode(event).decode(), flush=True)


def _step_text(step: CalibrationStep) -> str:
    """Return for example ``reading the text: 512 of 8192 tokens, 2 min 10 s left for reading``."""
    is_read = step.phase is PreparePhase.READING_TEXT
    text = "reading the text" if is_read else "trying which parts answers depend on"
    unit = "tokens" if is_read else "parts"
    left_s = step.seconds_left or 0.0
    left = f", {duration_text(left_s)} left{' for reading' * is_read}" if left_s >= 1 else ""
    return f"{text}: {step.done} of {step.total} {unit}{left}"


def _kept_text(step: CalibrationStep) -> str:
    """Return what of work that was cut off is not done again."""
    if not step.total:
        return "what was done before is kept"
    if step.phase is PreparePhase.READING_TEXT:
        return f"{step.done} tokens are kept and not read again"
    return f"the text that was read and {step.done} of {step.total} trials are kept"


def _plan_of(planned: ModelPlanned) -> PlacementPlan:
    """Return the plan that runs the published weights."""
    if planned.report.problems:
        raise CommandFailedError(planned.report.problems[0])
    if not planned.report.num_experts:
        raise LarderError(ErrorCode.NOTHING_TO_PREPARE, folder=planned.report.folder)
    plan = next(each for each in planned.plans if each.kind is PlanKind.EXACT)
    if plan.problem is not None:
        raise CommandFailedError(plan.problem)
    return plan


def _tell(path: Path, found: Calibration, options: argparse.Namespace) -> None:
    uses = found.uses.astype(float)
    ordered = -(-uses).reshape(-1)
    ordered.sort()
    num_most = max(1, len(ordered) // 10)
    most_used = float(ordered[-num_most:].sum() / max(ordered.sum(), 1.0))
    never_used = float((uses == 0).mean())
    if options.json:
        print_json(
            {
                "file": str(path),
                "tokens": found.num_tokens,
                "uses_of_most_used_tenth": most_used,
                "never_used": never_used,
            }
        )
        return
    print_rows(
        [
            ("kept in", safe_text(str(path))),
            ("tokens read", str(found.num_tokens)),
            ("the most used tenth of the experts", f"{100 * most_used:.0f} % of all uses"),
            ("experts that were never used", f"{100 * never_used:.1f} %"),
        ]
    )
