"""Which build of torch is meant on this machine, where it comes from, and whether it arrived.

The same version of torch is published for the processor alone and with CUDA. LARDER_TORCH says
which one is meant: `cpu`, `cuda`, or `any` (take what pip serves). Unset, it is `cuda` on a Linux
or Windows machine with an NVIDIA driver and `cpu` everywhere else.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from console import ROOT, CommandError, output_of, run, say

BUILDS = ("cpu", "cuda", "any")
SOURCES = ROOT / "installers" / "sources.toml"
_LOOK = """
import importlib.metadata as metadata, importlib.util as util, json, pathlib, runpy
spec = util.find_spec("torch")
facts = {"version": None}
if spec is not None:
    facts = runpy.run_path(str(pathlib.Path(spec.origin).with_name("version.py")))
    facts = {name: facts.get(name) for name in ("__version__", "cuda", "hip")}
    facts["version"] = str(facts.pop("__version__"))
names = {(dist.metadata["Name"] or "").lower() for dist in metadata.distributions()}
facts["gpu_packages"] = sorted(name for name in names if name.startswith("nvidia-"))
facts["gpu_packages"] = [name for name in facts["gpu_packages"] if name != "nvidia-ml-py"]
print(json.dumps(facts))
"""


def meant() -> str:
    """The build that set-up shall install: "cpu", "cuda" or "any"."""
    named = os.environ.get("LARDER_TORCH", "").strip().lower()
    if not named:
        return "cuda" if has_nvidia_driver() else "cpu"
    if named not in BUILDS:
        raise CommandError(f"LARDER_TORCH is {named!r}, and only cpu, cuda or any mean something.")
    return named


def has_nvidia_driver() -> bool:
    """Whether an NVIDIA driver is installed; asks no driver anything."""
    if platform.system() == "Windows":
        return shutil.which("nvidia-smi") is not None
    return Path("/proc/driver/nvidia/version").exists() or Path("/dev/nvidiactl").exists()


def install(pip: Sequence[str | Path], constraints: Path) -> None:
    """Put the meant build into an environment, without its dependencies.

    ``pip`` is the command that installs there; its first word is the interpreter. pip is asked
    first what it would take as it is configured; only when that is another build is the source in
    installers/sources.toml used.
    """
    build = meant()
    command: list[str | Path] = [*pip, "--no-deps", "-c", constraints, "torch"]
    source = source_for(build, pip[0], constraints)
    failure = f"torch for {build} could not be installed"
    if not source:
        run(command, failure)
        return
    say(f"pip serves another torch here than the one for {build}, which is meant: using {source}")
    hint = "" if build == "cpu" else "; LARDER_TORCH=cpu goes on without the graphics card"
    run([*command, "-i", source], failure + hint)


def source_for(build: str, python: str | Path, constraints: Path) -> str:
    """The address that a build of torch comes from; empty where pip serves it as configured."""
    if build in ("any", _served(python, constraints)):
        return ""
    known = tomllib.loads(SOURCES.read_text(encoding="utf-8"))["torch"]
    return str(known[build]["source"])


def _served(python: str | Path, constraints: Path) -> str:
    """Which build pip would install as it is configured, by name and requirements of the file."""
    status, text = output_of(
        [
            *(python, "-m", "pip", "install", "-qq", "--no-deps", "--dry-run"),
            *("--ignore-installed", "--report", "-", "-c", constraints, "torch"),
        ]
    )
    start = text.find("{")
    if status != 0 or start < 0:
        raise CommandError(f"pip finds no torch to install: {text.strip()[-300:]}")
    entry = json.JSONDecoder().raw_decode(text[start:])[0]["install"][0]["metadata"]
    return build_of_file(entry["version"], entry.get("requires_dist", []))


def build_of_file(version: str, requirements: list[str]) -> str:
    """The build of a torch file, before it is installed."""
    local = version.partition("+")[2]
    if local:
        return "cpu" if local.startswith("cpu") else "cuda"
    needs_cuda = any(
        re.match(r"(nvidia-|cuda-|triton\b)", need) and applies_here(need) for need in requirements
    )
    return "cuda" if needs_cuda else "cpu"


def applies_here(requirement: str) -> bool:
    """Whether a requirement's marker, where it names a system, names this one."""
    marker = requirement.partition(";")[2]
    system = re.search(r"platform_system\s*==\s*[\"'](\w+)[\"']", marker)
    return "extra ==" not in marker and (system is None or system[1] == platform.system())


def check(python: Path) -> str:
    """Assert that an environment holds the meant build; returns a phrase that describes it."""
    status, text = output_of([python, "-c", _LOOK])
    if status != 0:
        raise CommandError(f"torch in {python.parent.parent} cannot be looked at: {text.strip()}")
    return judge(meant(), json.loads(text.strip().splitlines()[-1]))


def judge(build: str, facts: Mapping[str, object]) -> str:
    """Compare what is installed with what is meant.

    Raises:
        CommandError: it is another build, or it brought GPU packages that were not meant.
    """
    version = facts.get("version")
    if version is None:
        raise CommandError("torch is not installed although set-up put it there.")
    has_gpu = bool(facts.get("cuda") or facts.get("hip"))
    phrase = f"torch {version}, {'CUDA ' + str(facts['cuda']) if has_gpu else 'CPU'} build"
    if build == "cpu" and (has_gpu or facts["gpu_packages"]):
        raise CommandError(
            f"The CPU build of torch was meant, and {phrase} with {facts['gpu_packages']} is "
            "installed; run make clean and make setup again, or set LARDER_TORCH=any to accept it."
        )
    if build == "cuda" and not has_gpu:
        raise CommandError(
            f"The CUDA build of torch was meant, and {phrase} is installed; "
            "set LARDER_TORCH=cpu to go on without the graphics card."
        )
    return phrase
