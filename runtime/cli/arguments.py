"""The arguments of ``larderctl``."""

import argparse
import math
from pathlib import Path
from typing import NoReturn

from runtime.cli.replay_arguments import add_replay
from runtime.service.engine_loader import EngineKind

_FOLDER_HELP = "the model's folder"
_BITS = (16, 8, 6, 4, 3, 2)


class ArgumentsError(Exception):
    """Arguments that a command cannot take; ``usage`` is how it is called."""

    def __init__(self, usage: str, sentence: str) -> None:
        super().__init__(sentence)
        self.usage = usage
        self.sentence = sentence


class _Parser(argparse.ArgumentParser):
    """Leaves to the program how wrong arguments are told; one of its options decides that."""

    def error(self, message: str) -> NoReturn:
        raise ArgumentsError(self.format_usage(), f"{self.prog}: error: {message}")


def build_parser(version: str) -> argparse.ArgumentParser:
    """Return the parser of all commands; ``command`` names the one that was chosen.

    It raises ``ArgumentsError`` for wrong arguments, and ``SystemExit`` after help and version.
    """
    parser: argparse.ArgumentParser = _Parser(
        prog="larderctl", description="Runs Mixture-of-Experts language models in a terminal."
    )
    parser.add_argument("--version", action="version", version=f"larderctl {version}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    inspect = _add(commands, "inspect", "tell what a model folder holds")
    inspect.add_argument("folder", type=_folder, metavar="FOLDER", help=_FOLDER_HELP)

    plan = _add(commands, "plan", "tell where a model would lie and how fast it would be")
    plan.add_argument("folder", type=_folder, metavar="FOLDER", help=_FOLDER_HELP)
    _add_budgets(plan)

    prepare = _add(commands, "prepare", "write the smaller copy that some plans need")
    prepare.add_argument("folder", type=_folder, metavar="FOLDER", help=_FOLDER_HELP)
    prepare.add_argument("--out", type=_folder, metavar="DIR", help="where the copy goes")
    prepare.add_argument(
        "--bits", type=int, choices=_BITS, help="bits of a weight; 16: as published"
    )
    prepare.add_argument(
        "--mix",
        type=_gib,
        metavar="GiB",
        help="all weights in so much: more bits where a text showed that they count",
    )
    prepare.add_argument(
        "--text", type=Path, metavar="FILE", help="with --mix: a text of yours to read first, UTF-8"
    )
    prepare.add_argument("--progress-json", action="store_true", help="one event a line, as JSON")
    prepare.add_argument("--bound", action="store_true", help=argparse.SUPPRESS)

    calibrate = _add(commands, "calibrate", "read a text to learn which experts a model uses most")
    calibrate.add_argument("folder", type=_folder, metavar="FOLDER", help=_FOLDER_HELP)
    calibrate.add_argument("--text", type=Path, metavar="FILE", help="a text of yours, in UTF-8")
    calibrate.add_argument(
        "--tokens", type=_count, default=8192, metavar="N", help="read so many tokens of it"
    )
    _add_budgets(calibrate, has_card=False)

    _add_chat(commands)
    doctor = _add(commands, "doctor", "tell what this PC has, and how each figure was found")
    doctor.add_argument("folders", nargs="*", metavar="FOLDER", help="folders to tell the drive of")
    doctor.add_argument("--machine", type=Path, metavar="PROFILE", help="pretend to be this PC")
    _add_hub(commands)
    add_replay(commands)
    _add(commands, "demo", "print the folder of the demo model")
    return parser


def _add(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, text: str
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    hidden = argparse.SUPPRESS
    parser.add_argument("--engine", type=_engine, default=EngineKind.TIERED, help=hidden)
    parser.add_argument("--script", type=Path, help=hidden)
    parser.add_argument("--rate", type=_number, help=hidden)
    return parser


def _add_budgets(parser: argparse.ArgumentParser, *, has_card: bool = True) -> None:
    parser.add_argument("--ram", type=_gib, metavar="GiB", help="RAM budget; otherwise what fits")
    if has_card:
        parser.add_argument(
            "--vram", type=_gib, metavar="GiB", help="VRAM budget of the first GPU; 0 uses none"
        )
    parser.add_argument(
        "--context", type=_count, default=0, metavar="N", help="context in tokens; 0: what fits"
    )
    parser.add_argument("--machine", type=Path, metavar="PROFILE", help="pretend to be this PC")


def _add_hub(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    search = _add(commands, "search", "look for models on a hub, those that suit this PC first")
    search.add_argument("query", metavar="TEXT", nargs="?", default="", help="a part of the name")
    download = _add(commands, "download", "download a model, going on where it stopped")
    download.add_argument("model", metavar="OWNER/NAME", help="the model's name on the hub")
    download.add_argument(
        "--plan", action="store_true", help="tell what it is and how fast; download nothing"
    )
    download.add_argument(
        "--variant",
        default="",
        metavar="NAME",
        help="which of its models in GGUF, for example Q4_K_M; --plan lists them",
    )
    _add_budgets(download)
    for parser in (search, download):
        parser.add_argument(
            "--hub", default="", metavar="ADDRESS", help="of the hub; otherwise HF_ENDPOINT"
        )
        parser.add_argument("--to", type=_folder, metavar="DIR", help="where downloads lie")


def _add_chat(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    chat = _add(commands, "chat", "talk with a model, or ask it one thing with --prompt")
    chat.add_argument("folder", type=_folder, metavar="FOLDER", help=_FOLDER_HELP)
    chat.add_argument("--prompt", metavar="TEXT", help="ask this, print the answer, and leave")
    chat.add_argument("--system", metavar="TEXT", help="what the model is told first")
    chat.add_argument("--bits", type=int, choices=_BITS, help="bits of a weight; 16: as published")
    chat.add_argument("--mix", action="store_true", help="the copy of mixed bits")
    _add_budgets(chat)
    sampling = chat.add_argument_group("how the answer is chosen")
    sampling.add_argument(
        "--max-tokens", type=_count, default=0, metavar="N", help="0: until the context is full"
    )
    sampling.add_argument(
        "--temperature", type=_number, metavar="T", help="0 is always the likeliest"
    )
    sampling.add_argument("--top-k", type=_count, metavar="N")
    sampling.add_argument("--top-p", type=_number, metavar="P")
    sampling.add_argument("--min-p", type=_number, metavar="P")
    sampling.add_argument("--repetition-penalty", type=_number, metavar="R")
    sampling.add_argument(
        "--stop", action="append", default=[], metavar="TEXT", help="end there; may be repeated"
    )
    sampling.add_argument("--seed", type=_integer, metavar="N")
    chat.add_argument(
        "--record-routing",
        type=Path,
        metavar="DIR",
        help="write which experts are chosen, without text, for larderctl replay",
    )


def _gib(text: str) -> float:
    """Return a budget; what argparse itself says of a ``ValueError`` is the name of a function."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and 0 <= value < 1 << 20):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of GiB")
    return value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None


def _count(text: str) -> int:
    value = _integer(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is below 0")
    return value


def _engine(text: str) -> EngineKind:
    try:
        return EngineKind(text)
    except ValueError:
        kinds = ", ".join(EngineKind)
        raise argparse.ArgumentTypeError(f"{text!r} is none of {kinds}") from None


def _folder(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("a folder is needed")
    return text
