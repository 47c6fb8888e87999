"""The TCPStore of one world, on which its agents wait for each other at the start and at the end.

The agent of the first rank hosts it, a new one for every world, so no key of an earlier world is ever read. Its address
is in the state of the rendezvous.
"""

from __future__ import annotations

from datetime import timedelta

from torch.distributed import DistError, TCPStore

from trainmaster.worker.rendezvous.engine import Engine
from trainmaster.worker.rendezvous.errors import RoundLost
from trainmaster.worker.rendezvous.world import World

CONNECT_TIMEOUT = timedelta(seconds=30)
"""Limit on connecting to the store of the first rank, and on each wait in it."""
_ARRIVED, _DONE = "trainmaster/arrived", "trainmaster/done"
_POLL_SECONDS = 0.05
"""Interval of checks for the other agents."""


class WorldStore:
    """One agent's connection to a world's store.

    Args:
        engine: this node.
        world: its world.
        address: address at which other nodes reach this one.

    Raises:
        RoundLost: another round has begun; likewise `Closed`, `TimedOut` and `Unreachable`.
        DistError: torch cannot reach the store.
    """

    def __init__(self, engine: Engine, world: World, address: str) -> None:
        self._engine = engine
        self._world = world
        if world.rank == 0:
            self.store = TCPStore(address, 0, is_master=True, wait_for_workers=False)
            self.host, self.port = address, self.store.port
            engine.publish(self.host, self.port)
        else:
            self.host, self.port = engine.endpoint()
            self.store = TCPStore(
                self.host, self.port, is_master=False, wait_for_workers=False, timeout=CONNECT_TIMEOUT
            )

    def wait_for_all(self) -> None:
        """Wait until all agents have reached the store; after that, none waits in it for one that died on the way.

        Raises:
            RoundLost: the world has ended.
            DistError: the store has ended.
        """
        arrived = self.store.add(_ARRIVED, 1)
        while arrived < self._world.size:
            if self._engine.should_rejoin():
                raise RoundLost(f"round {self._world.round} has ended before all nodes arrived")
            self._engine.sleep(_POLL_SECONDS)
            arrived = self.store.add(_ARRIVED, 0)

    def wait_until_all_done(self) -> bool:
        """Wait until the script has ended on all nodes; return False if the world or the rendezvous ends first.

        Torch's own barrier waits for five minutes, then lets the first node close the rendezvous under the others.
        """
        try:
            done = self.store.add(_DONE, 1)
            while done < self._world.size:
                status = self._engine.status()
                if status.rejoin or status.closed is not None:
                    return False
                self._engine.sleep(_POLL_SECONDS)
                done = self.store.add(_DONE, 0)
        except DistError:
            # The host has ended: it has seen all others end, or it was lost and they continue.
            return False
        return True
