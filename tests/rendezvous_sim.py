"""Nodes of a rendezvous in virtual time, on a table that fails in all the ways that a table can.

One thread, no sleeping, everything from one seed. Each node runs the shipped engine, its main program and its
keep-alive interleaved, on a clock of its own that is off and drifts. The table checks every state that is written.
"""

from __future__ import annotations

import heapq
import itertools
import json
import random
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass, field

from trainmaster.domain.errors import TrainmasterError
from trainmaster.worker.rendezvous.control import Control, read_control
from trainmaster.worker.rendezvous.engine import Engine
from trainmaster.worker.rendezvous.errors import Corrupt, Drained, Unreachable
from trainmaster.worker.rendezvous.executor import Clocks, Executor
from trainmaster.worker.rendezvous.settings import Settings
from trainmaster.worker.rendezvous.state import Role, State, decode
from trainmaster.worker.rendezvous.world import Identity, World

SETTINGS = Settings(
    min_nodes=1,
    max_nodes=64,
    keep_alive_interval=1.0,
    keep_alive_max_attempt=5,
    poll_interval=1.0,
    last_call_timeout=3.0,
    scale_up_delay=2.0,
    faulty_scale_down_timeout=5.0,
    straggler_timeout=25.0,
    join_timeout=100_000.0,
    max_backoff=1.0,
)
LATENCY = (0.002, 0.03)
HANGS = 1.0
"""Seconds of a call without an answer (`dynamodb.ENGINE_CLIENT_CONFIG`); its node does nothing else meanwhile."""


def control_text(epoch, min_nodes, max_nodes, sizes=(), drain=()):
    return json.dumps(
        {"epoch": epoch, "minNodes": min_nodes, "maxNodes": max_nodes, "sizes": sizes, "drain": drain, "grace": 10.0}
    )


@dataclass
class Faults:
    """Shares of calls that fail before or after they take effect, and outages for all nodes or one."""

    refused: float = 0.0
    answer_lost: float = 0.0
    repeated: float = 0.0
    outages: list[tuple[float, float, str | None]] = field(default_factory=list)

    def silent(self, now, name):
        return any(begin <= now < end and who in (None, name) for begin, end, who in self.outages)


class Throttle:
    """The limits of DynamoDB's partitions, and the units that were used. Each partition key is a partition."""

    WRITES, READS = 1_000.0, 3_000.0

    def __init__(self):
        self.left: dict[tuple[str, float], tuple[float, float]] = {}
        self.used = {"read": 0.0, "write": 0.0, "throttled": 0}

    def take(self, now, kind, partition, units):
        """Take the units of a request, or raise; a partition saves up no more than one second of its limit."""
        limit = self.WRITES if kind == "write" else self.READS
        at, tokens = self.left.get((partition, limit), (now, limit))
        tokens = min(limit, tokens + (now - at) * limit)
        if tokens < units:
            self.left[partition, limit] = now, tokens
            self.used["throttled"] += 1
            raise Unreachable("throttled")
        self.left[partition, limit] = now, tokens - units
        self.used[kind] += units


KEY_BYTES = 300
"""Bytes of a row besides its texts: the keys, with the ARN of a role in them, the signature, the time of expiry."""


class Table:
    """The row, the announcements, and the proof of what is written to them."""

    def __init__(self, simulation):
        self.simulation = simulation
        self.throttle = Throttle()
        self.announced: dict[int, dict[str, str]] = {}
        self.endpoint: tuple[int, str] | None = None
        self.before: list[tuple[float, bytes | None, int]] = []
        self.data: bytes | None = None
        self.revision = 0
        self.written_at = [0.0, 0.0]
        self.text: str | None = None
        self.controls: list[tuple[float, Control]] = [(0.0, simulation.settings.default_control())]
        self.worlds: dict[int, tuple[str, ...]] = {}
        self.charged: dict[int, bool] = {}
        self.writes = 0

    def direct(self, text):
        self.text = text
        self.controls.append((self.simulation.now, read_control(text)))

    def wipe(self):
        """Delete the row. New nodes then know nothing of earlier rounds; older nodes do."""
        self.data, self.revision = None, 0
        self.worlds, self.charged = {}, {}

    def stale(self, rng):
        """Return the row as a read that is not consistent may find it: up to 0.3 s old."""
        then = self.simulation.now - rng.uniform(0.0, 0.3)
        return next(((data, revision) for at, data, revision in self.before if at > then), (self.data, self.revision))

    def size(self):
        return len(self.data or b"") + len(self.text or "") + KEY_BYTES

    def state(self) -> State | None:
        return None if self.data is None else decode(self.data)

    def store(self, data):
        try:
            self.prove(decode(data))
        except Corrupt as error:  # programs bear that one
            raise AssertionError(f"a node has written what none can read: {data!r}") from error
        self.before = [*self.before[-20:], (self.simulation.now, self.data, self.revision)]
        self.data, self.revision = data, self.revision + 1
        self.written_at = [self.written_at[-1], self.simulation.now]
        self.writes += 1

    def prove(self, state: State):
        for record in state.restarts:
            assert self.charged.setdefault(record.round, record.charged) == record.charged
        if not state.complete:
            assert state.latest_round >= max(self.worlds, default=0), "a round is formed again"
            return
        members = state.members()
        assert [node.rank for node in members.values()] == list(range(state.size)), "ranks are not dense"
        known = self.worlds.setdefault(state.round, tuple(members))
        assert known == tuple(members), f"two worlds of round {state.round}"
        assert state.round == max(self.worlds), "an earlier world came back"
        self.prove_size(state)

    def prove_size(self, state):
        if self.data is not None and decode(self.data).complete and decode(self.data).round == state.round:
            return
        # The writer had read the control before its write, and no earlier than the write before that.
        valid = []
        for at, control in self.controls:
            valid = [control] if at <= self.written_at[0] else [*valid, control]
        assert any(control.largest_size(state.size) == state.size for control in valid), (
            f"{state.size} is no legal size"
        )


