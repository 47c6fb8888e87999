"""One group at work, to which cases happen one after another; what each came to is kept. It must not know any case."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from benchmarks.rendezvous.group import LOOK, Agent, Group
from benchmarks.rendezvous.pauses import at_once, longest_gap, pause, worlds
from benchmarks.rendezvous.proxy import Wire
from benchmarks.rendezvous.systems import training_job
from trainmaster.adapters.dynamodb.rendezvous import DynamoRendezvousControl
from trainmaster.domain.elastic.rendezvous import Control

SETTLING = 2.5
"""Seconds that a world works before the next case: more than any engine caches."""


class Over(Exception):
    """The group has no further world: nothing more can happen to it."""


class Stage:
    """A group, the wire to what it meets in, and the queue's side.

    Args:
        group: it.
        wire: on which requests are counted, and which an outage cuts.
        groups: the queue's side of the table.
        limit: seconds after which a world will never come.
    """

    def __init__(self, group: Group, wire: Wire, groups: DynamoRendezvousControl, limit: float) -> None:
        self.group = group
        self.wire = wire
        self.found: list[dict[str, Any]] = []
        self._groups = groups
        self._limit = limit

    @property
    def ours(self) -> bool:
        """Whether it meets in DynamoDB."""
        return self.group.system.ours

    def happens(self, case: str, size: int, event: Callable[[], float]) -> None:
        """Make something happen, and wait for the next world.

        Args:
            case: what it is called.
            size: of that world.
            event: makes it happen, and says when it did.

        Raises `Over` where there is none within the limit, or nobody is left.
        """
        before = self.group.look()
        known, charged = worlds(before), self._charges()
        at = event()
        requests = self.wire.requests
        while (found := pause(self.group.look(), at, size, known)) is None:
            if not self.group.alive() or time.monotonic() - at > self._limit:
                self.keep(case, "never" if self.group.alive() else "died", after=round(time.monotonic() - at, 1))
                raise Over
            time.sleep(LOOK)
        used = {"requests": self.wire.requests - requests} if self.ours else {}
        grown = max(count - charged.get(who, 0) for who, count in self._charges().items())
        self.keep(case, "went on", **found.figures() | {"charged": grown}, **used)
        self.settle()

    def keep(self, case: str, outcome: str, **figures: Any) -> None:
        """What a case has come to."""
        self.found.append({"case": case, "outcome": outcome, "load": round(os.getloadavg()[0], 1), **figures})

    def settle(self, seconds: float = SETTLING) -> None:
        """Let the world work for so long."""
        time.sleep(seconds)
        self.group.look()

    def looks(self, *numbers: int) -> Callable[[], float]:
        """The event: so many agents have been started and begin to look for others."""
        return lambda: self.group.start(*numbers)

    def dies(self, agent: Agent) -> Callable[[], float]:
        """The event: an agent is lost with all its processes."""

        def event() -> float:
            at = time.monotonic()
            agent.kill()
            return at

        return event

    def signalled(self, number: int, *pids: int) -> Callable[[], float]:
        """The event: processes get a signal."""

        def event() -> float:
            at = time.monotonic()
            for pid in pids:
                os.kill(pid, number)
            return at

        return event

    def drained(self, agent: Agent, most: int) -> Callable[[], float]:
        """The event: the queue asks this node to leave, as it does before it stops its training job."""

        def event() -> float:
            at, place = time.monotonic(), self.group.place
            job = training_job(place, agent.number)
            self._groups.set(place.run, Control(epoch=1, least=place.least, most=most, drain=(job,), grace=60.0))
            return at

        return event

    def ended(self, agent: Agent) -> None:
        """Add to the last case how this agent has ended."""
        self.found[-1]["exit"] = agent.process.wait(60)

    def outage(self, case: str, seconds: float) -> None:
        """Cut the wire for so long, and give the group a while afterwards. Raises `Over` where nobody is left."""
        agents, began = len(self.group.alive()), time.monotonic()
        self.wire.cut()
        time.sleep(seconds)
        self.wire.mend()
        time.sleep(3 * SETTLING)
        lines = self.group.look()
        left = len(self.group.alive())
        gap = longest_gap(lines, began, time.monotonic())
        self.keep(case, "went on" if left == agents else "died", still=round(gap, 3), alive=left, agents=agents)
        if left < agents:
            raise Over

    def split(self) -> bool:
        """Whether two worlds have ever worked at once."""
        return at_once(self.group.look())

    def _charges(self) -> dict[int, int]:
        """Restarts that have been charged so far: by our engine to the job (0), else by torchrun to each agent."""
        if self.ours:
            group = self._groups.get(self.group.place.run)
            return {0: group.restarts if group is not None else 0}
        self.group.look()
        seen = {number: agent.world() for number, agent in self.group.agents.items()}
        return {number: world["charged"] for number, world in seen.items() if world is not None}
