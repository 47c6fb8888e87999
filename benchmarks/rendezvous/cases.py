"""Cases in chains: events in the life of one group, the same under every engine.

c10d assigns ranks by address, so the host of its store has the address that a chain needs. Where Trainmaster drains a
node, c10d has no such operation: its agent gets SIGTERM.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.rendezvous.experiment import Experiment
from benchmarks.rendezvous.group import Agent
from benchmarks.rendezvous.systems import C10D, SYSTEMS, TRAINMASTER, System

OUTAGE = 60.0
FEWER, ALL, ADD, CRASH = "first start, one more may come", "first start, all come", "add a node", "a worker crashes"
KILL, STUBBORN = "a node is lost (SIGKILL)", "add a node, workers ignore SIGTERM"
TERM, DRAIN, FIRST = "a node gets SIGTERM", "drain of rank 0", "rank 0 is lost"
HOST, SPARE, BACK = "the store's host is lost", "a node is lost, a spare is there", "below min, and back"
FREEZE, CUT, AFTER = "a node freezes", "where they meet is silent for 60 s", "a worker crashes after that"
PAIR = "first start, two come, two needed"
CASES = (FEWER, ALL, PAIR, ADD, CRASH, KILL, FIRST, HOST, SPARE, FREEZE, TERM, DRAIN, STUBBORN, BACK, CUT, AFTER)
NODE_LOSSES = (KILL, TERM, FIRST, SPARE)
"""Unrequested losses of a node: the goal is to be three times as fast at default settings."""


@dataclass(frozen=True, slots=True)
class Chain:
    """A chain of cases of one group.

    Attributes:
        play: runs the cases.
        host: number of the agent that hosts c10d's store.
        min_nodes, max_nodes: nodes of a world.
        systems: engines to which the chain applies.
        cut: True if c10d's store is reached through a proxy.
    """

    play: Callable[[Experiment], None]
    host: int
    min_nodes: int = 1
    max_nodes: int = 3
    systems: Sequence[System] = SYSTEMS
    cut: bool = False


def _life(experiment: Experiment) -> None:
    experiment.run_case(FEWER, 2, experiment.agents_started(1, 2))
    experiment.run_case(ADD, 3, experiment.agents_started(3))
    experiment.run_case(CRASH, 3, experiment.processes_signaled(signal.SIGKILL, experiment.group.agents[2].worker))
    experiment.run_case(KILL, 2, experiment.agent_killed(_another(experiment)))
    for agent in experiment.group.alive():
        os.kill(agent.worker, signal.SIGUSR2)
    experiment.run_case(STUBBORN, 3, experiment.agents_started(4))


def _term(experiment: Experiment) -> None:
    experiment.run_case(ALL, 3, experiment.agents_started(2, 3, 4))
    leaves = _another(experiment)
    experiment.run_case(TERM, 2, experiment.processes_signaled(signal.SIGTERM, leaves.process.pid))
    experiment.record_exit(leaves)


def _drain(experiment: Experiment) -> None:
    experiment.run_case(ALL, 3, experiment.agents_started(2, 3, 4))
    leaves = experiment.group.first()
    if experiment.ours:
        experiment.run_case(DRAIN, 2, experiment.agent_drained(leaves, 2))
    else:
        experiment.run_case(DRAIN, 2, experiment.processes_signaled(signal.SIGTERM, leaves.process.pid))
    experiment.record_exit(leaves)


def _first(experiment: Experiment) -> None:
    experiment.run_case(ALL, 3, experiment.agents_started(2, 3, 4))
    experiment.run_case(FIRST, 2, experiment.agent_killed(experiment.group.first()))


def _host(experiment: Experiment) -> None:
    """Run the loss of the store's host; Trainmaster's is the first rank, in whose store its world has met."""
    experiment.run_case(ALL, 3, experiment.agents_started(2, 3, 4))
    host = experiment.group.first() if experiment.ours else experiment.group.agents[experiment.group.place.host]
    experiment.run_case(HOST, 2, experiment.agent_killed(host))


def _spare(experiment: Experiment) -> None:
    experiment.run_case(PAIR, 2, experiment.agents_started(2, 3))
    experiment.agents_started(4)()
    # Both engines recognize a spare within seconds.
    experiment.settle(4.0)
    experiment.run_case(SPARE, 2, experiment.agent_killed(_of(experiment, 2, 3)))
    experiment.agent_killed(_another(experiment))()
    time.sleep(3.0)
    experiment.run_case(BACK, 2, experiment.agents_started(5))


def _freeze(experiment: Experiment) -> None:
    """Run the freeze of a node: no connection is reset, so only silence reveals it."""
    experiment.run_case(ALL, 3, experiment.agents_started(2, 3, 4))
    frozen = _another(experiment)
    experiment.run_case(FREEZE, 2, experiment.processes_signaled(signal.SIGSTOP, frozen.process.pid, frozen.worker))


def _outage(experiment: Experiment) -> None:
    experiment.run_case(ALL, 3, experiment.agents_started(2, 3, 4))
    experiment.outage(CUT, OUTAGE)
    experiment.run_case(AFTER, 3, experiment.processes_signaled(signal.SIGKILL, _another(experiment).worker))


def _another(experiment: Experiment) -> Agent:
    """Return the last agent that is neither the first rank nor the store's host."""
    kept = {experiment.group.first().number, experiment.group.place.host}
    if experiment.ours:
        kept = {experiment.group.first().number}
    return [agent for agent in experiment.group.alive() if agent.number not in kept][-1]


def _of(experiment: Experiment, *numbers: int) -> Agent:
    first = experiment.group.first().number
    return experiment.group.agents[next(number for number in reversed(numbers) if number != first)]


CHAINS = {
    "life": Chain(_life, host=1),
    "drain": Chain(_drain, host=4),
    "first": Chain(_first, host=4),
    "spare": Chain(_spare, host=2, min_nodes=2, max_nodes=2),
    "term": Chain(_term, host=2),
    "host": Chain(_host, host=2),
    "freeze": Chain(_freeze, host=2, systems=(TRAINMASTER, C10D)),
    "outage": Chain(_outage, host=2, cut=True, systems=(TRAINMASTER, C10D)),
}
