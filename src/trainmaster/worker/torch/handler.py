"""Our rendezvous as torch's `RendezvousHandler`, which torchrun's agents drive: join, watch, join again, shut down.

Every world gets a new TCPStore, hosted by the agent of its first rank; its address is in the state. A node that is
asked to leave, and a spare at the end of the job, end their agent with exit code 0 and close nothing. Over torch's
public interfaces only. This must not decide who is in a world: the engine does.
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
from trainmaster.worker.checkpoints.stop_grace import Notified, StopGrace
from trainmaster.worker.container.container import ROUND
from trainmaster.worker.container.restart_budget import Budget
from trainmaster.worker.rendezvous.dynamodb import BRISK, Address, DynamoStateStore, client_of
from trainmaster.worker.rendezvous.engine import Engine
from trainmaster.worker.rendezvous.errors import Closed, Corrupt, Drained, RoundLost, TimedOut, Unreachable
from trainmaster.worker.rendezvous.executor import Clocks, Executor
from trainmaster.worker.rendezvous.state import DONE
from trainmaster.worker.rendezvous.world import World
from trainmaster.worker.torch.backend import NAME
from trainmaster.worker.torch.torchrun import identity_of, settings_of
from trainmaster.worker.torch.world_store import Meeting

_log = logging.getLogger(__name__)


class DynamoDBRendezvousHandler(RendezvousHandler):
    """One agent's side of a rendezvous.

    Args:
        engine: this node.
        run: what the rendezvous is called.
        address: where others reach this node.
        notices: by which its workers are asked for checkpoints; None where they cannot be.
        budget: how many restarts the job has.
        patience: seconds after which an agent gives up whose worlds never meet.
        environ: the agent's environment, which its workers get: `TRAINMASTER_ROUND` is written there. It may say
            `TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1`, as for torch's own handler.
        clock: the machine's monotonic clock.
        wall: seconds since 1970, for the budget's period.
    """

    def __init__(  # noqa: PLR0913  # each is something that a test hands in
        self,
        engine: Engine,
        run: str,
        address: str,
        *,
        notices: Notified | None = None,
        budget: Budget | None = None,
        patience: float = 600.0,
        environ: MutableMapping[str, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._engine = engine
        self._run = run
        self._address = address
        self._reprieve = StopGrace(notices, clock)
        self._budget = budget or Budget()
        self._patience = patience
        self._environ: MutableMapping[str, str] = {} if environ is None else environ
        self._clock = clock
        self._wall = wall
        self._out = True
        self._meetings: tuple[Meeting, ...] = ()

    # ------------------------------------------------------------ what torch asks

    def get_backend(self) -> str:
        """See the base class."""
        return NAME

    def get_run_id(self) -> str:
        """See the base class."""
        return self._run

    @property
    def use_agent_store(self) -> bool:
        """Whether workers meet in the agent's store rather than in one that the first worker opens."""
        return self._environ.get("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "0") != "1"

    def next_rendezvous(self) -> RendezvousInfo:
        """See the base class. Ends the agent (SystemExit 0) where this node is to leave, or the job is done.

        Torch's own way to leave in peace, `RendezvousGracefulExitError`, ends torchrun with exit code 1.
        """
        if self._reprieve.stopped() is not None:
            self._leave("its container is being stopped")
        self._reprieve.reset()
        self._out = False
        trouble: Exception | None = None
        for world in self._worlds():
            try:
                return self._info(world)
            except (RoundLost, Closed, TimedOut, Unreachable, DistError) as error:
                # Whoever hosted the store may be gone with it; joining again lets the others find that out.
                _log.warning("round %d came to nothing: %s", world.round, error)
                trouble = error
        raise RendezvousConnectionError(
            "no world could meet in its first node's store: are all ports open between the nodes?"
        ) from trouble

    def num_nodes_waiting(self) -> int:
        """More than 0 once the workers are to be stopped, so that this node joins another world, or leaves.

        Before a resize they have the time that the queue gives them to save a checkpoint.
        """
        stopped = self._reprieve.stopped()
        if stopped is not None:
            return int(stopped)
        try:
            asked = self._engine.asked()
        except (Corrupt, Unreachable) as error:
            _log.warning("cannot tell what is asked of this node: %s", error)
            return 0
        if asked.closed is not None:
            return int(asked.closed != DONE)
        if not (asked.rejoin or asked.drain):
            self._reprieve.reset()
            return 0
        if asked.resize or asked.drain:
            reason = Reason.DRAIN if asked.drain else Reason.RESIZE
            return max(asked.waiting, 1) if self._reprieve.over(reason, asked.grace) else 0
        return max(asked.waiting, 1)

    def is_closed(self) -> bool:
        """See the base class."""
        return self._engine.state.closed or self._engine.asked().closed is not None

    def set_closed(self) -> None:
        """See the base class."""
        self._engine.close("closed by a program")

    def shutdown(self) -> bool:
        """End this node's part; the rendezvous itself only where the job is over: its script has ended, or failed.

        Torch calls this however an agent ends, and does not say how: that is the exception under way. One node's own
        trouble, such as a full disk, is no reason to end the others.
        """
        error = sys.exception()
        try:
            if isinstance(error, ChildFailedError) and not self._out:
                self._end(f"the script failed on {self._address}: {_first_line(error)}")
            elif error is None and not self._out and self._meetings and self._meetings[-1].all_done():
                self._end(DONE)
        except (Unreachable, TimedOut, Corrupt) as trouble:
            _log.warning("the rendezvous was not told that the job is over: %s", trouble)
            return False
        finally:
            self.depart()
            self._engine.stop_keep_alive()
        return True

    # ------------------------------------------------------------ what else there is

    def depart(self) -> None:
        """Take no part any more, and close nothing; where that is so already, nothing."""
        if not self._out:
            self._out = True
            try:
                self._engine.leave()
            except (TimedOut, Corrupt) as trouble:
                _log.warning("left without a word: %s", trouble)

    def _worlds(self) -> Iterator[World]:
        """One world after another, for as long as one may wait for one that works."""
        began = self._clock()
        while self._clock() - began <= self._patience:
            self._engine.stop_keep_alive()
            world = self._joined()
            self._engine.start_keep_alive()
            yield world

    def _joined(self) -> World:
        try:
            world = self._engine.join()
        except Drained:
            self._leave("it was asked to")
        except Closed as closed:
            if closed.reason == DONE:
                self._leave("the job is done")
            self._reprieve.end(closed.reason)
            raise RendezvousClosedError(str(closed)) from closed
        except TimedOut as error:
            raise RendezvousTimeoutError(str(error)) from error
        except Unreachable as error:
            raise RendezvousConnectionError(str(error)) from error
        except Corrupt as error:
            raise RendezvousStateError(str(error)) from error
        reason = self._budget.overdrawn(self._engine.state, self._wall())
        if reason is not None:
            self._reprieve.end(reason)
            self._end(reason)
            raise RendezvousClosedError(reason)
        return world

    def _leave(self, why: str) -> NoReturn:
        _log.info("this node leaves the rendezvous %s: %s", self._run, why)
        self.depart()
        raise SystemExit(0)

    def _end(self, reason: str) -> None:
        self._out = True
        self._engine.close(reason)

    def _info(self, world: World) -> RendezvousInfo:
        meeting = Meeting(self._engine, world, self._address)
        # Workers may still speak to the store of the world before; those of the one before that are dead.
        self._meetings = (*self._meetings[-1:], meeting)
        meeting.arrive()
        self._environ[ROUND] = str(world.round)
        shared = RendezvousStoreInfo(meeting.host, meeting.port)
        own = not self.use_agent_store
        info = RendezvousStoreInfo.build(world.rank, meeting.store, self._address) if own else shared
        return RendezvousInfo(meeting.store, world.rank, world.size, info)


def handler_of(parameters: RendezvousParameters, environ: MutableMapping[str, str]) -> DynamoDBRendezvousHandler:
    """The handler that torchrun's options ask for. Raises ValueError, `InvalidRequest`, `PermissionError`."""
    rng = random.SystemRandom()
    where, run = Address.of(parameters.endpoint), parameters.run_id
    settings = settings_of(parameters.min_nodes, parameters.max_nodes, parameters.config, environ)
    me = identity_of(parameters.local_addr, run, parameters.config, environ, rng)
    store = DynamoStateStore(client_of(where.region, patience=BRISK), where.table, run)
    clocks = Clocks(monotonic=time.monotonic, wall=time.time, rng=rng)
    return DynamoDBRendezvousHandler(
        Engine(Executor(store, me, settings, clocks), time.sleep),
        run,
        me.addr,
        notices=Notices.of(environ),
        budget=Budget.of(environ),
        patience=settings.join_timeout,
        environ=environ,
    )


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
