"""The store of one world, on which its agents wait for each other at the start and at the end.

The agent of the first rank hosts it, a new one for every world, so no key of an earlier world is ever read. Its address
is in the rendezvous.
"""

from __future__ import annotations

from torch.distributed import DistError, TCPStore

from trainmaster.worker.rendezvous.engine import Engine
from trainmaster.worker.rendezvous.errors import Closed, Corrupt, RendezvousError, RoundLost
from trainmaster.worker.rendezvous.world import World
from trainmaster.worker.torch.agent_store import CONNECT_TIMEOUT, AgentStore

_ARRIVED, _ALL_ARRIVED, _DONE = "trainmaster/arrived", "trainmaster/all-arrived", "trainmaster/done"
_POLL_SECONDS = 0.05
"""Interval of checks for the end of the script on the other nodes."""


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
            self.store = AgentStore(world, self._end_of_world, lambda: _serve(address))
            self.host, self.port = address, self.store.port
            engine.publish(self.host, self.port)
        else:
            self.host, self.port = engine.endpoint()
            self.store = AgentStore(world, self._end_of_world, lambda: _connect(self.host, self.port))

    def wait_for_all(self) -> None:
        """Wait until all agents have reached the store; after that, none waits in it for one that died on the way.

        Raises:
            RoundLost: the world has ended; likewise `Closed`.
            DistError: the store has ended.
        """
        if self.store.add(_ARRIVED, 1) == self._world.size:
            self.store.set(_ALL_ARRIVED, "")
        self.store.wait([_ALL_ARRIVED])

    def wait_until_all_done(self) -> bool:
        """Wait until the script has ended on all nodes; return False if the world or the rendezvous ends first.

        Torch's own barrier waits for five minutes, then lets the first node close the rendezvous under the others.
        """
        try:
            done = self.store.add(_DONE, 1)
            while done < self._world.size:
                if self._end_of_world() is not None:
                    return False
                self._engine.sleep(_POLL_SECONDS)
                done = self.store.add(_DONE, 0)
        except (DistError, RendezvousError):
            # The host has ended: it has seen all others end, or it was lost and they continue.
            return False
        return True

    def _end_of_world(self) -> RendezvousError | None:
        try:
            status = self._engine.status()
        except Corrupt:  # nothing is known
            return None
        if status.closed is not None:
            return Closed(status.closed)
        return RoundLost(f"round {self._world.round} has ended") if status.rejoin else None


def _serve(host: str) -> TCPStore:
    return TCPStore(host, 0, is_master=True, wait_for_workers=False)


def _connect(host: str, port: int) -> TCPStore:
    return TCPStore(host, port, is_master=False, wait_for_workers=False, timeout=CONNECT_TIMEOUT)
