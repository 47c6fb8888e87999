"""The cases, in chains: what happens to one group one after another, the same under every engine.

c10d ranks by address, so whoever hosts its store is put where a chain needs it. Where ours asks a node to leave, c10d
has no such thing: its agent gets SIGTERM. They must not know how anything is measured.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.rendezvous.experiment import Stage
from benchmarks.rendezvous.group import Agent
from benchmarks.rendezvous.systems import C10D, OURS, SYSTEMS, System

OUTAGE = 60.0
FEWER, ALL, ADD, CRASH = "first start, one more may come", "first start, all come", "add a node", "a worker crashes"
KILL, STUBBORN = "a node is lost (SIGKILL)", "add a node, workers ignore SIGTERM"
TERM, DRAIN, FIRST = "a node gets SIGTERM", "drain of rank 0", "rank 0 is lost"
HOST, SPARE, BACK = "the store's host is lost", "a node is lost, a spare is there", "below min, and back"
FREEZE, CUT, AFTER = "a node freezes", "where they meet is silent for 60 s", "a worker crashes after that"
PAIR = "first start, two come, two needed"
CASES = (FEWER, ALL, PAIR, ADD, CRASH, KILL, FIRST, HOST, SPARE, FREEZE, TERM, DRAIN, STUBBORN, BACK, CUT, AFTER)
LOSSES = (KILL, TERM, FIRST, SPARE)
"""Where a node goes that nobody had asked to: the goal is to be three times as fast at default settings."""


@dataclass(frozen=True, slots=True)
class Chain:
    """One group's story.

    Attributes:
        play: what happens.
        host: who hosts c10d's store.
        least, most: nodes of a world.
        systems: for which it says something.
        cut: whether c10d's store is reached over a wire.
    """

    play: Callable[[Stage], None]
    host: int
    least: int = 1
    most: int = 3
    systems: Sequence[System] = SYSTEMS
    cut: bool = False


def _life(stage: Stage) -> None:
    stage.happens(FEWER, 2, stage.looks(1, 2))
    stage.happens(ADD, 3, stage.looks(3))
    stage.happens(CRASH, 3, stage.signalled(signal.SIGKILL, stage.group.agents[2].worker))
    stage.happens(KILL, 2, stage.dies(_another(stage)))
    for agent in stage.group.alive():
        os.kill(agent.worker, signal.SIGUSR2)
    stage.happens(STUBBORN, 3, stage.looks(4))


def _term(stage: Stage) -> None:
    stage.happens(ALL, 3, stage.looks(2, 3, 4))
    leaves = _another(stage)
    stage.happens(TERM, 2, stage.signalled(signal.SIGTERM, leaves.process.pid))
    stage.ended(leaves)


def _drain(stage: Stage) -> None:
    stage.happens(ALL, 3, stage.looks(2, 3, 4))
    leaves = stage.group.first()
    if stage.ours:
        stage.happens(DRAIN, 2, stage.drained(leaves, 2))
    else:
        stage.happens(DRAIN, 2, stage.signalled(signal.SIGTERM, leaves.process.pid))
    stage.ended(leaves)


def _first(stage: Stage) -> None:
    stage.happens(ALL, 3, stage.looks(2, 3, 4))
    stage.happens(FIRST, 2, stage.dies(stage.group.first()))


def _host(stage: Stage) -> None:
    """Ours has no such host but the agent of the first rank, in whose store its world has met."""
    stage.happens(ALL, 3, stage.looks(2, 3, 4))
    host = stage.group.first() if stage.ours else stage.group.agents[stage.group.place.host]
    stage.happens(HOST, 2, stage.dies(host))


def _spare(stage: Stage) -> None:
    stage.happens(PAIR, 2, stage.looks(2, 3))
    stage.looks(4)()
    # A spare under either engine takes a while to be one; both see it within seconds.
    stage.settle(4.0)
    stage.happens(SPARE, 2, stage.dies(_of(stage, 2, 3)))
    stage.dies(_another(stage))()
    time.sleep(3.0)
    stage.happens(BACK, 2, stage.looks(5))


def _freeze(stage: Stage) -> None:
    """No connection is reset: nobody learns of it but by silence."""
    stage.happens(ALL, 3, stage.looks(2, 3, 4))
    frozen = _another(stage)
    stage.happens(FREEZE, 2, stage.signalled(signal.SIGSTOP, frozen.process.pid, frozen.worker))


def _outage(stage: Stage) -> None:
    stage.happens(ALL, 3, stage.looks(2, 3, 4))
    stage.outage(CUT, OUTAGE)
    stage.happens(AFTER, 3, stage.signalled(signal.SIGKILL, _another(stage).worker))


def _another(stage: Stage) -> Agent:
    """The last of those that are neither the first rank nor the store's host."""
    kept = {stage.group.first().number, stage.group.place.host}
    if stage.ours:
        kept = {stage.group.first().number}
    return [agent for agent in stage.group.alive() if agent.number not in kept][-1]


def _of(stage: Stage, *numbers: int) -> Agent:
    first = stage.group.first().number
    return stage.group.agents[next(number for number in reversed(numbers) if number != first)]


CHAINS = {
    "life": Chain(_life, host=1),
    "drain": Chain(_drain, host=4),
    "first": Chain(_first, host=4),
    "spare": Chain(_spare, host=2, least=2, most=2),
    "term": Chain(_term, host=2),
    "host": Chain(_host, host=2),
    "freeze": Chain(_freeze, host=2, systems=(OURS, C10D)),
    "outage": Chain(_outage, host=2, cut=True, systems=(OURS, C10D)),
}
