"""The rendezvous as torch's `RendezvousHandler`, which torchrun's agents drive; uses torch's public interfaces only.

Every world gets a new TCPStore, hosted by the agent of its first rank; its address is in the state. On a node that must
leave, and on a spare at the end of the job, the agent ends with exit code 0 and the rendezvous stays as it is.
"""

from __future__ import annotations

import logging
import random
import sys
import time
from collections.abc import Callable, Iterator, MutableMapping
from typing import NoReturn

from torch.distributed import DistError
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.elastic.rendezvous import (
    RendezvousClosedError,
    RendezvousConnectionError,
    RendezvousHandler,
    RendezvousInfo,
    RendezvousParameters,
    RendezvousStateError,
    RendezvousStoreInfo,
    RendezvousTimeoutError,
)

from trainmaster.worker.checkpoints.notices import Notices, Reason
from trainmaster.worker.checkpoints.stop_grace import CheckpointNotices, StopGrace
from trainmaster.worker.container.container import ROUND
from trainmaster.worker.container.restart_budget import RestartBudget
from trainmaster.worker.rendezvous.dynamodb import ENGINE_CLIENT_CONFIG, DynamoStateStore, TableAddress, dynamodb_client
from trainmaster.worker.rendezvous.engine import Engine
from trainmaster.worker.rendezvous.errors import Closed, Corrupt, Drained, RoundLost, TimedOut, Unreachable
from trainmaster.worker.rendezvous.executor import Clocks, Executor
from trainmaster.worker.rendezvous.run import Run
from trainmaster.worker.rendezvous.state import DONE
from trainmaster.worker.rendezvous.world import World
from trainmaster.worker.torch.backend import NAME
from trainmaster.worker.torch.torchrun import make_identity, make_settings
from trainmaster.worker.torch.world_store import WorldStore

_log = logging.getLogger(__name__)


class DynamoDBRendezvousHandler(RendezvousHandler):
    """One agent's side of a rendezvous.

    Args:
        engine: this node.
        run: name of the rendezvous.
        address: address at which other nodes reach this one.
        notices: directory for checkpoint requests to the workers; None without one.
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
        self._stop_grace = StopGrace(notices, clock)
        self._budget = budget or RestartBudget()
        self._join_timeout = join_timeout
        self._environ: MutableMapping[str, str] = {} if environ is None else environ
        self._clock = clock
        self._wall = wall
        self._left = True
        self._world_stores: tuple[WorldStore, ...] = ()

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
        if self._stop_grace.container_stop_expired() is not None:
            self._exit_agent("the container is being stopped")
        self._stop_grace.reset()
        self._left = False
        last_error: Exception | None = None
        for world in self._worlds():
            try:
                return self._info(world)
            except (RoundLost, Closed, TimedOut, Unreachable, DistError) as error:
                # The node that hosted the store may be gone; joining again lets the other nodes detect that.
                _log.warning("could not use the world of round %d: %s", world.round, error)
                last_error = error
        raise RendezvousConnectionError(
            "the nodes of no world could reach the store of its first rank; check that all ports between them are open"
        ) from last_error

    def num_nodes_waiting(self) -> int:
        """Return more than 0 if the workers must be stopped, so that this node joins another world or leaves.

        Before a resize, they first have the grace to save a checkpoint.
        """
        stopped = self._stop_grace.container_stop_expired()
        if stopped is not None:
            return int(stopped)
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
        """Return whether the rendezvous is closed."""
        return self._engine.state.closed or self._engine.status().closed is not None

    def set_closed(self) -> None:
        """Close the rendezvous; see the base class."""
        self._engine.close("closed by the program")

    def shutdown(self) -> bool:
        """Leave, and close the rendezvous if the job is over because its script has ended or failed.

        Torch calls this for every end of an agent and passes no cause, so the cause is the current exception. Another
        problem of this node, such as a full disk, does not end the others.
        """
        try:
            self._close_if_job_has_ended(sys.exc_info()[1])
        except (Unreachable, TimedOut, Corrupt) as close_error:
            _log.warning("could not close the rendezvous after the job's end: %s", close_error)
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

    def _close_if_job_has_ended(self, error: BaseException | None) -> None:
        if self._left:
            return
        if isinstance(error, ChildFailedError):
            self._close(f"the script failed on {self._address}: {_first_line(error)}")
        elif error is None and self._world_stores and self._world_stores[-1].wait_until_all_done():
            self._close(DONE)

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
            world = self._engine.join()
        except Drained:
            self._exit_agent("the scheduler has requested it")
        except Closed as closed:
            if closed.reason == DONE:
                self._exit_agent("the job is done")
            self._stop_grace.fail_job(closed.reason)
            raise RendezvousClosedError(str(closed)) from closed
        except TimedOut as error:
            raise RendezvousTimeoutError(str(error)) from error
        except Unreachable as error:
            raise RendezvousConnectionError(str(error)) from error
        except Corrupt as error:
            raise RendezvousStateError(str(error)) from error
        reason = self._budget.exhausted_reason(self._engine.state, self._wall())
        if reason is not None:
            self._stop_grace.fail_job(reason)
            self._close(reason)
            raise RendezvousClosedError(reason)
        return world

    def _exit_agent(self, reason: str) -> NoReturn:
        _log.info("leaving the rendezvous %s: %s", self._run, reason)
        self.leave()
        raise SystemExit(0)

    def _close(self, reason: str) -> None:
        self._left = True
        self._engine.close(reason)

    def _info(self, world: World) -> RendezvousInfo:
        world_store = WorldStore(self._engine, world, self._address)
        # Workers may still use the store of the previous world; those of the one before it are dead.
        self._world_stores = (*self._world_stores[-1:], world_store)
        world_store.wait_for_all()
        self._environ[ROUND] = str(world.round)
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
    return DynamoDBRendezvousHandler(
        Engine(Executor(store, identity, settings, clocks), time.sleep),
        run,
        identity.addr,
        notices=Notices.from_environment(environ),
        budget=RestartBudget.from_environment(environ),
        join_timeout=settings.join_timeout,
        environ=environ,
    )


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
