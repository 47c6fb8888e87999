"""The rendezvous as torch's `RendezvousHandler`, which torchrun's agents drive; uses torch's public interfaces only.

Every world gets a new TCPStore, hosted by the agent of its first rank; its address is in the state. On a node that must
leave, and on a spare at the end of the job, the agent ends with exit code 0 and the rendezvous stays as it is.
"""

from __future__ import annotations

import logging
import os
import random
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import NoReturn

from torch.distributed import DistError
from torch.distributed.elastic.events import NodeState, construct_and_record_rdzv_event
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.elastic.rendezvous import (
    RendezvousClosedError,
    RendezvousConnectionError,
    RendezvousError,
    RendezvousHandler,
    RendezvousInfo,
    RendezvousParameters,
    RendezvousStateError,
    RendezvousStoreInfo,
    RendezvousTimeoutError,
)

from trainmaster.worker.checkpoints.notices import NodeWorld, Notices, Reason
from trainmaster.worker.checkpoints.stop_grace import CheckpointNotices, StopGrace
from trainmaster.worker.container.container import ROUND
from trainmaster.worker.container.restart_budget import RestartBudget
from trainmaster.worker.rendezvous.dynamodb import ENGINE_CLIENT_CONFIG, DynamoStateStore, TableAddress, dynamodb_client
from trainmaster.worker.rendezvous.engine import Engine
from trainmaster.worker.rendezvous.errors import (
    Closed,
    Corrupt,
    Drained,
    RoundLost,
    TimedOut,
    Unreachable,
    Unverified,
)
from trainmaster.worker.rendezvous.executor import Clocks, Executor
from trainmaster.worker.rendezvous.run import Run
from trainmaster.worker.rendezvous.state import DONE
from trainmaster.worker.rendezvous.world import World
from trainmaster.worker.torch.backend import NAME
from trainmaster.worker.torch.torchrun import make_identity, make_settings
from trainmaster.worker.torch.world_store import WorldStore
from trainmaster.worker.warm.server import start_server

_log = logging.getLogger(__name__)
_handlers: weakref.WeakSet[DynamoDBRendezvousHandler] = weakref.WeakSet()
"""Handlers of this process that `make_handler` has made."""


