"""A limit that a control group puts on memory: the plan respects it, and nothing is killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runtime.hardware.memory import HostMemory, read_memory
from runtime.hardware.system_files import SystemFiles
from runtime.plan.memory import BASE_BYTES, room_of
from runtime.plan.planner import plan_model
from runtime.protocol.machine import MachineReport, Measured
from runtime.protocol.plan import ReasonCode
from runtime.protocol.values import Budgets
from tests.support.memory_group import memory_group
from tests.support.memory_limits import limit_for
from tests.support.plan_cases import GIB, facts_of, machine

ROOT = Path(__file__).resolve().parents[2]
QUESTION = "Write a long story about a cook and a cellar."
NUM_TOKENS = 24
CONTEXT_TOKENS = 2048
"""Chosen, because the planner shortens by itself what it may choose."""
TIMEOUT_S = 120.0
RAM_PARTS = pytest.mark.parametrize(
    "ram_part", [0.0, 0.5], ids=["room for the least", "room for half of the experts"]
)
"""How much of what lies between the least and all of a model's memory a limit leaves."""


def larderctl(*arguments: str) -> list[str]:
    """Return the command line of the real program."""
    return [sys.executable, "-m", "runtime.cli", *arguments]


def chat_command(folder: Path, *arguments: str) -> list[str]:
    """Return the command line of one answer that repeats."""
    greedy = ("--temperature", "0", "--max-tokens", str(NUM_TOKENS))
    context = ("--context", str(CONTEXT_TOKENS))
    return larderctl(
        "chat", str(folder), "--json", "--prompt", QUESTION, *greedy, *context, *arguments
    )


def machine_under(limit_bytes: int, folder: Path) -> MachineReport:
    """Return a PC whose control group has a limit, as read from files below a folder."""
    group = folder / "sys/fs/cgroup/some.slice"
    (folder / "proc/self").mkdir(parents=True)
    group.mkdir(parents=True)
    mount = "30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
    (folder / "proc/self/mountinfo").write_text(mount, encoding="ascii")
    (folder / "proc/self/cgroup").write_text("0::/some.slice\n", encoding="ascii")
    (group / "memory.max").write_text(f"{limit_bytes}\n", encoding="ascii")
    (group / "memory.current").write_text("0\n", encoding="ascii")
    host = HostMemory(total_bytes=32 * GIB, available_bytes=24 * GIB)
    facts = read_memory(host, SystemFiles(folder))
    assert facts.limit == Measured(value=limit_bytes, method="control group memory.max")
    return machine(
        total_gib=facts.total.value / GIB,
        available_gib=facts.available.value / GIB,
        limit_gib=facts.limit.value / GIB,
    )


def answer_of(output: str) -> dict[str, Any]:
    """Return an answer's JSON document."""
    answer = json.loads(output)
    assert isinstance(answer, dict)
    return answer


@RAM_PARTS
def test_planner_under_a_limit_leaves_the_group_room(
    demo_folder: Path, tmp_path: Path, ram_part: float
) -> None:
    facts = facts_of(demo_folder)
    limit_bytes = limit_for(plan_model(facts, machine(), Budgets(), CONTEXT_TOKENS)[0], ram_part)
    under_limit = machine_under(limit_bytes, tmp_path / "system")

    plan = plan_model(facts, under_limit, Budgets(), CONTEXT_TOKENS)[0]

    assert plan.problem is None
    assert plan.base_bytes + plan.ram_bytes <= limit_bytes * 0.96
    assert ReasonCode.RAM_LIMITED_BY_CONTROL_GROUP in {reason.code for reason in plan.reasons}
    assert plan.ram_bytes < plan.all_ram_bytes
    greedy = Budgets(ram_bytes=16 * GIB)
    asked = plan_model(facts, under_limit, greedy, CONTEXT_TOKENS)[0]
    assert asked.base_bytes + asked.ram_bytes <= limit_bytes
    assert room_of(under_limit).limit_bytes == pytest.approx(limit_bytes, abs=1)


@RAM_PARTS
def test_chat_under_a_memory_limit_says_the_same_and_nothing_is_killed(
    demo_folder: Path, ram_part: float, record_property: Callable[[str, object], None]
) -> None:
    free = subprocess.run(
        chat_command(demo_folder), cwd=ROOT, capture_output=True, text=True, check=True
    )
    limit_bytes = limit_for(
        plan_model(facts_of(demo_folder), machine(), Budgets(), CONTEXT_TOKENS)[0], ram_part
    )

    with memory_group(limit_bytes) as group:
        record_property("memory_group", "none" if group is None else group.name)
        if group is None:
            # Groups may not be made here; the budget that the planner would draw from one may.
            ram_bytes = limit_bytes * 19 // 20 - BASE_BYTES
            command = chat_command(demo_folder, "--ram", str(ram_bytes / GIB))
            ended = subprocess.run(
                command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=TIMEOUT_S
            )
        else:
            told = group.run(larderctl("doctor", "--json"), ROOT, TIMEOUT_S)
            assert told.returncode == 0, told.stderr
            limit = json.loads(told.stdout)["machine"]["ram_limit"]
            assert limit["value"] == limit_bytes
            assert limit["method"].startswith("control group memory.")
            ended = group.run(chat_command(demo_folder), ROOT, TIMEOUT_S)
            assert group.num_killed == 0
            assert 0 < group.peak_bytes < limit_bytes

    assert ended.returncode == os.EX_OK, ended.stderr
    answer, unlimited = answer_of(ended.stdout), answer_of(free.stdout)
    assert answer["token_ids"] == unlimited["token_ids"]
    assert len(answer["token_ids"]) == NUM_TOKENS
    assert BASE_BYTES + answer["budget_bytes"] <= limit_bytes * 0.96
    assert answer["tiers"]["drive"]["hits"] > unlimited["tiers"]["drive"]["hits"]
