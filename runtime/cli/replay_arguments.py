"""The arguments of ``larderctl replay``, apart from what it does, which takes longer to import."""

import argparse
from pathlib import Path


def add_replay(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to ``larderctl``."""
    text = "try policies of the expert cache on recorded routing"
    parser = commands.add_parser("replay", help=text, description=f"{text.capitalize()}.")
    parser.add_argument("traces", nargs="+", type=Path, metavar="TRACE", help="folder of a trace")
    parser.add_argument(
        "--policy", action="append", metavar="NAME", help="by name; may be repeated"
    )
    parser.add_argument(
        "--slots",
        action="append",
        metavar="N",
        help="slots per layer, a share such as 25%%, or a size such as 4GiB; may be repeated",
    )
    parser.add_argument(
        "--entry",
        choices=("optional", "required"),
        default="optional",
        help="whether a missed expert takes a slot always, or as the policy says",
    )
    parser.add_argument(
        "--record-bytes",
        default="1",
        metavar="N",
        help="of one expert; of the experts of each layer, with commas; or a JSON file of sizes",
    )
    parser.add_argument(
        "--machine",
        type=Path,
        metavar="PROFILE",
        help="also tell how long tokens would take on the PC that a profile pretends",
    )
    parser.add_argument(
        "--layer-bytes",
        type=int,
        default=0,
        metavar="N",
        help="with --machine: of the dense part of one layer",
    )
    parser.add_argument(
        "--hints",
        action="store_true",
        help="with --machine: read ahead what is guessed of the next layer",
    )
    parser.add_argument("--tokens", type=int, metavar="N", help="take only the first ones")
    parser.add_argument("--layer-stride", type=int, default=1, metavar="N", help="skip layers")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
