"""What assistive programs are told of the running window, by the desktop's own way (AT-SPI).

``python -m tests.support.accessible_tree`` starts the program under Xvfb with a bus of its own, and
walks it as a screen reader does: every page is gone to by the action of its button, and everything
that takes the focus has to have a name and a role. The status is 1 where something has none, and
77 where the system has no Xvfb, D-Bus, AT-SPI or its Python binding (Debian: at-spi2-core,
gir1.2-atspi-2.0, python3-gi).
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SYSTEM_PYTHON = "/usr/bin/python3"
"""The binding is made for the system's own Python."""
NOT_THERE = 77
PAGES = ("Chat", "Models", "Monitor", "Settings")
MIN_CONTROLS = 8
"""A page of which fewer are seen was not walked."""
WALK = """
import json, sys, time
import gi
gi.require_version("Atspi", "2.0")
from gi.repository import Atspi

STATE = Atspi.StateType

def window():
    desktop = Atspi.get_desktop(0)
    for index in range(desktop.get_child_count()):
        program = desktop.get_child_at_index(index)
        if program and "larder" in (program.get_name() or "").lower() and program.get_child_count():
            return program
    return None

def nodes(node, path=()):
    if node is None:
        return
    states = node.get_state_set()
    if path and not states.contains(STATE.SHOWING):
        return
    yield node, path, states
    for index in range(node.get_child_count()):
        child = node.get_child_at_index(index)
        yield from nodes(child, (*path, node.get_role_name()))

def until(find):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            if found := find():
                return found
        except gi.repository.GLib.Error:
            pass
        time.sleep(0.1)
    raise SystemExit("not found in 60 s")

def button(name):
    for node, _, states in nodes(window()):
        if node.get_name() == name and states.contains(STATE.CHECKABLE):
            return node
    return None

def pictured(node):
    return node.get_role_name() in ("image", "icon", "drawing area")

found = {}
until(window)
for page in sys.argv[1:]:
    until(lambda: button(page)).get_action_iface().do_action(0)
    until(lambda: button(page).get_state_set().contains(STATE.CHECKED))
    time.sleep(1.0)
    found[page] = [
        {
            "name": node.get_name(),
            "role": node.get_role_name(),
            "path": path[-4:],
            "takes_focus": states.contains(STATE.FOCUSABLE),
        }
        for node, path, states in nodes(window())
        if states.contains(STATE.FOCUSABLE) or pictured(node)
    ]
print(json.dumps(found))
"""


def main() -> int:
    """Start the program and walk it; print what has no name or role."""
    missing = [name for name in ("Xvfb", "dbus-run-session") if not shutil.which(name)]
    binding = [SYSTEM_PYTHON, "-c", "import gi; gi.require_version('Atspi', '2.0')"]
    if not missing and subprocess.run(binding, stderr=subprocess.DEVNULL, check=False).returncode:
        missing = ["the Python binding of AT-SPI"]
    if missing:
        sys.stdout.write(f"not here: {', '.join(missing)}\n")
        return NOT_THERE
    inside = [sys.executable, "-m", "tests.support.accessible_tree", "inside"]
    sys.path.insert(0, str(ROOT / "benchmarks"))
    a_screen = importlib.import_module("screen").a_screen
    with tempfile.TemporaryDirectory() as home, a_screen(Path(home)) as environment:
        return subprocess.run(
            ["dbus-run-session", "--", *inside], cwd=ROOT, env=environment, check=False
        ).returncode


def inside() -> int:
    """The same, with a screen and a bus of one's own."""
    with tempfile.TemporaryDirectory() as home:
        model = Path(home, "Qwen3-30B-A3B")
        model.mkdir()
        program = [sys.executable, "-m", "app", "--no-demo", "--folder", str(model)]
        environment = {
            **os.environ,
            "LARDER_HOME": home,
            "QT_QPA_PLATFORM": "xcb",
            "QT_LINUX_ACCESSIBILITY_ALWAYS_ON": "1",
        }
        with subprocess.Popen([*program, "--engine", "scripted"], cwd=ROOT, env=environment) as it:
            try:
                walked = subprocess.run(
                    [SYSTEM_PYTHON, "-c", WALK, *PAGES], stdout=subprocess.PIPE, check=True
                )
            finally:
                it.terminate()
    found = json.loads(walked.stdout)
    complaints = [text for page, nodes in found.items() for text in wrong(page, nodes)]
    numbers = ", ".join(f"{page} {len(nodes)}" for page, nodes in found.items())
    summary = f"seen: {numbers}; {len(complaints)} complaints"
    sys.stdout.write("\n".join((*complaints, summary, "")))
    return 1 if complaints else 0


def wrong(page: str, nodes: list[dict[str, object]]) -> list[str]:
    """Return what a page lacks: names, roles, or enough to have been walked at all."""
    found = [
        f"{page}: {node['role']} in {node['path']} has the name {node['name']!r}"
        for node in nodes
        if not str(node["name"]).strip() or node["role"] in ("unknown", "invalid", "")
    ]
    num_controls = sum(bool(node["takes_focus"]) for node in nodes)
    if num_controls < MIN_CONTROLS:
        found.append(f"{page}: only {num_controls} controls were seen")
    return found


if __name__ == "__main__":
    sys.exit(inside() if sys.argv[1:] == ["inside"] else main())
