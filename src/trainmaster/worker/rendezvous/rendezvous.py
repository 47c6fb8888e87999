"""A rendezvous for any program, with or without torch.

    rendezvous = Rendezvous.from_environment()
    world = rendezvous.next()
    while steps_remain():
        if rendezvous.changed():
            save_checkpoint()
            world = rendezvous.next()
        step(world)
    rendezvous.close()

JAX processes use it to find each other:

    host, port = world.coordinator
    jax.distributed.initialize(coordinator_address=f"{host}:{port}", num_processes=world.size, process_id=world.rank)

Start a new JAX process for each world from a process that owns the rendezvous: `examples/elastic_jax.py`.

This module never imports torch, and imports boto3 only to connect to the table.
"""

from __future__ import annotations

import os
import random
import socket
import time
import weakref
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING

from trainmaster.worker.checkpoints.notices import NodeWorld, Notices
from trainmaster.worker.container.container import Container, require
from trainmaster.worker.container.restart_budget import RestartBudget
from trainmaster.worker.rendezvous.engine import Engine
from trainmaster.worker.rendezvous.errors import Closed, RoundLost
from trainmaster.worker.rendezvous.executor import Clocks, Executor
from trainmaster.worker.rendezvous.run import TABLE_VARIABLE, Run
from trainmaster.worker.rendezvous.settings import Settings
from trainmaster.worker.rendezvous.state import DONE, GroupStore
from trainmaster.worker.rendezvous.world import Identity, World, WorldStatus, new_incarnation

if TYPE_CHECKING:
    from typing_extensions import Self


def free_port(addr: str) -> int:
    """Return a port of this address that is free at the moment."""
    with socket.socket(socket.AF_INET6 if ":" in addr else socket.AF_INET) as probe:
        probe.bind((addr, 0))
        port: int = probe.getsockname()[1]
        return port


class Rendezvous:
    """One node.

    As a context manager it leaves at the end. It closes the rendezvous for all nodes only if you call `close`.

    Args:
        engine: see `engine.Engine`.
        addr: this node's address, which is the coordinator's if the node has the first rank.
        find_port: finds a free port of an address for the coordinator.
        budget: limits on restarts after failures.
        report_failure: reports to the queue the reason for which the job ends here.
        announce_world: tells the container's first process each world, and None while this node is in none.
        wall: seconds since 1970, for the budget's period.
    """

    def __init__(  # noqa: PLR0913  # tests pass each of them
        self,
        engine: Engine,
        addr: str,
        find_port: Callable[[str], int] = free_port,
        *,
        budget: RestartBudget | None = None,
        report_failure: Callable[[str], object] | None = None,
        announce_world: Callable[[NodeWorld | None], object] | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._engine = engine
        self._addr = addr
        self._find_port = find_port
        self._budget = budget or RestartBudget()
        self._report_failure = report_failure or (lambda _: None)
        self._announce_world = announce_world or (lambda _: None)
        self._wall = wall
        self._has_left = False
        # A program that drops it without a word must not keep its node alive.
        weakref.finalize(self, engine.abandon).atexit = False

    @classmethod
    def from_environment(
        cls, environ: Mapping[str, str] | None = None, *, store: GroupStore | None = None, slots: int = 1
    ) -> Rendezvous:
        """Return this container's node in the rendezvous of its job, on DynamoDB.

        Args:
            environ: the run, its table and the bounds, as set by the queue; None for the process's.
            store: store to use instead of the table.
            slots: worker processes that this node runs, for information.

        Raises:
            InvalidRequest: a variable is missing or not valid.
        """
        variables = os.environ if environ is None else environ
        container, rng = Container.from_environment(variables), random.SystemRandom()
        identity = Identity(
            training_job_name=container.training_job_name,
            host=container.host,
            incarnation=new_incarnation(rng),
            addr=container.address,
            slots=slots,
        )
        clocks = Clocks(monotonic=time.monotonic, wall=time.time, rng=rng)
        executor = Executor(
            store or _store_from_environment(variables), identity, Settings.from_environment(variables), clocks
        )
        notices = Notices.from_environment(variables)
        return cls(
            Engine(executor, time.sleep),
            container.address,
            budget=RestartBudget.from_environment(variables),
            report_failure=None if notices is None else notices.fail_job,
            announce_world=None if notices is None else notices.announce_world,
        )

    @property
    def engine(self) -> Engine:
        """The engine of this node."""
        return self._engine

    def next(self, timeout: float | None = None) -> World:
        """Join and return the next world, with its coordinator; the current one is over for this node.

        A spare waits in this call until it is needed. After `Drained`, and after `Closed` with the reason `state.DONE`,
        exit with code 0; after `Closed` with any other reason, such as a spent restart budget, exit with code 1.

        Raises:
            Drained: this node must leave, and has left.
            Closed: the rendezvous is closed.
            TimedOut: no world formed in time; likewise `Unreachable`, `Corrupt`.
        """
        self._engine.start_keep_alive()
        self._announce_world(None)
        while True:
            world = self._join(timeout)
            try:
                found = self._with_coordinator(world)
            except RoundLost:
                continue
            self._announce_world(NodeWorld(found.round, found.rank, found.size))
            return found

    def status(self) -> WorldStatus:
        """Return the status of this node, from about two reads a second at most."""
        return self._engine.status()

    def changed(self) -> bool:
        """Return whether this world is over: if so, save a checkpoint, then call `next`.

        About two reads a second at most.
        Also true if a node has closed the rendezvous because the job cannot continue; `next` then raises the reason.
        """
        status = self._engine.status()
        return status.rejoin or status.drain or status.closed not in (None, DONE)

    def fenced(self) -> bool:
        """Return whether a newer world has formed, so that this one must not write checkpoints.

        Raises:
            Unreachable: the table does not respond; do not write a checkpoint then.
        """
        return self._engine.fenced()

    def leave(self) -> None:
        """Leave the rendezvous; the other nodes continue."""
        self._has_left = True
        self._engine.leave()

    def close(self, reason: str = DONE) -> None:
        """Close the rendezvous for all nodes: the job is done, or cannot continue.

        Raises:
            Unreachable: the table does not respond.
        """
        self._has_left = True
        self._engine.close(reason)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._has_left:
            self.leave()

    def _join(self, timeout: float | None) -> World:
        try:
            world = self._engine.join(timeout)
        except Closed as closed:
            if closed.reason != DONE:
                self._report_failure(closed.reason)
            raise
        reason = self._budget.exhausted_reason(self._engine.state, self._wall())
        if reason is None:
            return world
        self._report_failure(reason)
        self.close(reason)
        raise Closed(reason)

    def _with_coordinator(self, world: World) -> World:
        if world.rank == 0:
            port = self._find_port(self._addr)
            self._engine.publish(self._addr, port)
            return world.with_coordinator(self._addr, port)
        return world.with_coordinator(*self._engine.endpoint())


def _store_from_environment(environ: Mapping[str, str]) -> GroupStore:
    from trainmaster.worker.rendezvous.dynamodb import ENGINE_CLIENT_CONFIG, DynamoStateStore, dynamodb_client

    run, table = Run.from_environment(environ), require(environ, TABLE_VARIABLE)
    return DynamoStateStore(dynamodb_client(environ=environ, config=ENGINE_CLIENT_CONFIG), table, run)
