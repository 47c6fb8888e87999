"""Nodes of a large group, as threads of this process. They meet again whenever they have to, and report each world.

It reads `begin AT SPREAD` and `lose NUMBER` from standard input, and writes lines of JSON.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import time
from importlib import import_module
from typing import Any

KEY = "bench"


def report(what: str, **values: Any) -> None:
    """Write one line in one call."""
    os.write(1, (json.dumps({"what": what, **values}) + "\n").encode())


class Trainmaster:
    """A node of the table's protocol.

    Args:
        port: of the engine.
        table: its table.
        count: nodes of the group.
        number: of this one.
    """

    def __init__(self, port: int, table: str, count: int, number: int) -> None:
        from benchmarks.rendezvous.meeting.requests import Requests
        from trainmaster.worker.rendezvous.dynamodb import DynamoStateStore
        from trainmaster.worker.rendezvous.engine import Engine
        from trainmaster.worker.rendezvous.executor import Clocks, Executor
        from trainmaster.worker.rendezvous.run import Run
        from trainmaster.worker.rendezvous.settings import Settings
        from trainmaster.worker.rendezvous.world import Identity, new_incarnation

        rng = random.Random(number)
        identity = Identity(
            training_job_name=f"bench-m{number}", host="algo-1", incarnation=new_incarnation(rng), addr="127.0.0.1"
        )
        clocks = Clocks(monotonic=time.monotonic, wall=time.time, rng=rng)
        store = DynamoStateStore(Requests(port), table, Run("bench", KEY))
        self._engine = Engine(Executor(store, identity, Settings(min_nodes=1, max_nodes=count), clocks), time.sleep)

    def meet(self) -> tuple[int, int]:
        """Return rank and size of the next world."""
        self._engine.stop_keep_alive()
        world = self._engine.join()
        self._engine.start_keep_alive()
        return world.rank, world.size

    def is_over(self) -> bool:
        """Return whether the world has ended."""
        return self._engine.status().rejoin

    def die(self) -> None:
        """Send no more heartbeats."""
        self._engine.stop_keep_alive()


class C10d:
    """A node of torch's c10d, with the same arguments; node 0 hosts the store."""

    def __init__(self, port: int, table: str, count: int, number: int) -> None:
        from torch.distributed.elastic.rendezvous import RendezvousParameters
        from torch.distributed.elastic.rendezvous.registry import get_rendezvous_handler

        os.environ["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
        address = f"127.0.{1 + number // 250}.{1 + number % 250}"
        where, is_host = f"127.0.0.1:{port}", str(int(number == 0))
        parameters = RendezvousParameters("c10d", where, table, 1, count, address, is_host=is_host)
        self._handler: Any = get_rendezvous_handler(parameters)

    def meet(self) -> tuple[int, int]:
        """Return rank and size of the next world."""
        info = self._handler.next_rendezvous()
        return info.rank, info.world_size

    def is_over(self) -> bool:
        """Return whether nodes wait for a new world, as torch's agent asks."""
        return bool(self._handler.num_nodes_waiting() > 0)

    def die(self) -> None:
        """Send no more heartbeats."""
        self._handler._stop_heartbeats()  # noqa: SLF001  # torch has no public way to fall silent


class Member(threading.Thread):
    """One node's life.

    Args:
        kind: of its handler.
        options: of the handler.
    """

    def __init__(self, kind: type[Trainmaster | C10d], options: tuple[int, str, int, int]) -> None:
        super().__init__(daemon=True)
        self.number = options[-1]
        self.is_lost, self.has_failed = threading.Event(), threading.Event()
        self.comes_at = 0.0
        self._make = lambda: kind(*options)

    def run(self) -> None:
        """Meet, and meet again whenever the world is over."""
        time.sleep(max(self.comes_at - time.monotonic(), 0.0))
        try:
            node = self._make()
            while not self.is_lost.is_set():
                rank, size = node.meet()
                report("world", node=self.number, rank=rank, size=size, at=time.monotonic())
                while not (self.is_lost.wait(1.0) or self.has_failed.is_set() or node.is_over()):
                    pass
                self.has_failed.clear()
            node.die()
        except Exception as error:  # noqa: BLE001  # the others go on
            report("error", node=self.number, error=f"{type(error).__name__}: {error}")


def main(system: str, port: str, table: str, count: str, numbers: str) -> None:
    """Run these nodes until standard input ends."""
    kind = {"trainmaster": Trainmaster, "c10d": C10d}[system]
    if system == "c10d":
        import_module("torch.distributed.run")  # before any node comes
    members = {number: Member(kind, (int(port), table, int(count), number)) for number in map(int, numbers.split(","))}
    report("ready")
    for line in sys.stdin:
        command, *values = line.split()
        if command == "begin":
            for member in members.values():
                member.comes_at = float(values[0]) + random.uniform(0.0, float(values[1]))
                member.start()
        else:
            for number, member in members.items():
                if number == int(values[0]):
                    member.is_lost.set()
                elif system == "c10d":
                    # Its agents notice no silent node; with workers, they would see these fail.
                    member.has_failed.set()


if __name__ == "__main__":
    main(*sys.argv[1:])
