"""What every recipe says about the program; read from pyproject.toml and nowhere else."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class RecipeError(Exception):
    """A recipe cannot go on; its text is one sentence with the next step."""


@dataclass(frozen=True)
class Description:
    """The program as installers name it."""

    name: str
    """As files and packages are called."""
    title: str
    """As a person reads it."""
    version: str
    summary: str
    licence: str
    """An SPDX expression."""
    licence_file: Path
    icon: Path
    identifier: str
    """Reversed domain, for macOS and desktop files."""
    requirements: tuple[str, ...]
    """Ranges of everything that runs, torch left out."""
    engine: tuple[str, ...]
    """The range of torch."""

    def stem(self, system: str) -> str:
        """How the files that a person downloads for a system are called, up to their ending."""
        return f"{self.name}-{self.version}-{system}-x86_64"


def read(project_file: Path = ROOT / "pyproject.toml") -> Description:
    """Return the description.

    Raises:
        RecipeError: the file does not say what a recipe needs.
    """
    content = tomllib.loads(project_file.read_text(encoding="utf-8"))
    project = content["project"]
    try:
        own = content["tool"]["larder"]
        icon, identifier, title = own["icon"], own["identifier"], own["title"]
    except KeyError as error:
        raise RecipeError(
            f"{project_file.name} has no {error} in [tool.larder]; add title, icon and identifier."
        ) from error
    extras = project["optional-dependencies"]
    found = Description(
        name=project["name"],
        title=title,
        version=project["version"],
        summary=project["description"],
        licence=project["license"],
        licence_file=project_file.parent / project["license-files"][0],
        icon=project_file.parent / icon,
        identifier=identifier,
        requirements=(*project["dependencies"], *extras["window"]),
        engine=tuple(extras["engine"]),
    )
    for path in (found.icon, found.licence_file):
        if not path.is_file():
            raise RecipeError(f"{project_file.name} names {path.name}, and there is no such file.")
    return found
