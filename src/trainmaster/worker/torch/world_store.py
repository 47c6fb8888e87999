"""The store of one world, in which its agents meet: when they come, and when their scripts have ended.

It is a TCPStore that the agent of the first rank hosts, a new one for every world, so that no key of an earlier one is
ever read. Its address is in the rendezvous' state. This must not decide who is in the world.
"""

from __future__ import annotations

from datetime import timedelta

from torch.distributed import DistError, TCPStore

from trainmaster.worker.rendezvous.engine import Engine
from trainmaster.worker.rendezvous.errors import RoundLost
from trainmaster.worker.rendezvous.world import World

CONNECT = timedelta(seconds=30)
"""How long an agent tries to reach the first rank's store, and waits there for others that had come as well."""
_ARRIVED, _DONE = "trainmaster/arrived", "trainmaster/done"
_LOOK = 0.05
"""Seconds between two looks at how many there are."""


class Meeting:
    """One agent's side of a world's store.

    Args:
        engine: this node.
        world: the one that it is in.
        address: where others reach this node.

    Raises `RoundLost`, `Closed`, `TimedOut` and `Unreachable` as the engine does, and torch's `DistError`.
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
            self.store = TCPStore(self.host, self.port, is_master=False, wait_for_workers=False, timeout=CONNECT)

    def arrive(self) -> None:
        """Wait until all have reached the store: after this nobody waits in it for somebody who died on the way.

        Raises `RoundLost` where the world ends before, `DistError` where the store does.
        """
        here = self.store.add(_ARRIVED, 1)
        while here < self._world.size:
            if self._engine.should_rejoin():
                raise RoundLost(f"round {self._world.round} has ended before all had come")
            self._engine.wait(_LOOK)
            here = self.store.add(_ARRIVED, 0)

    def all_done(self) -> bool:
        """Whether the script has ended on all nodes of the world; waits for them as long as it works and is open.

        Torch's own barrier waits for five minutes, and lets the first node close the rendezvous under the others then.
        """
        try:
            done = self.store.add(_DONE, 1)
            while done < self._world.size:
                asked = self._engine.asked()
                if asked.rejoin or asked.closed is not None:
                    return False
                self._engine.wait(_LOOK)
                done = self.store.add(_DONE, 0)
        except DistError:
            # Its host has ended: it had seen all others end, or it is lost and they go on.
            return False
        return True
