"""A rendezvous for any program, with or without torch: be in a world, work, see whether it is over, be in the next.

    rendezvous = Rendezvous.from_environment()
    world = rendezvous.next()
    while steps_remain():
        if rendezvous.changed():
            save_checkpoint()
            world = rendezvous.next()
        step(world)
    rendezvous.close()

JAX's processes find each other by it:

    host, port = world.coordinator
    jax.distributed.initialize(coordinator_address=f"{host}:{port}", num_processes=world.size, process_id=world.rank)

A process of JAX is best started anew for each world, by one that has the rendezvous: `examples/elastic_jax.py`.

It must not import boto3 before it is told to connect, nor torch ever.
"""

from __future__ import annotations

import os
import random
import socket
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from trainmaster.worker.checkpoints.notices import Notices
from trainmaster.worker.container.container import Container, required
from trainmaster.worker.container.restart_budget import Budget
from trainmaster.worker.rendezvous.engine import Engine
from trainmaster.worker.rendezvous.errors import Closed, RoundLost
from trainmaster.worker.rendezvous.executor import Clocks, Executor
from trainmaster.worker.rendezvous.settings import from_environment
from trainmaster.worker.rendezvous.state import DONE, StateStore
from trainmaster.worker.rendezvous.world import Asked, Identity, World, incarnation


def free_port(addr: str) -> int:
    """A port of this address that nobody has at the moment."""
    with socket.socket(socket.AF_INET6 if ":" in addr else socket.AF_INET) as probe:
        probe.bind((addr, 0))
        port: int = probe.getsockname()[1]
        return port


class Rendezvous:
    """One node.

    Args:
        engine: see `engine.Engine`.
        addr: this node's own address; the coordinator's, where it has the first rank.
        port_of: finds a free port of an address for the coordinator.
        budget: how often the job may be restarted for failures.
        say: leaves word for the queue of why the job ends here.
        wall: seconds since 1970, for the budget's period.

    As a context it leaves at the end; it closes the rendezvous for all only where `close` is called.
    """

    def __init__(  # noqa: PLR0913  # each is something that a test hands in
        self,
        engine: Engine,
        addr: str,
        port_of: Callable[[str], int] = free_port,
        *,
        budget: Budget | None = None,
        say: Callable[[str], object] | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._engine = engine
        self._addr = addr
        self._port_of = port_of
        self._budget = budget or Budget()
        self._say = say or (lambda _: None)
        self._wall = wall
        self._ended = False

    @classmethod
    def from_environment(
        cls, environ: Mapping[str, str] | None = None, *, store: StateStore | None = None, slots: int = 1
    ) -> Rendezvous:
        """The node that this container is, in the rendezvous of its job, on DynamoDB.

        Args:
            environ: TRAINMASTER_RUN, TRAINMASTER_TABLE and the bounds, as the queue sets them; None for the process's.
            store: another store than the table.
            slots: worker processes that this node runs, for others to see.

        Raises `InvalidRequest` with what is missing or wrong.
        """
        given = os.environ if environ is None else environ
        container, rng = Container.of(given), random.SystemRandom()
        me = Identity(
            training_job_name=container.training_job_name,
            host=container.host,
            incarnation=incarnation(rng),
            addr=container.address,
            slots=slots,
        )
        clocks = Clocks(monotonic=time.monotonic, wall=time.time, rng=rng)
        executor = Executor(store or _table(given), me, from_environment(given), clocks)
        notices = Notices.of(given)
        say = None if notices is None else notices.end
        return cls(Engine(executor, time.sleep), container.address, budget=Budget.of(given), say=say)

    @property
    def engine(self) -> Engine:
        """The node, step by step."""
        return self._engine

    def next(self, timeout: float | None = None) -> World:
        """The next world with this node, its coordinator known; the present one is over for it.

        A spare waits here until it is needed. Raises `Drained`, and `Closed` with the reason, which is `state.DONE` at
        the normal end: exit with code 0 then, and with 1 for any other, such as a budget of restarts that is spent; and
        `TimedOut`, `Unreachable`, `Corrupt`.
        """
        self._engine.start_keep_alive()
        while True:
            world = self._joined(timeout)
            try:
                return self._with_coordinator(world)
            except RoundLost:
                continue

    def asked(self) -> Asked:
        """All that is asked of this node; cheap, at most one read a second."""
        return self._engine.asked()

    def changed(self) -> bool:
        """Whether this world is over: save a checkpoint, then call `next`. Cheap, at most one read a second.

        Also where a node has ended it for all because the job cannot go on: `next` then says why.
        """
        asked = self._engine.asked()
        return asked.rejoin or asked.drain or asked.closed not in (None, DONE)

    def fenced(self) -> bool:
        """Whether a newer world works: then this one's checkpoints must not be written any more.

        Raises `Unreachable` where that cannot be known.
        """
        return self._engine.fenced()

    def leave(self) -> None:
        """Take no part any more; the others go on without this node."""
        self._ended = True
        self._engine.leave()

    def close(self, reason: str = DONE) -> None:
        """End it for all and for good: the job is done, or cannot go on. Raises `Unreachable`."""
        self._ended = True
        self._engine.close(reason)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._ended:
            self.leave()

    def _joined(self, timeout: float | None) -> World:
        try:
            world = self._engine.join(timeout)
        except Closed as closed:
            if closed.reason != DONE:
                self._say(closed.reason)
            raise
        reason = self._budget.overdrawn(self._engine.state, self._wall())
        if reason is None:
            return world
        self._say(reason)
        self.close(reason)
        raise Closed(reason)

    def _with_coordinator(self, world: World) -> World:
        if world.rank == 0:
            port = self._port_of(self._addr)
            self._engine.publish(self._addr, port)
            return world.at(self._addr, port)
        return world.at(*self._engine.endpoint())


def _table(environ: Mapping[str, str]) -> StateStore:
    from trainmaster.worker.rendezvous.dynamodb import BRISK, DynamoStateStore, client_of

    run, table = required(environ, "TRAINMASTER_RUN"), required(environ, "TRAINMASTER_TABLE")
    return DynamoStateStore(client_of(environ=environ, patience=BRISK), table, run)
