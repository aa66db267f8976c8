"""The commands that look at a model folder: inspect, plan, prepare."""

import argparse
import os
from collections.abc import Mapping

import msgspec

from runtime.cli.budgets import read_budgets
from runtime.cli.client import Client, CommandFailedError
from runtime.cli.failure import EXIT_PROBLEM, error_json, print_json, tell_failure
from runtime.cli.output import tell
from runtime.cli.screen import (
    ProgressLine,
    count_text,
    gib_bytes,
    print_rows,
    safe_text,
    size_text,
)
from runtime.cli.stated import print_stated
from runtime.errors import LarderError
from runtime.protocol.errors import ErrorCode, ErrorReport
from runtime.protocol.messages import (
    InspectModel,
    ModelInspected,
    ModelPlanned,
    ModelPrepared,
    PlanModel,
    PrepareCancelled,
    PrepareModel,
    PrepareProgressed,
    Reply,
)
from runtime.protocol.model import ModelReport
from runtime.protocol.plan import PlacementPlan
from runtime.protocol.sentences import reason_sentence, sentence
from runtime.protocol.values import HitsBasis, WeightFormat
from runtime.spec.tensors import PLAIN_FORMATS

EXIT_CANCELLED = 130
_AS_PUBLISHED = 16
_PREPARED_FORMATS = {
    8: WeightFormat.Q8_G32,
    6: WeightFormat.Q6_G32,
    4: WeightFormat.Q4A_G32,
    3: WeightFormat.Q3_G16,
    2: WeightFormat.Q2_G16,
}


def inspect(client: Client, options: argparse.Namespace) -> int:
    """Print what the headers of a folder say."""
    report = client.ask(
        InspectModel(request_id=client.new_id(), folder=absolute(options.folder)), ModelInspected
    ).report
    problem = report.problems[0] if report.problems else None
    if options.json:
        fields = msgspec.to_builtins(report)
        print_json({**(error_json(problem) if problem else {}), **fields})
    elif report.is_runnable:
        _print_report(report)
    for each in report.problems:
        tell_failure(each)
    return EXIT_PROBLEM if problem else 0


def plan(client: Client, options: argparse.Namespace) -> int:
    """Print the plans for a folder under budgets."""
    return tell_plans(ask_plans(client, absolute(options.folder), options), options)


def ask_report(client: Client, options: argparse.Namespace) -> ModelReport:
    """Return what a model's headers say; raise ``CommandFailedError`` if it cannot run."""
    report = client.ask(
        InspectModel(request_id=client.new_id(), folder=absolute(options.folder)), ModelInspected
    ).report
    if report.problems:
        raise CommandFailedError(report.problems[0])
    return report


def ask_plans(client: Client, folder: str, options: argparse.Namespace) -> ModelPlanned:
    """Return the plans for a folder under the budgets that were named."""
    return client.ask(
        PlanModel(
            request_id=client.new_id(),
            folder=folder,
            budgets=read_budgets(client, options),
            context_tokens=options.context,
        ),
        ModelPlanned,
    )


def tell_plans(
    planned: ModelPlanned, options: argparse.Namespace, more: Mapping[str, object] | None = None
) -> int:
    """Print plans, as JSON with ``more`` before them; return the exit status."""
    problem = planning_problem(planned)
    if options.json:
        fields = msgspec.to_builtins(planned)
        kept = {name: fields[name] for name in ("report", "plans", "recommended", "stated")}
        print_json({**(error_json(problem) if problem else {}), **(more or {}), **kept})
    else:
        # Why nothing can be loaded is told once, below.
        for each in planned.plans:
            if problem is None or each.problem != problem:
                _print_plan(each, is_recommended=each.kind is planned.recommended)
        print_stated(planned.stated)
    if problem is not None:
        tell_failure(problem)
    return EXIT_PROBLEM if problem else 0


def prepare(client: Client, options: argparse.Namespace) -> int:
    """Write the prepared copy; ending it early keeps what is written."""
    if options.text is not None and not options.mix:
        raise LarderError(
            ErrorCode.SETTING_INVALID,
            name="--text",
            found=str(options.text),
            expected="--mix GiB beside it",
        )
    command = PrepareModel(
        request_id=client.new_id(),
        folder=absolute(options.folder),
        expert_format=_prepared_format(client, options),
        output_folder=absolute(options.out) if options.out else "",
        mix_bytes=gib_bytes(options.mix) if options.mix else 0,
    )
    if command.mix_bytes:
        from runtime.cli.calibrating import calibrate_first

        stopped = calibrate_first(client, options)
        if stopped is not None:
            return stopped
    line = ProgressLine("preparing")

    def show(event: Reply) -> None:
        if options.progress_json:
            print(msgspec.json.encode(event).decode(), flush=True)
        elif isinstance(event, PrepareProgressed):
            line.show(event.done_bytes, event.total_bytes)

    closing = client.follow(command, show)
    line.clear()
    return _tell_prepared(closing, options)


def _prepared_format(client: Client, options: argparse.Namespace) -> WeightFormat:
    """Return the format that was asked for; else 8 bits, or as published where that is less."""
    if options.mix:
        return WeightFormat.Q4A_G32
    if options.bits in _PREPARED_FORMATS:
        return _PREPARED_FORMATS[options.bits]
    stored = ask_report(client, options).stored_format
    is_packed = stored not in PLAIN_FORMATS
    return (
        stored if stored and (is_packed or options.bits == _AS_PUBLISHED) else WeightFormat.Q8_G32
    )


