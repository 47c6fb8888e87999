"""The store that an agent of torch gets for its world: it never blocks the agent after the world has ended.

Agents exchange their ranks in this store, on the host of the first rank. If that host is lost meanwhile, torch's agent
would end with an error. Instead this store answers with provisional ranks; the handler then reports a change, so that
the agent stops its workers at once and joins the next world (`handler.num_nodes_waiting`).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from torch.distributed import DistError, Store, TCPStore

from trainmaster.worker.rendezvous.errors import RendezvousError
from trainmaster.worker.rendezvous.world import World

T = TypeVar("T")
TIMEOUT = timedelta(seconds=300)
"""Limit on each wait, the same for all ranks; torch's default."""
CONNECT_TIMEOUT = timedelta(seconds=30)
"""Limit on connecting to the first rank."""
_ROLES, _RANKS, _EXIT = "torchelastic/role_info/", "torchelastic/assigned_ranks/", "torchelastic/agent/terminal_state"
"""Keys of torch's agent (`SimpleElasticAgent._assign_worker_ranks`, `_exit_barrier`)."""
_POLL_SECONDS = 0.05
"""Interval of checks whether the world has ended, during a call."""


class AgentStore(Store):
    """One agent's view of the TCPStore of its world.

    Each call runs in a thread of its own: a call to a host that was lost without a sign can block forever, and would
    block signals too.

    Args:
        world: the world.
        end_of_world: returns the error that stands for the end of the world, or None while it lasts.
        connect: returns the connection.

    Raises:
        RendezvousError: the world ended meanwhile.
        DistError: torch cannot reach the store.
    """

    def __init__(
        self, world: World, end_of_world: Callable[[], RendezvousError | None], connect: Callable[[], TCPStore]
    ) -> None:
        super().__init__()
        self._world = world
        self._end_of_world = end_of_world
        self._role: dict[str, Any] = {}
        self.is_broken = False
        self.has_finished = False
        self._store = self._call(connect)
        self.set_timeout(TIMEOUT)

    @property
    def port(self) -> int:
        """Port of the first rank's store."""
        port: int = self._store.port
        return port

    def set_timeout(self, timeout: timedelta) -> None:
        """Set the limit on each wait."""
        super().set_timeout(timeout)
        self._store.set_timeout(timeout)

    def set(self, key: str, value: str | bytes) -> None:
        """Store a value. An agent's own role is noted, for provisional ranks."""
        if key.startswith(_ROLES):
            self._role = json.loads(value)
            return self._unless_over(lambda: self._store.set(key, value), lambda: None)
        return self._call(lambda: self._store.set(key, value))

    def get(self, key: str) -> bytes:
        """Return a value once it is there; provisional ranks if the world has ended."""
        if key.startswith(_RANKS):
            return self._unless_over(lambda: self._store.get(key), self._provisional_ranks)
        return self._call(lambda: self._store.get(key))

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """Return values once all are there; if the world has ended, roles like this agent's own."""
        if keys and all(key.startswith(_ROLES) for key in keys):
            return self._unless_over(lambda: self._store.multi_get(keys), lambda: self._provisional_roles(len(keys)))
        return self._call(lambda: self._store.multi_get(keys))

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Store several values."""
        if keys and all(key.startswith(_RANKS) for key in keys):
            return self._unless_over(lambda: self._store.multi_set(keys, values), lambda: None)
        return self._call(lambda: self._store.multi_set(keys, values))

    def add(self, key: str, value: int) -> int:
        """Increase a counter and return it. An agent that reaches torch's exit barrier has finished its work."""
        self.has_finished = self.has_finished or key.startswith(_EXIT)
        return self._call(lambda: self._store.add(key, value))

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all keys are there."""
        limit = (self.timeout if timeout is None else timeout,)
        return self._call(lambda: self._store.wait(keys, *limit))

    def check(self, keys: Sequence[str]) -> bool:
        """Return whether all keys are there."""
        return self._call(lambda: self._store.check(keys))

    def compare_set(self, key: str, expected: str, desired: str) -> bytes:
        """Replace a value if it is the expected one, and return the stored one."""
        return self._call(lambda: self._store.compare_set(key, expected, desired))

    def delete_key(self, key: str) -> bool:
        """Delete a key, and return whether it was there."""
        return self._call(lambda: self._store.delete_key(key))

    def num_keys(self) -> int:
        """Return the number of keys."""
        return self._call(self._store.num_keys)

    def _call(self, operation: Callable[[], T]) -> T:
        """Return the result of an operation; stop waiting for it once the world has ended."""
        result: list[tuple[T | None, BaseException | None]] = []
        done = threading.Event()

        def run() -> None:
            try:
                result.append((operation(), None))
            except BaseException as error:  # noqa: BLE001  # it is raised again in the caller's thread
                result.append((None, error))
            done.set()

        threading.Thread(target=run, name="trainmaster-store", daemon=True).start()
        while not done.wait(_POLL_SECONDS):
            ended = self._end_of_world()
            if ended is not None and not done.is_set():
                raise ended
        value, error = result[0]
        if error is not None:
            raise error
        return value  # type: ignore[return-value]  # an operation that returns None has that type

    def _unless_over(self, operation: Callable[[], T], otherwise: Callable[[], T]) -> T:
        """Return the result, or another one if the world has ended or its store is lost; from then on always that."""
        if not self.is_broken:
            try:
                return self._call(operation)
            except (RendezvousError, DistError):
                self.is_broken = True
        return otherwise()

    def _provisional_ranks(self) -> bytes:
        """Return ranks that complete no world: as if all agents had as many workers as this one."""
        workers = int(self._role.get("local_world_size", 1))
        first, total = self._world.rank * workers, self._world.size * workers
        return json.dumps([first, total, first, total]).encode()

    def _provisional_roles(self, agents: int) -> list[bytes]:
        return [json.dumps({**self._role, "rank": rank}).encode() for rank in range(agents)]
