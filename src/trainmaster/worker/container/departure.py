"""Removes a container's dead node from its rendezvous, if the agent was killed before it could leave.

The other nodes then see it at once, instead of after the keep-alive timeout.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from trainmaster.worker.container.container import Container
from trainmaster.worker.rendezvous.engine import Engine
from trainmaster.worker.rendezvous.executor import Clocks, Executor
from trainmaster.worker.rendezvous.settings import Settings
from trainmaster.worker.rendezvous.state import GroupStore, decode
from trainmaster.worker.rendezvous.world import Identity, host_of, training_job_name_of

TIMEOUT_SECONDS = 5.0
"""Seconds that this may take: the container has little time left."""


def remove_nodes(
    store: GroupStore, container: Container, environ: Mapping[str, str], sleep: Callable[[float], object]
) -> tuple[str, ...]:
    """Remove every node of this training job and host, and return their names.

    Raises:
        Unreachable: the table does not respond; likewise `TimedOut`, `Corrupt`.
        InvalidRequest: the environment does not describe a job.
    """
    row = store.get_state()
    state = decode(row[0]) if row else None
    if state is None or state.closed:
        return ()
    settings = replace(Settings.from_environment(environ), close_timeout=TIMEOUT_SECONDS)
    clocks = Clocks(monotonic=time.monotonic, wall=time.time, rng=random.SystemRandom())
    names = tuple(name for name in state.nodes if _belongs_to(name, container))
    for name in names:
        Engine(Executor(store, _identity(name, container), settings, clocks), sleep).leave()
    return names


def _belongs_to(name: str, container: Container) -> bool:
    return training_job_name_of(name) == container.training_job_name and host_of(name) == container.host


def _identity(name: str, container: Container) -> Identity:
    """Return the identity of a node of this container."""
    return Identity(
        training_job_name=container.training_job_name,
        host=container.host,
        incarnation=name.rpartition("#")[2],
        addr=container.address,
    )