def absolute(folder: str | os.PathLike[str]) -> str:
    """Return a folder as the service, which knows no current one, has to be told it."""
    if not folder:
        return ""
    return os.path.abspath(os.path.expanduser(folder))  # noqa: PTH100, PTH111 - keeps links


def planning_problem(planned: ModelPlanned) -> ErrorReport | None:
    """Return why nothing can be loaded, None if something can."""
    if planned.report.problems:
        return planned.report.problems[0]
    if planned.recommended is not None:
        return None
    return next((each.problem for each in planned.plans if each.problem is not None), None)


def tell_stopped(kept_bytes: int) -> int:
    """Say what of a stopped piece of work is kept; return the exit status."""
    tell(f"larderctl: stopped; {size_text(kept_bytes)} are kept and used next time")
    return EXIT_CANCELLED


def _tell_prepared(closing: Reply, options: argparse.Namespace) -> int:
    match closing:
        case ModelPrepared() if options.json:
            fields = msgspec.to_builtins(closing)
            print_json({name: fields[name] for name in ("folder", "expert_format", "size_bytes")})
        case ModelPrepared() if not options.progress_json:
            print(f"{safe_text(closing.folder)}  ({size_text(closing.size_bytes)})")
        case PrepareCancelled():
            return tell_stopped(closing.kept_bytes)
    return 0


def _print_report(report: ModelReport) -> None:
    stored = report.stored_format.value if report.stored_format else "unknown"
    if report.gguf_kinds:
        if report.mixed_experts is not None:
            formats = " and ".join(report.mixed_experts.format_bytes)
            stored = f"{formats}, {report.mixed_experts.bits:.2f} bits a weight"
        read_as = f", experts read as {stored}" if report.num_experts else ""
        stored = f"GGUF {', '.join(report.gguf_kinds)}{read_as}"
    elif report.published_bits:
        stored = f"{report.published_bits} bits a weight, read as {stored}"
    print_rows(
        [
            ("name", report.name),
            ("architecture", report.model_type),
            ("licence", report.licence or "not stated"),
            (
                "parameters",
                (
                    f"{count_text(report.num_parameters)}, of which "
                    f"{count_text(report.num_active_parameters)} are used for each token"
                ),
            ),
            (
                "experts",
                (
                    f"{report.num_experts} in each of {report.num_moe_layers} layers, "
                    f"{report.top_k} used for each token"
                ),
            ),
            ("stored as", f"{stored}, {report.num_shards} file(s), {size_text(report.file_bytes)}"),
            ("one expert", size_text(report.expert_bytes)),
            ("everything else", size_text(report.dense_bytes)),
            ("longest context", f"{report.max_context_tokens} tokens"),
            *_suitability_rows(report),
            *(
                ("prepared copy", f"{copy.expert_format.value}, {copy.folder}")
                for copy in report.prepared
            ),
            *(("note", sentence(note)) for note in report.notes),
        ]
    )


def _suitability_rows(report: ModelReport) -> list[tuple[str, str]]:
    """How well a model suits offloading, and whose routing that rests on."""
    known = report.suitability
    if known is None:
        return []
    source = (
        f"counted over {known.num_tokens} tokens here"
        if known.basis is HitsBasis.OWN
        else "recorded of its family"
    )
    hits = ", ".join(
        f"{ratio:.1%} of needs hit with {number} times its experts"
        for number, ratio in enumerate(known.hit_ratios, 1)
    )
    told = f"{known.segment_ratio:.1%} of experts can be told for 16 tokens in a row"
    facts = "; ".join(part for part in (told, hits, source) if part)
    return [("suits offloading", f"{known.rating.value} ({facts})")]


def _print_plan(plan_: PlacementPlan, *, is_recommended: bool) -> None:
    names = (plan_.choice, plan_.kind)
    title = ", ".join(dict.fromkeys(name.value.replace("_", " ") for name in names if name))
    print(f"{title}{'  (recommended)' if is_recommended else ''}")
    if plan_.problem is not None:
        print(f"  {safe_text(sentence(plan_.problem))}")
        return
    rows = [
        ("RAM", f"{size_text(plan_.ram_bytes)}, at least {size_text(plan_.min_ram_bytes)}"),
        ("context", f"{plan_.context_tokens} tokens"),
    ]
    rows += [
        (share.tier.value, f"{share.num_experts} experts, {size_text(share.bytes)}")
        for share in plan_.tiers
    ]
    forecast = plan_.forecast
    if forecast is not None:
        rows.append(
            (
                "prompts at",
                (
                    f"{forecast.prompt_tokens_per_s_low:.0f} to "
                    f"{forecast.prompt_tokens_per_s_high:.0f} tokens/s"
                ),
            )
        )
        rows.append(
            (
                "answers at",
                (
                    f"{forecast.decode_tokens_per_s_low:.1f} to "
                    f"{forecast.decode_tokens_per_s_high:.1f}, likely "
                    f"{forecast.decode_tokens_per_s:.1f} tokens/s ({forecast.basis})"
                ),
            )
        )
        if forecast.joules_per_token:
            rows.append(("energy", f"about {forecast.joules_per_token:.2f} J a token, estimated"))
    rows += [("recommended", reason_sentence(reason)) for reason in plan_.recommended_because]
    rows += [("because", reason_sentence(reason)) for reason in plan_.reasons]
    print_rows(rows, indent="  ")
