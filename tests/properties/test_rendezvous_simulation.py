"""Whatever happens to the nodes and to the table: one world per round, and a world in the end.

`rendezvous_sim` checks on every write and every join that ranks are dense, sizes legal, rounds never formed twice, and
that each node's world is the table's. Here is what happens, and what must have come of it.
"""

from __future__ import annotations

import random

import pytest

from rendezvous_sim import Faults, Simulation, control_text
from samples import sample
from trainmaster.worker.rendezvous.watching.presence import watchers_of

QUIET = 130.0
"""Virtual seconds after the last trouble within which the right world must work: more than all waits together."""
SIZES = ((), (), (2, 4, 8, 16, 32, 64), (1, 3, 5, 9))


def nodes_of(rng):
    """Mostly few, sometimes up to 64."""
    return rng.choice((2, 2, 3, 3, 4, 4, 5, 6, 8)) if rng.random() < 0.97 else rng.randint(9, 64)


class Play:
    """One seeded run: nodes come, the scheduler changes its mind, and, if it may, things break."""

    def __init__(self, seed, *, calm):
        self.rng = random.Random(seed)
        lossy = Faults(refused=0.02, answer_lost=0.03, repeated=0.03)
        self.simulation = Simulation(seed, faults=lossy)
        self.calm = calm
        self.sizes = self.rng.choice(SIZES)
        self.count = nodes_of(self.rng)
        self.duration = 100.0 if self.count < 9 else 30.0
        self.epoch, self.drained, self.troubles = 0, [], 0
        self.min_nodes = min(self.sizes) if self.sizes else self.rng.randint(1, 2)
        self.max_nodes = max(
            self.min_nodes, self.count if self.rng.random() < 0.5 else self.rng.randint(1, 2 * self.count)
        )
        self.names = (f"job-m{number}" for number in range(1000))

    def run(self):
        simulation, rng = self.simulation, self.rng
        if rng.random() < 0.8:
            self.direct()
        for _ in range(self.count):
            simulation.at(rng.uniform(0.0, 1.0 if rng.random() < 0.7 else 20.0), self.come)
        whens = sorted(rng.uniform(5.0, self.duration) for _ in range(rng.randint(1, 6)))
        for when in whens:
            simulation.at(when, rng.choice(self.happenings()))
        simulation.run(self.duration)
        self.revive()
        simulation.run(simulation.now + 60.0)  # a pause or an outage may last so long
        simulation.faults.outages.clear()
        self.settle()
        return simulation

    def happenings(self):
        resizes = [self.come, self.drain, self.bounds]
        breaks = [self.crash, self.restart, self.depart, self.freeze, self.fail, self.outage, self.cut_off, self.wipe]
        return resizes if self.calm else resizes + breaks

    def settle(self):
        simulation, end = self.simulation, self.simulation.now + QUIET
        while simulation.now < end and not simulation.settled():
            simulation.run(simulation.now + 1.0)
        assert simulation.settled() or not self.possible(), "no world, although enough nodes live"
        # Refusals go on, and may make a node look dead; without them nothing changes any more.
        simulation.faults = Faults()
        simulation.run(simulation.now + 15.0)
        before = simulation.table.state()
        simulation.run(simulation.now + 30.0)
        after = simulation.table.state()
        assert (before.round, before.complete) == (after.round, after.complete), "it goes on changing"
        gone = [node for node in simulation.nodes if node.alive and node.job in self.drained]
        assert all(node.ended == "drained" for node in gone), "a drained node stays"
        assert not after.closed

    def possible(self):
        control = self.simulation.table.controls[-1][1]
        return control.largest_size(sum(not control.drains(node.job) for node in self.simulation.live())) > 0

    # what happens

    def direct(self):
        self.epoch += 1
        self.simulation.table.direct(control_text(self.epoch, self.min_nodes, self.max_nodes, self.sizes, self.drained))

    def come(self):
        self.simulation.start(next(self.names))

    def drain(self):
        left = [node for node in self.simulation.live() if node.job not in self.drained]
        if len(left) > self.min_nodes:
            self.drained = [*self.drained, self.rng.choice(left).job]
            if self.rng.random() < 0.5:
                self.max_nodes = max(self.min_nodes, self.max_nodes - 1)
            self.direct()

    def bounds(self):
        self.max_nodes = max(self.min_nodes, self.rng.randint(1, 2 * self.count))
        self.direct()

    def pick(self):
        self.troubles += 1
        return self.rng.choice(self.simulation.live() or [self.simulation.start(next(self.names))])

    def crash(self):
        self.simulation.crash(self.pick())

    def depart(self):
        """Deliver SIGTERM without a request to leave."""
        self.pick().told_to_go = True

    def restart(self):
        """The container's program dies and starts again: same job, same host, another life."""
        node = self.pick()
        self.simulation.crash(node)
        host = self.rng.choice(("algo-1", "algo-2"))
        self.simulation.start(node.job, host, life=1 + len(self.simulation.nodes))

    def freeze(self):
        self.simulation.freeze(self.pick(), self.rng.uniform(1.0, 50.0))

    def fail(self):
        node = self.pick()
        node.fails_at = self.simulation.now

    def outage(self):
        self.troubles += 64
        now = self.simulation.now
        self.simulation.faults.outages.append((now, now + self.rng.uniform(1.0, 60.0), None))

    def cut_off(self):
        now = self.simulation.now
        self.simulation.faults.outages.append((now, now + self.rng.uniform(1.0, 60.0), self.pick().name))

    def wipe(self):
        self.troubles += 64
        self.simulation.table.wipe()

    def revive(self):
        """Enough nodes for a world."""
        while not self.possible():
            self.come()