class DynamoDBRendezvousHandler(RendezvousHandler):
    """One agent's side of a rendezvous.

    Args:
        engine: this node.
        run: name of the rendezvous.
        address: address at which other nodes reach this one.
        notices: directory for checkpoint requests to the workers, and for the world; None without one.
        budget: limits on restarts after failures.
        join_timeout: seconds after which the agent gives up if the agents of no world reach each other.
        environ: the agent's environment, inherited by its workers: `TRAINMASTER_ROUND` is written there. As for torch's
            own handler, it may contain `TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1`.
        clock: the machine's monotonic clock.
        wall: seconds since 1970, for the budget's period.
    """

    def __init__(  # noqa: PLR0913  # tests pass each of them
        self,
        engine: Engine,
        run: str,
        address: str,
        *,
        notices: CheckpointNotices | None = None,
        budget: RestartBudget | None = None,
        join_timeout: float = 600.0,
        environ: MutableMapping[str, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._engine = engine
        self._run = run
        self._address = address
        self._notices = notices
        self._stop_grace = StopGrace(notices, clock)
        self._budget = budget or RestartBudget()
        self._join_timeout = join_timeout
        self._environ: MutableMapping[str, str] = {} if environ is None else environ
        self._clock = clock
        self._wall = wall
        self._left = True
        self._world_stores: tuple[WorldStore, ...] = ()
        self._thread: int | None = None
        self._outer_error: BaseException | None = None
        # A handler that is dropped without `shutdown` must not keep its node alive.
        weakref.finalize(self, engine.abandon).atexit = False

    # ------------------------------------------------------------ torch's interface

    def get_backend(self) -> str:
        """Return the name of the backend."""
        return NAME

    def get_run_id(self) -> str:
        """Return the name of the run."""
        return self._run

    @property
    def use_agent_store(self) -> bool:
        """True if workers use the agent's store, rather than one that the first worker opens."""
        return self._environ.get("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "0") != "1"

    def next_rendezvous(self) -> RendezvousInfo:
        """Join the next world; see the base class.

        Torch's own `RendezvousGracefulExitError` would end torchrun with exit code 1.

        Raises:
            SystemExit: with code 0, if this node must leave or the job is done.
            RendezvousError: torch's errors, if no world can be joined.
        """
        # An error that is being handled already is not of this run; see `shutdown`.
        self._thread, self._outer_error = threading.get_ident(), sys.exc_info()[1]
        self._record("next_rendezvous", f"{self._address} attempts to join the next round of {self._run}")
        try:
            with self._recorded("next_rendezvous"):
                info = self._next_rendezvous()
        except BaseException:
            self.leave()
            raise
        message = f"{self._address} has joined a round of {self._run} in a world of size {info.world_size}"
        self._record("next_rendezvous", message, rank=info.rank)
        return info

    def _next_rendezvous(self) -> RendezvousInfo:
        if self._stop_grace.container_stop_expired() is not None:
            self._exit_agent("the container is being stopped")
        self._stop_grace.reset()
        self._announce(None)
        self._left = False
        last_error: Exception | None = None
        for world in self._worlds():
            try:
                return self._info(world)
            except (RoundLost, Closed, TimedOut, Unreachable, DistError) as error:
                # The node that hosted the store may be gone; joining again lets the other nodes detect that.
                _log.warning("trainmaster: could not use the world of round %d: %s", world.round, error)
                last_error = error
        raise RendezvousConnectionError(
            "the nodes of no world could reach the store of its first rank; "
            "the job needs a security group that allows all inbound traffic from itself"
        ) from last_error

    def num_nodes_waiting(self) -> int:
        """Return more than 0 if the workers must be stopped, so that this node joins another world or leaves.

        Before a resize, they first have the grace to save a checkpoint.
        """
        stopped = self._stop_grace.container_stop_expired()
        if stopped is not None:
            return int(stopped)
        if self._world_stores and self._world_stores[-1].store.is_broken:
            return 1  # its workers have provisional ranks
        try:
            status = self._engine.status()
        except (Corrupt, Unreachable) as error:
            _log.warning("could not read the status of this node: %s", error)
            return 0
        if status.closed is not None:
            return int(status.closed != DONE)
        if not (status.rejoin or status.drain):
            self._stop_grace.reset()
            return 0
        if status.resize or status.drain:
            reason = Reason.DRAIN if status.drain else Reason.RESIZE
            return max(status.waiting, 1) if self._stop_grace.expired(reason, status.grace) else 0
        return max(status.waiting, 1)

    def is_closed(self) -> bool:
        """Return whether the rendezvous is closed, as read now; see the base class."""
        with self._recorded("is_closed"), _torch_errors():
            return self._engine.is_closed()

    def set_closed(self) -> None:
        """Close the rendezvous within the close timeout; see the base class."""
        with self._recorded("set_closed"), _torch_errors():
            self._engine.close("closed by the program")
        self._record("set_closed", f"{self._address} has closed {self._run}", NodeState.SUCCEEDED)

    def shutdown(self) -> bool:
        """Leave, and close the rendezvous if the job is over because its script has ended or failed.

        Torch calls this for every end of an agent and passes no cause. The script has ended if the agent has reached
        torch's exit barrier; otherwise the cause is the current exception, if it was raised since this node joined.
        Another problem of this node, such as a full disk, does not end the others.
        """
        error, outer = sys.exc_info()[1], self._outer_error
        self._outer_error = None
        try:
            self._close_if_job_has_ended(None if error is outer else error)
        except (Unreachable, TimedOut, Corrupt) as close_error:
            message = f"could not close the rendezvous after the job's end: {close_error}"
            _log.warning("%s", message)
            self._record("shutdown", message, NodeState.FAILED)
            return False
        finally:
            self.leave()
            self._engine.stop_keep_alive()
        return True

    # ------------------------------------------------------------ beyond torch's interface

    def leave(self) -> None:
        """Leave the rendezvous without closing it, unless this node has left already."""
        if not self._left:
            self._left = True
            try:
                self._engine.leave()
            except (TimedOut, Corrupt) as error:
                _log.warning("could not leave the rendezvous; the other nodes will evict this one: %s", error)

    def leave_if_forgotten(self, run: str, address: str) -> None:
        """Leave if this thread has begun to launch another agent at this address, so that its last launch is over.

        Torch does not shut a handler down if its launch was interrupted.
        """
        if (self._run, self._address, self._thread) == (run, address, threading.get_ident()):
            self.leave()

    def _announce(self, world: NodeWorld | None) -> None:
        if self._notices is not None:
            self._notices.announce_world(world)

    def _close_if_job_has_ended(self, error: BaseException | None) -> None:
        if self._left:
            return
        world_store = self._world_stores[-1] if self._world_stores else None
        if world_store is not None and world_store.store.has_finished:
            if world_store.wait_until_all_done():
                self._close(DONE)
        elif isinstance(error, ChildFailedError):
            self._close(f"the script failed on {self._address}: {_first_line(error)}")
        elif error is None:
            self._close(f"the agent on {self._address} was shut down before its script had ended")

    def _worlds(self) -> Iterator[World]:
        """Yield one world after another until the join timeout."""
        began = self._clock()
        while self._clock() - began <= self._join_timeout:
            self._engine.stop_keep_alive()
            world = self._join()
            self._engine.start_keep_alive()
            yield world

    def _join(self) -> World:
        try:
            with _torch_errors():
                world = self._engine.join()
        except Drained:
            self._exit_agent("the scheduler has requested it")
        except Closed as closed:
            if closed.reason == DONE:
                self._exit_agent("the job is done")
            self._stop_grace.fail_job(closed.reason)
            raise RendezvousClosedError(str(closed)) from closed
        reason = self._budget.exhausted_reason(self._engine.state, self._wall())
        if reason is not None:
            self._stop_grace.fail_job(reason)
            self._close(reason)
            raise RendezvousClosedError(reason)
        return world

    def _exit_agent(self, reason: str) -> NoReturn:
        _log.warning("trainmaster: this node leaves the rendezvous %s: %s", self._run, reason)
        self.leave()
        raise SystemExit(0)

    def _close(self, reason: str) -> None:
        self._left = True
        self._engine.close(reason)
        self._record("shutdown", f"{self._address} has closed {self._run}: {reason}", NodeState.SUCCEEDED)

    @contextmanager
    def _recorded(self, method: str) -> Iterator[None]:
        """Record an error as torch's rendezvous event."""
        try:
            yield
        except RendezvousError as error:
            self._record(method, f"{type(error).__name__}: {error}", NodeState.FAILED)
            raise

    def _record(
        self, method: str, message: str, state: NodeState = NodeState.RUNNING, *, rank: int | None = None
    ) -> None:
        construct_and_record_rdzv_event(
            name=f"{type(self).__name__}.{method}",
            run_id=self._run,
            message=message,
            node_state=state,
            hostname=self._address,
            pid=os.getpid(),
            rank=rank,
        )

    def _info(self, world: World) -> RendezvousInfo:
        world_store = WorldStore(self._engine, world, self._address)
        # Workers may still use the store of the previous world; those of the one before it are dead.
        self._world_stores = (*self._world_stores[-1:], world_store)
        world_store.wait_for_all()
        self._environ[ROUND] = str(world.round)
        self._announce(NodeWorld(world.round, world.rank, world.size))
        shared = RendezvousStoreInfo(world_store.host, world_store.port)
        build = RendezvousStoreInfo.build
        info = shared if self.use_agent_store else build(world.rank, world_store.store, self._address)
        return RendezvousInfo(world_store.store, world.rank, world.size, info)


def make_handler(parameters: RendezvousParameters, environ: MutableMapping[str, str]) -> DynamoDBRendezvousHandler:
    """Return the handler for torchrun's options.

    Raises:
        ValueError: the endpoint is not valid.
        InvalidRequest: another option or variable is missing or not valid.
        PermissionError: the directory of notices is not private.
    """
    rng = random.SystemRandom()
    where, run = TableAddress.parse(parameters.endpoint), parameters.run_id
    settings = make_settings(parameters.min_nodes, parameters.max_nodes, parameters.config, environ)
    identity = make_identity(parameters.local_addr, run, parameters.config, environ, rng)
    store = DynamoStateStore(
        dynamodb_client(where.region, config=ENGINE_CLIENT_CONFIG), where.table, Run.from_environment(environ, run)
    )
    clocks = Clocks(monotonic=time.monotonic, wall=time.time, rng=rng)
    try:
        start_server(environ)
    except OSError as error:
        _log.warning("workers start without preloaded modules: %s", error)
    for earlier in tuple(_handlers):
        earlier.leave_if_forgotten(run, identity.addr)
    handler = DynamoDBRendezvousHandler(
        Engine(Executor(store, identity, settings, clocks), time.sleep),
        run,
        identity.addr,
        notices=Notices.from_environment(environ),
        budget=RestartBudget.from_environment(environ),
        join_timeout=settings.join_timeout,
        environ=environ,
    )
    _handlers.add(handler)
    return handler


@contextmanager
def _torch_errors() -> Iterator[None]:
    """Raise torch's errors instead of the engine's."""
    try:
        yield
    except TimedOut as error:
        raise RendezvousTimeoutError(str(error)) from error
    except (Corrupt, Unverified) as error:
        raise RendezvousStateError(str(error)) from error
    except Unreachable as error:
        raise RendezvousConnectionError(str(error)) from error


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
