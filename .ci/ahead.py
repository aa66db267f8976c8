"""What the tests need, made while the full environment is installed and the source is checked.

Installing keeps one core busy and compiling another; in turn each of them left one idle. What
goes wrong here goes wrong again where the tests make it themselves, and is an error there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import environments
import jobs
import linux_packages
import setup
import system_packages
from console import CommandError, say


@contextmanager
def made_meanwhile() -> Iterator[Callable[[], None]]:
    """Begin at once; the function yielded says that the full environment is there."""
    has_full = threading.Event()
    is_over = threading.Event()

    def make() -> None:
        make_environments()
        has_full.wait()
        if not is_over.is_set():
            make_rest()

    thread = threading.Thread(target=make)
    thread.start()
    try:
        yield has_full.set
    finally:
        if not has_full.is_set():
            is_over.set()
            has_full.set()
        thread.join()


def make_environments() -> None:
    """Make the environments of the jobs but the full one; last what waits for the extension."""
    wanted = dict.fromkeys(job.environment for job in jobs.JOBS)
    for environment in sorted(wanted, key=lambda each: each.has_native):
        if environment is not environments.FULL:
            _try(environment.folder, partial(environments.prepare, environment))


def make_rest() -> None:
    """Make the demo model and bring the programs that tests start."""
    _try("the demo model", partial(setup.demo_model, environments.FULL.executable))
    _try("a program", system_packages.ensure_test_programs)
    _try("what packages are made with", linux_packages.ensure)


def _try(what: str, make: Callable[[], object]) -> None:
    try:
        make()
    except CommandError as error:
        say(f"{what} is not ready yet: {error}")