@pytest.mark.parametrize("seed", sample(range(12), 6))
def test_resizes_end_in_the_right_world_and_are_never_charged(seed):
    calm(seed)


@pytest.mark.parametrize("seed", sample(range(26), 10))
def test_trouble_of_all_kinds_ends_in_the_right_world(seed):
    rough(seed)


@pytest.mark.parametrize("seed", sample(range(3)))
@pytest.mark.parametrize(("base", "members", "replaced"), [(1, 2, 0), (1, 3, 1), (3, 1, 3), (4, 3, 4)])
def test_a_group_whose_base_is_gone_at_once_works_on_or_waits_for_the_replacement(seed, base, members, replaced):
    """All instances of one training job die together; below the minimum the others wait for new ones."""
    simulation = Simulation(seed, faults=Faults(refused=0.02, answer_lost=0.03, repeated=0.03))
    simulation.table.direct(control_text(1, base, base + members))
    lost = [simulation.start("job", f"algo-{number}") for number in range(1, base + 1)]
    for number in range(1, members + 1):
        simulation.start(f"job-qstamp-1-m{number}")
    simulation.run(60.0)
    assert simulation.settled()
    for node in lost:
        simulation.crash(node)
    simulation.run(150.0)
    state = simulation.table.state()
    assert (simulation.settled() and state.size == members) if members >= base else not state.complete
    assert not any(node.ended for node in simulation.live()), "they wait"
    for number in range(replaced):
        simulation.start(f"job-qstamp-1-m{members + number + 1}")
    simulation.run(simulation.now + QUIET)
    assert simulation.settled()
    assert simulation.table.state().size == members + replaced
    assert sum(simulation.table.charged.values()) <= base + replaced


@pytest.mark.parametrize("seed", [20_385, 20_833])
def test_trouble_as_a_world_begins_costs_one_restart(seed):
    rough(seed)


def first_world(seed):
    """A simulation of eight nodes, in the moment in which their first world forms, and one that follows."""
    simulation = Simulation(seed)
    simulation.table.direct(control_text(1, 1, 8))
    nodes = [simulation.start(f"job-m{number}") for number in range(8)]
    while not (state := simulation.table.state()) or not state.complete:
        simulation.run(simulation.now + 0.01)
    watchers = watchers_of(state)
    return simulation, next(node for node in nodes if node.name not in watchers), watchers


@pytest.mark.parametrize("seed", [17, 0, 3, 4])
def test_a_follower_that_dies_before_it_knows_of_its_world_costs_one_restart(seed):
    """Its announcement still asks to join. It is no arrival in the next round, also not after the node's eviction."""
    simulation, follower, _ = first_world(seed)
    simulation.crash(follower)
    simulation.run(simulation.now + QUIET)
    assert simulation.settled()
    assert simulation.table.state().charged == 1


@pytest.mark.parametrize("seed", range(4))
def test_a_follower_that_has_not_seen_its_world_joins_the_next_without_delay(seed):
    simulation, follower, watchers = first_world(seed)
    simulation.freeze(follower, 3.0)
    drained = next(node.job for node in simulation.nodes if node.name in watchers)
    simulation.table.direct(control_text(2, 1, 8, drain=[drained]))
    simulation.run(simulation.now + 15.0)
    assert simulation.settled()
    assert (simulation.table.state().size, simulation.table.state().charged) == (7, 0)
    assert follower.rounds == [2]


@pytest.mark.slow
@pytest.mark.parametrize("hundred", range(10))
def test_a_thousand_runs_of_resizes(hundred):
    for seed in range(100):
        calm(10_000 + 100 * hundred + seed)


@pytest.mark.slow
@pytest.mark.parametrize("hundred", range(20))
def test_two_thousand_runs_of_trouble(hundred):
    for seed in range(100):
        rough(20_000 + 100 * hundred + seed)


def calm(seed):
    simulation = Play(seed, calm=True).run()
    state = simulation.table.state()
    assert state.charged == 0, f"seed {seed}: {state.restarts}"
    assert not any(simulation.table.charged.values())


def rough(seed):
    play = Play(seed, calm=False)
    simulation = play.run()
    assert sum(simulation.table.charged.values()) <= play.troubles, f"seed {seed}: more restarts than troubles"