class NodeStore:
    """A node's way to the table; implements `state.GroupStore`."""

    def __init__(self, table: Table, name: str, rng: random.Random):
        self.table, self.name, self.rng = table, name, rng
        self.control: str | None = None
        self.endpoint: str | None = None
        self.hung = 0.0

    def get_state(self, *, consistent=True):
        self._travel()
        table = self.table
        self._take("read", "state", (1.0 if consistent else 0.5) * -(-table.size() // 4096))
        self.control = table.text
        data, revision = (table.data, table.revision) if consistent else table.stale(self.rng)
        return None if data is None else (data, revision)

    def set_state(self, state, token=None):
        self._travel()
        table, faults = self.table, self.table.simulation.faults
        self._take("write", "state", -(-max(len(state) + KEY_BYTES, table.size()) // 1024))
        wins = (token or 0) == table.revision
        if wins:
            table.store(state)
            if self.rng.random() < faults.answer_lost:
                raise Unreachable("the answer was lost")
            wins = self.rng.random() >= faults.repeated  # the second try finds the first one's revision
        if not wins:
            self.control = table.text
        return None if table.data is None else (table.data, table.revision, wins)

    def announcements(self, shard):
        self._travel()
        rows = self.table.announced.get(shard, {})
        size = sum(len(text) + len(name) + KEY_BYTES for name, text in rows.items())
        self._take("read", f"live {shard}", max(1, -(-size // 4096)))
        if shard == 0 and self.table.endpoint is not None:
            self.endpoint = self.table.endpoint[1]
        return dict(rows)

    def announce(self, shard, name, text):
        self._travel()
        self._take("write", f"live {shard}", -(-(len(text) + len(name) + KEY_BYTES) // 1024))
        self.table.announced.setdefault(shard, {})[name] = text

    def withdraw(self, shard, name):
        self._travel()
        self._take("write", f"live {shard}", 1)
        self.table.announced.get(shard, {}).pop(name, None)

    def publish(self, endpoint, round_):
        self._travel()
        self._take("write", "live 0", 1)
        if self.table.endpoint is None or self.table.endpoint[0] <= round_:
            self.table.endpoint = round_, endpoint

    def _take(self, kind, partition, units):
        self.table.throttle.take(self.table.simulation.now, kind, partition, units)

    def _travel(self):
        simulation = self.table.simulation
        if simulation.faults.silent(simulation.now, self.name):
            self.hung += HANGS
            raise Unreachable("no answer")
        if self.rng.random() < simulation.faults.refused:
            raise Unreachable("refused")


class Node:
    """A container: a main program that works in one world after the other, and its keep-alive."""

    def __init__(self, simulation, job, host="algo-1", life=0):
        self.simulation = simulation
        self.rng = random.Random(simulation.rng.random())
        self.rate = self.rng.uniform(0.97, 1.03)
        self.offset = self.rng.uniform(0.0, 1e6)
        identity = Identity(training_job_name=job, host=host, incarnation=f"{life}", addr=f"10.0.0.{len(job)}")
        self.name, self.job = identity.name, job
        self.store = store = NodeStore(simulation.table, self.name, self.rng)
        clocks = Clocks(monotonic=self.clock, wall=lambda: 1.8e9 + self.offset, rng=self.rng)
        self.engine = Engine(Executor(store, identity, simulation.settings, clocks), sleep=lambda _: None)
        self.alive = True
        self.ended: str | None = None
        self.world: World | None = None  # the one whose workers run here
        self.rounds: list[int] = []
        self.frozen_until = 0.0
        self.fails_at: float | None = None
        self.hangs = self.rng.random() < 0.3  # its collectives never end when a peer is gone
        self.told_to_go = False

    def clock(self):
        return self.offset + self.simulation.now * self.rate

    def gone_from(self, round_):
        """Return whether its workers no longer run in that world; before they start, the others' workers wait."""
        left = any(each >= round_ for each in self.rounds) and (self.world is None or self.world.round != round_)
        return not self.alive or self.ended is not None or left

    def main(self) -> Generator[float, None, None]:
        yield self.rng.uniform(0.0, 0.3)
        while True:
            try:
                self.world = yield from self.engine.joining()
            except Drained:
                self.ended = "drained"
                return
            self.begin()
            if (yield from self.work()):
                yield from self.depart()
                return
            self.world = None
            yield self.rng.uniform(0.0, 2.0)  # the workers stop

    def begin(self):
        world, table = self.world, self.simulation.table
        assert table.worlds[world.round] == tuple(peer.name for peer in world.nodes), "another world than the table's"
        assert world.nodes[world.rank].name == self.name
        assert not self.rounds or world.round > self.rounds[-1], "back in an earlier round"
        self.rounds.append(world.round)

    def work(self) -> Generator[float, None, bool]:
        """Until the world is over; whether the node is to leave then."""
        self.fails_at = None
        while True:
            yield self.rng.uniform(0.1, 1.2)
            asked = self.engine.status()
            if asked.drain:
                yield self.rng.uniform(0.0, 5.0)  # the checkpoint
                return True
            if self.told_to_go:
                return True
            if asked.rejoin:
                if asked.resize and self.rng.random() < 0.5:
                    yield self.rng.uniform(0.0, 5.0)
                return False
            if self.fails_at is None and not self.hangs and self.simulation.broken(self):
                self.fails_at = self.simulation.now + self.rng.uniform(0.0, 2.0)  # its collectives hang, then fail
            if self.fails_at is not None and self.simulation.now >= self.fails_at:
                return False

    def depart(self) -> Generator[float, None, None]:
        self.world = None
        with suppress(TrainmasterError):  # the others find out
            yield from self.engine.leaving()
        self.ended = "drained"

    def keep_alive(self) -> Generator[float, None, None]:
        while self.ended is None:
            yield self.simulation.settings.keep_alive_interval / self.rate
            with suppress(TrainmasterError):
                yield from self.engine.sending_heartbeat()


class Simulation:
    """Time, nodes and a table."""

    node_type = Node

    def __init__(self, seed, settings=SETTINGS, faults=None):
        self.rng = random.Random(seed)
        self.now = 0.0
        self.settings = settings
        self.faults = faults or Faults()
        self.table = Table(self)
        self.nodes: list[Node] = []
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = itertools.count()

    def at(self, when, do: Callable[[], None]):
        heapq.heappush(self._events, (max(when, self.now), next(self._count), do))

    def start(self, job, host="algo-1", life=0):
        node = self.node_type(self, job, host, life)
        self.nodes.append(node)
        self._go_on(node, node.main())
        self._go_on(node, node.keep_alive())
        return node

    def _go_on(self, node, program):
        def step():
            if not node.alive:
                return
            if self.now < node.frozen_until:
                self.at(node.frozen_until, step)
                return
            try:
                pause = next(program)
            except StopIteration:
                return
            # Both programs of a node share one executor, so a call that hangs holds up both.
            hung, node.store.hung = node.store.hung, 0.0
            node.frozen_until = max(node.frozen_until, self.now + hung)
            self.at(self.now + hung + pause / node.rate + node.rng.uniform(*LATENCY), step)

        self.at(self.now, step)

    def crash(self, node):
        node.alive, node.world = False, None

    def freeze(self, node, seconds):
        node.frozen_until = self.now + seconds

    def broken(self, node):
        """Return whether a node of this node's world no longer runs in it."""
        there, round_ = {each.name: each for each in self.nodes}, node.world.round
        return any(there[peer.name].gone_from(round_) for peer in node.world.nodes)

    def live(self):
        return [node for node in self.nodes if node.alive and node.ended is None]

    def run(self, until):
        while self._events and self._events[0][0] <= until:
            self.now, _, do = heapq.heappop(self._events)
            do()
        self.now = until

    def settled(self):
        """Return whether the expected world works, with every node in it."""
        state = self.table.state()
        if state is None or not state.complete:
            return False
        control = self.table.controls[-1][1]
        able = [node for node in self.live() if not control.drains(node.job)]
        inside = [node for node in able if node.world is not None and node.world.round == state.round]
        listed = set(state.nodes) == {node.name for node in self.live()}
        return (
            listed and len(inside) == state.size == control.largest_size(len(able)) and not self._extra(state, inside)
        )

    def _extra(self, state, inside):
        return {node.name for node in inside} ^ {name for name, node in state.nodes.items() if node.role is Role.MEMBER}
