"""Threads of the kernels' pool leave the core of their caller alone."""

import json
import os
import subprocess
import sys

import pytest

from tests.support.runtime_process import ROOT

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2,
    reason="cores are told apart on Linux alone, where there are two",
)
_RUN = """
import json, os, sys, time
import torch
from runtime.kernels.dispatch import choose_kernels
from runtime.kernels.matrix import Matrix

kernels = choose_kernels()
if not kernels.name.startswith("native"):
    sys.exit(3)
kernels.module.set_num_threads(2)
torch.set_num_threads(1)
# An earlier thread of a library is none of the pool's.
others = set(os.listdir("/proc/self/task"))
weights = Matrix.from_tensor(torch.ones(2048, 512).to(torch.bfloat16))
seen = []
all_cores = sorted(os.sched_getaffinity(0))
for here in [*all_cores[:2], all_cores[0]]:
    # The system may move this thread in between: then it is tried again.
    for _ in range(100):
        os.sched_setaffinity(0, {here})
        time.sleep(0.002)
        os.sched_setaffinity(0, all_cores)
        kernels.linear(torch.ones(1, 512), weights)
        pool = set(os.listdir("/proc/self/task")) - others
        found = [sorted(os.sched_getaffinity(int(each))) for each in pool]
        if found == [[core for core in all_cores if core != here]]:
            break
    seen.append(found)
os.sched_setaffinity(0, all_cores[:1])
kernels.linear(torch.ones(1, 512), weights)
os.sched_setaffinity(0, all_cores[1:2])
kernels.linear(torch.ones(1, 512), weights)
alone = [sorted(os.sched_getaffinity(int(each))) for each in pool]
print(json.dumps({"all": all_cores, "seen": seen, "alone": alone}))
"""


def test_pool_leaves_the_callers_core_alone_and_keeps_to_the_callers_cores() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _RUN], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if ended.returncode == 3:
        pytest.skip("there is no native extension")
    assert not ended.returncode, ended.stderr
    told = json.loads(ended.stdout)
    cores = told["all"]
    assert told["seen"][0] == [cores[1:]]
    assert told["seen"][1] == [[cores[0], *cores[2:]]]
    assert told["seen"][2] == [cores[1:]]
    # Whoever may use one core alone shares it.
    assert told["alone"] == [cores[1:2]]
