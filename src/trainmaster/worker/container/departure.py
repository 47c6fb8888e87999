"""Takes a container's dead node out of its rendezvous, on behalf of an agent that was killed before it could leave.

The others see it at once then, instead of when its beats have stood still for long enough. It must not close anything,
nor touch another container's node.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from trainmaster.worker.container.container import Container
from trainmaster.worker.rendezvous.engine import Engine
from trainmaster.worker.rendezvous.executor import Clocks, Executor
from trainmaster.worker.rendezvous.settings import from_environment
from trainmaster.worker.rendezvous.state import StateStore, decode
from trainmaster.worker.rendezvous.world import Identity, host_of, training_job_of

PATIENCE = 5.0
"""Seconds that the table may take: the container has little time left."""


def take_out(
    store: StateStore, container: Container, environ: Mapping[str, str], sleep: Callable[[float], object]
) -> tuple[str, ...]:
    """Take out every node of this training job and host; their names.

    Raises `Unreachable`, `TimedOut`, `Corrupt`, and `InvalidRequest` for an environment that says nothing of the job.
    """
    found = store.get_state()
    state = decode(found[0]) if found else None
    if state is None or state.closed:
        return ()
    settings = replace(from_environment(environ), close_timeout=PATIENCE)
    clocks = Clocks(monotonic=time.monotonic, wall=time.time, rng=random.SystemRandom())
    mine = tuple(name for name in state.nodes if _is_of(name, container))
    for name in mine:
        Engine(Executor(store, _identity(name, container), settings, clocks), sleep).leave()
    return mine


def _is_of(name: str, container: Container) -> bool:
    return training_job_of(name) == container.training_job_name and host_of(name) == container.host


def _identity(name: str, container: Container) -> Identity:
    return Identity(
        training_job_name=container.training_job_name,
        host=container.host,
        incarnation=name.rpartition("#")[2],
        addr=container.address,
    )
