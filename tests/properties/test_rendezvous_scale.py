"""Large groups on partitions with DynamoDB's limits: how fast they meet, their units at rest, how soon a loss is over.

The nodes hang in their collectives when a peer is gone, so only heartbeats show a loss; their workers stop at once.
The measured values are in docs/explanation/rendezvous.md.
"""

from __future__ import annotations

import random

import pytest

from rendezvous_sim import Node, Simulation
from samples import sample
from trainmaster.worker.rendezvous.errors import Unreachable
from trainmaster.worker.rendezvous.settings import Settings
from trainmaster.worker.rendezvous.watching.presence import tag, watchers_of

SPREAD, REST = 10.0, 20.0
MAX_SECONDS_TO_MEET, MAX_SECONDS_OF_A_LOSS = 5.0, 10.0
MAX_WRITES, MAX_READS = 1.2, 2.0
"""Units a second for each node at rest."""
MAX_SMALL_READS, MAX_SECONDS_OF_A_SMALL_LOSS = 4.2, 6.0
"""In a group in which every node watches."""


class Quick(Node):
    """A node whose workers stop as soon as its world is over."""

    def main(self):
        yield self.rng.uniform(0.0, 0.3)
        while True:
            self.world = yield from self.engine.joining()
            self.begin()
            while not self.engine.status().rejoin:
                yield 0.1
            self.world = None


class Large(Simulation):
    """A group that meets, rests, and loses nodes."""

    node_type = Quick

    def __init__(self, seed, count):
        super().__init__(seed, settings=Settings(min_nodes=1, max_nodes=count))
        self.count, rng = count, random.Random(seed)
        for number in range(count):
            self.at(rng.uniform(0.0, SPREAD), lambda number=number: self.start(f"job-m{number}"))

    def at_work(self):
        """Return whether one world has all live nodes."""
        state, live = self.table.state(), self.live()
        if state is None or not state.complete or state.size != len(live):
            return False
        return all(node.world is not None and node.world.round == state.round for node in live)

    def seconds_to(self, condition, limit=60.0):
        began = self.now
        while self.now < began + limit and not condition():
            self.run(self.now + 0.1)
        assert condition()
        return self.now - began

    def meet(self):
        self.run(SPREAD)
        return self.seconds_to(self.at_work)

    def rest(self):
        """Return the write and read units a second for each node."""
        self.run(self.now + 10.0)
        before = dict(self.table.throttle.used)
        self.run(self.now + REST)
        used = {kind: (units - before[kind]) / REST / self.count for kind, units in self.table.throttle.used.items()}
        return used["write"], used["read"]

    def lose(self, names):
        """Return the seconds from the loss of these nodes to the next world of all others."""
        for node in self.live():
            if node.name in names:
                self.crash(node)
        taken = self.seconds_to(self.at_work)
        self.run(self.now + 10.0)
        return taken

    def losses(self):
        """Return the seconds that the loss of a follower, of the coordinator, and of all watchers together takes."""
        watchers = watchers_of(self.table.state())
        follower = next(name for name in self.table.state().nodes if name not in watchers)
        taken = [self.lose({follower}), self.lose({watchers[0]})]
        return [*taken, self.lose(set(watchers_of(self.table.state())))]


def check(seed, count):
    group = Large(seed, count)
    assert group.meet() <= MAX_SECONDS_TO_MEET
    writes, reads = group.rest()
    assert writes <= MAX_WRITES
    assert reads <= MAX_READS
    losses = group.losses()
    assert max(losses) <= MAX_SECONDS_OF_A_LOSS, losses
    assert sum(group.table.charged.values()) == len(losses)


def test_a_group_of_24_meets_rests_and_survives_the_loss_of_all_that_watch():
    check(1, 24)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("count", [64, 256])
def test_hundreds_of_nodes_do_so_too(count, seed):
    check(seed, count)


@pytest.mark.slow
@pytest.mark.parametrize("count", [512, 1_024])
def test_a_thousand_nodes_do_so_too(count):
    check(1, count)


def test_a_node_that_writes_too_much_would_be_throttled_here():
    """The proof needs a table that has limits."""
    group = Large(1, 8)
    group.meet()
    store = group.nodes[0].store
    throttled = group.table.throttle.used["throttled"]
    for _ in range(1_000):
        store.announce(1, "x", "text")
    with pytest.raises(Unreachable, match="throttled"):
        store.announce(1, "x", "text")
    assert group.table.throttle.used["throttled"] == throttled + 1


@pytest.mark.parametrize("seed", sample(range(10), 3))
@pytest.mark.parametrize("count", [2, 3, 5])
def test_a_small_group_sees_a_loss_soon_after_the_expiry(count, seed):
    """Half a second later at most than the last heartbeat's expiry, and the others' reads."""
    group = Large(seed, count)
    group.meet()
    writes, reads = group.rest()
    assert writes <= MAX_WRITES
    assert reads <= MAX_SMALL_READS
    assert group.lose({group.live()[-1].name}) <= MAX_SECONDS_OF_A_SMALL_LOSS


@pytest.mark.parametrize("seed", sample(range(4), 2))
def test_while_all_that_watch_are_gone_the_next_ones_watch(seed):
    """Twice: the nodes that follow the first ones die with them."""
    group = Large(seed, 20)
    group.meet()
    group.run(group.now + 5.0)
    state = group.table.state()
    first = watchers_of(state)
    second = watchers_of(state, without={tag(name) for name in first})
    assert group.lose({*first, *second}) <= 2 * MAX_SECONDS_OF_A_LOSS
    assert len(group.live()) == group.table.state().size == 10
