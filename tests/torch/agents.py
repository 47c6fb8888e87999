"""Agents in threads: each drives one of our handlers as torchrun's agent does, without workers."""

from __future__ import annotations

import itertools
import random
import threading
import time
from contextlib import suppress

from tests.containers import RUN_OF_NODES
from torch.distributed import DistError
from torch.distributed.elastic.utils import store as store_util

from trainmaster.worker.rendezvous.dynamodb import DynamoStateStore
from trainmaster.worker.rendezvous.engine import Engine
from trainmaster.worker.rendezvous.errors import RendezvousError, RoundLost
from trainmaster.worker.rendezvous.executor import Clocks, Executor
from trainmaster.worker.rendezvous.settings import Settings
from trainmaster.worker.rendezvous.world import Identity, new_incarnation
from trainmaster.worker.torch.handler import DynamoDBRendezvousHandler

RUN = RUN_OF_NODES.name
PATIENCE = 30
EXIT_BARRIER = "torchelastic/agent/terminal_state"
"""Key of the barrier in which torch's agents wait for each other once their script has ended."""
QUICK = {
    "keep_alive_interval": 0.4,
    "keep_alive_max_attempt": 6,
    "poll_interval": 0.1,
    "last_call_timeout": 0.4,
    "scale_up_delay": 0.2,
    "max_backoff": 0.5,
}
"""So many heartbeats that no node looks dead on a busy machine, on which a thread may wait for two seconds."""


class Agent:
    """One agent, and what has become of it.

    Args:
        handler: its own.
        address: 127.0.0.N.
    """

    def __init__(self, handler, address):
        self.handler, self.address = handler, address
        self.info, self.rounds, self.ended = None, 0, None
        self._failed, self._done, self._killed = threading.Event(), threading.Event(), threading.Event()
        self._failed_for_good = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def fails(self):
        """Fail its workers; the agent restarts them."""
        self._failed.set()

    def finishes(self):
        """Its script comes to its end, and it waits for the others in torch's barrier."""
        self._done.set()

    def fails_for_good(self):
        """Its script fails, and it restarts nothing; its launcher raises nothing."""
        self._failed_for_good.set()

    def dies(self):
        """It ends without a word, as a container that is lost."""
        self._killed.set()
        self.handler._engine.stop_keep_alive()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def ends(self):
        """Return its result: None, an exit code, or an error."""
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "the agent goes on"
        return self.ended

    @property
    def world(self):
        """Rank and size; None while there are none."""
        return self.info and (self.info.rank, self.info.world_size)

    def _run(self):
        try:
            try:
                self._loop()
            finally:
                if not self._killed.is_set():
                    self.handler.shutdown()
        except SystemExit as exit_:
            self.ended = exit_.code
        except Exception as error:  # noqa: BLE001  # whatever it was, `ends` shows it
            self.ended = error

    def _loop(self):
        self._meet()
        while not self._done.wait(0.05):
            if self._killed.is_set() or self._failed_for_good.is_set():
                return
            if self._failed.is_set() or self.handler.num_nodes_waiting() > 0:
                self._failed.clear()
                self.info = None
                self._meet()
        if not self._killed.is_set():
            with suppress(DistError, RendezvousError):
                store_util.barrier(self.info.store, self.info.world_size, EXIT_BARRIER, PATIENCE)

    def _meet(self):
        info = self.handler.next_rendezvous()
        # As the agent assigns ranks: all speak to all through the world's store.
        info.store.set(f"role/{info.rank}", self.address)
        try:
            for rank in range(info.world_size):
                info.store.get(f"role/{rank}")
        except (DistError, RoundLost):
            return  # torch's agent has provisional ranks then
        self.rounds += 1
        self.info = info


class Agents:
    """A maker of agents on one table.

    Args:
        client: of DynamoDB; `open` may take another one.
        table: name of the table.
    """

    def __init__(self, client, table):
        self.client, self.table, self.made, self._count = client, table, [], itertools.count()

    def open(
        self,
        number,
        min_nodes=1,
        max_nodes=8,
        *,
        job=RUN,
        client=None,
        notices=None,
        budget=None,
        environ=None,
        **settings,
    ):
        """The agent of the node 127.0.0.`number`."""
        more = {"notices": notices, "budget": budget, "environ": environ}
        handler = self.handler(number, min_nodes, max_nodes, job=job, client=client, **more, **settings)
        agent = Agent(handler, f"127.0.0.{number}")
        self.made.append(agent)
        return agent

    def handler(
        self, number, min_nodes, max_nodes, *, job=RUN, client=None, notices=None, budget=None, environ=None, **settings
    ):
        """The handler of the node 127.0.0.`number`."""
        rng, address = random.Random(f"{self.table}-{next(self._count)}"), f"127.0.0.{number}"
        me = Identity(training_job_name=job, host="algo-1", incarnation=new_incarnation(rng), addr=address)
        store = DynamoStateStore(client or self.client, self.table, RUN_OF_NODES)
        quick = Settings(min_nodes=min_nodes, max_nodes=max_nodes, **({"join_timeout": 20.0} | QUICK | settings))
        clocks = Clocks(monotonic=time.monotonic, wall=time.time, rng=rng)
        return DynamoDBRendezvousHandler(
            Engine(Executor(store, me, quick, clocks), time.sleep),
            RUN,
            address,
            notices=notices,
            budget=budget,
            environ=environ,
            join_timeout=quick.join_timeout,
        )

    def pass_exit_barrier(self, info):
        """End as an agent whose script has ended."""
        store_util.barrier(info.store, info.world_size, EXIT_BARRIER, PATIENCE)

    def close(self):
        """End whatever still runs."""
        for agent in self.made:
            agent._killed.set()
            agent.handler._engine.stop_keep_alive()


def eventually(condition, timeout=PATIENCE):
    """Wait until it holds; what it is then."""
    deadline = time.monotonic() + timeout
    while not (found := condition()):
        assert time.monotonic() < deadline, "it never came about"
        time.sleep(0.02)
    return found


def worlds(*agents):
    """The worlds of these agents, once they are one world; by rank."""

    def one():
        found = sorted(agent.world or (-1, -1) for agent in agents)
        ports = {agent.info and agent.info.bootstrap_store_info.master_port for agent in agents}
        return found == [(rank, len(agents)) for rank in range(len(agents))] and len(ports) == 1

    eventually(one)
    return [agent.info.rank for agent in agents]
