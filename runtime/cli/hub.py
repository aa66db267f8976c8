"""The commands that ask a hub: search, download."""

import argparse

import msgspec

from runtime.cli.client import Client, CommandFailedError
from runtime.cli.failure import print_json
from runtime.cli.models import absolute, ask_plans, tell_plans, tell_stopped
from runtime.cli.output import tell
from runtime.cli.screen import ProgressLine, count_text, print_rows, safe_text, size_text
from runtime.protocol.base import Reply
from runtime.protocol.hub import HubCard, HubFit, HubModel, HubVariant
from runtime.protocol.hub_messages import (
    DescribeHubModel,
    DownloadModel,
    DownloadPaused,
    DownloadProgressed,
    HubModelDescribed,
    HubSearched,
    ModelDownloaded,
    SearchHub,
)
from runtime.service.folders import find_folders

_FITS = {
    HubFit.FITS: "runs here",
    HubFit.NO_ROOM: "more than the drive has room for",
    HubFit.DENSE: "runs, but has no experts",
    HubFit.UNKNOWN: "kind not told",
    HubFit.NOT_RUNNABLE: "cannot be run yet",
}


_VARIANT_FITS = {
    HubFit.NO_ROOM: _FITS[HubFit.NO_ROOM],
    HubFit.NOT_RUNNABLE: "its numbers cannot be read yet",
}


def search(client: Client, options: argparse.Namespace) -> int:
    """Print what a hub finds, best suited first."""
    found = client.ask(
        SearchHub(
            request_id=client.new_id(),
            query=options.query,
            endpoint=options.hub,
            folder=_root(options),
        ),
        HubSearched,
    ).models
    if options.json:
        print_json({"models": msgspec.to_builtins(found)})
        return 0
    print_rows([(model.model_id, _line(model)) for model in found])
    if not found:
        tell("larderctl: nothing was found")
    return 0


def download(client: Client, options: argparse.Namespace) -> int:
    """Download a model, or tell with ``--plan`` what would come; what came early is kept."""
    card = client.ask(
        DescribeHubModel(
            request_id=client.new_id(),
            model_id=options.model,
            endpoint=options.hub,
            folder=_root(options),
            variant=options.variant,
        ),
        HubModelDescribed,
    ).card
    if card.problem is not None:
        raise CommandFailedError(card.problem)
    if options.plan:
        return _plan(client, card, options)
    if not options.json:
        _print_card(card)
    return _fetch(client, card, options)


def _fetch(client: Client, card: HubCard, options: argparse.Namespace) -> int:
    command = DownloadModel(
        request_id=client.new_id(),
        model_id=card.model_id,
        revision=card.revision,
        endpoint=options.hub,
        folder=_root(options),
        variant=card.variant,
    )
    line = ProgressLine("downloading")

    def show(event: Reply) -> None:
        if isinstance(event, DownloadProgressed):
            rate = f", {size_text(event.bytes_per_s)}/s"
            line.show(event.done_bytes, event.total_bytes, rate)

    closing = client.follow(command, show)
    line.clear()
    if isinstance(closing, DownloadPaused):
        return tell_stopped(closing.kept_bytes)
    assert isinstance(closing, ModelDownloaded)
    if options.json:
        print_json({"folder": closing.folder, "size_bytes": closing.size_bytes})
    else:
        print(f"{safe_text(closing.folder)}  ({size_text(closing.size_bytes)})")
    return 0


def _plan(client: Client, card: HubCard, options: argparse.Namespace) -> int:
    """Print what a model is and how fast it would be, as its folder would be planned."""
    fields = msgspec.to_builtins(card)
    if not card.outline_folder:
        if options.json:
            print_json({"card": fields})
        else:
            _print_card(card)
            tell("larderctl: this drive cannot hold an outline, so there is no plan")
        return 0
    planned = ask_plans(client, card.outline_folder, options)
    if not options.json:
        _print_card(card)
    return tell_plans(planned, options, {"card": fields})


def _root(options: argparse.Namespace) -> str:
    """Return the place of downloads: what was asked for, else the window's own."""
    return absolute(options.to) if options.to else absolute(find_folders().data / "models")


def _line(model: HubModel) -> str:
    parts = [_FITS[model.fit]]
    if model.num_parameters:
        parts.append(f"{count_text(model.num_parameters)} parameters")
    if model.gguf_label:
        parts.append(f"GGUF, about {size_text(model.size_bytes)} as {model.gguf_label}")
    elif model.size_bytes:
        parts.append(size_text(model.size_bytes))
    parts.append(model.licence or "licence not stated")
    if model.is_gated:
        parts.append("its owner wants to be asked")
    return safe_text(", ".join(parts))


def _variant_line(variant: HubVariant) -> str:
    parts = [
        size_text(variant.size_bytes),
        f"{variant.num_files} files",
        _VARIANT_FITS.get(variant.fit, ""),
    ]
    return ", ".join(filter(None, [*parts, "is here" if variant.is_here else ""]))


def _print_card(card: HubCard) -> None:
    rows = [
        ("model", card.model_id),
        ("files", f"{card.variant} in GGUF" if card.variant else ""),
        ("licence", card.licence or "not stated"),
        ("changed", card.last_modified),
        ("download", f"{size_text(card.size_bytes)} in {card.num_files} files"),
        ("not needed", size_text(card.left_out_bytes)),
        ("here already", size_text(card.kept_bytes)),
        ("free", size_text(card.free_bytes)),
        ("goes to", card.folder),
        *((f"--variant {each.name}", _variant_line(each)) for each in card.variants),
    ]
    print_rows([(name, safe_text(value)) for name, value in rows if value])
