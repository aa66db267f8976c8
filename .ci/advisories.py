"""Published advisories about the packages that are pinned, taken from a database that lies here.

`python .ci/advisories.py FOLDER` reads a checkout of the Python Packaging Advisory Database, which
is what `pip-audit` asks about over the net, and writes what it says about our packages to
tests/golden/advisories.txt: packages asked about; package, versions, ids. The gate holds the pins
against that.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from console import ROOT, CommandError, output_of, say

CONSTRAINTS = ROOT / "constraints.txt"
LIST = ROOT / "tests" / "golden" / "advisories.txt"
_ASKED = "# Asked about: "


def pinned() -> dict[str, Version]:
    """The versions of constraints.txt by their packages' names."""
    lines = re.findall(r"(?m)^([\w.-]+)==(\S+)", CONSTRAINTS.read_text(encoding="utf-8"))
    return {canonicalize_name(name): Version(version) for name, version in lines}


def asked() -> set[str]:
    """The packages that the database was asked about when the list was written."""
    lines = LIST.read_text(encoding="utf-8").splitlines()
    line = next((line for line in lines if line.startswith(_ASKED)), _ASKED)
    return set(line.removeprefix(_ASKED).split())


def ranges_of(events: Iterable[dict[str, str]]) -> Iterator[str]:
    """The ranges of versions that a row of events speaks of, as requirements write them."""
    begins: str | None = None
    for event in events:
        ((kind, version),) = event.items()
        if kind == "introduced":
            begins = "" if version == "0" else f">={_public(version)},"
        elif kind in {"fixed", "last_affected"} and begins is not None:
            yield f"{begins}{'<' if kind == 'fixed' else '<='}{_public(version)}"
            begins = None
    if begins is not None:
        yield begins.rstrip(",") or ">=0"


def _public(version: str) -> str:
    """A version without the part that names a build, which ranges cannot have."""
    try:
        return Version(version).public
    except InvalidVersion:
        return Version(version.partition("-")[0]).public


def lines_of(advisory: dict[str, Any], names: Iterable[str]) -> Iterator[str]:
    """What an advisory says about some packages, a line for each range; nothing if it is void."""
    if advisory.get("withdrawn"):
        return
    ids = " ".join([advisory["id"], *sorted(advisory.get("aliases", ()))])
    for affected in advisory["affected"]:
        name = canonicalize_name(affected["package"]["name"])
        if name not in names:
            continue
        spans = [
            span
            for each in affected.get("ranges", ())
            if each["type"] == "ECOSYSTEM"
            for span in ranges_of(each["events"])
        ]
        for span in spans or [f"=={version}" for version in affected.get("versions", ())]:
            yield f"{name}\t{span}\t{ids}"


def main(arguments: list[str]) -> int:
    """Write the list from a checkout of the database."""
    if len(arguments) != 1 or not (vulns := Path(arguments[0]) / "vulns").is_dir():
        raise CommandError("Name the folder of a checkout of the advisory database.")
    status, state = output_of(
        ["git", "log", "-1", "--format=%cs, commit %H"], cwd=Path(arguments[0])
    )
    if status:
        raise CommandError(f"The date of the database is not known: {state.strip()}")
    names = pinned()
    found = {
        line
        for folder in sorted(vulns.iterdir())
        if canonicalize_name(folder.name) in names
        for file in sorted(folder.glob("*.yaml"))
        for line in lines_of(yaml.safe_load(file.read_text(encoding="utf-8")), names)
    }
    head = (
        f"# Python Packaging Advisory Database (CC BY 4.0), {state.strip()}\n"
        "# Of the packages in constraints.txt; written by .ci/advisories.py.\n"
        f"{_ASKED}{' '.join(sorted(names))}\n"
    )
    LIST.write_text(head + "".join(f"{line}\n" for line in sorted(found)), encoding="utf-8")
    say(f"{len(found)} ranges are in {LIST.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    os.chdir(ROOT)
    try:
        sys.exit(main(sys.argv[1:]))
    except (CommandError, OSError) as error:
        print(f"larder: {error}", file=sys.stderr, flush=True)
        sys.exit(1)
