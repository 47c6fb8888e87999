"""Runs cases on one group, one after another, and records the results."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from benchmarks.rendezvous.group import POLL_SECONDS, Agent, Group
from benchmarks.rendezvous.pauses import longest_gap, overlapped, pause, worlds_with_steps
from benchmarks.rendezvous.proxy import Proxy
from benchmarks.rendezvous.systems import training_job
from trainmaster.adapters.dynamodb.rendezvous.control import DynamoRendezvousControl
from trainmaster.domain.elastic.rendezvous import Control, Run

SETTLING = 2.5
"""Seconds that a world works before the next case: longer than any engine caches."""


class GroupEnded(Exception):
    """The group has no further world."""


class Experiment:
    """A group, the proxy of its store, and the queue's control.

    Args:
        group: the group.
        proxy: counts requests; an outage cuts it.
        groups: the queue's control of the rendezvous.
        limit: seconds after which a world is considered never to come.
    """

    def __init__(self, group: Group, proxy: Proxy, groups: DynamoRendezvousControl, limit: float) -> None:
        self.group = group
        self.proxy = proxy
        self.found: list[dict[str, Any]] = []
        self._groups = groups
        self._limit = limit

    @property
    def ours(self) -> bool:
        """True if the group meets in DynamoDB."""
        return self.group.system.ours

    def run_case(self, case: str, size: int, event: Callable[[], float]) -> None:
        """Cause an event, and wait for the next world.

        Args:
            case: name of the case.
            size: size of the next world.
            event: causes the event, and returns its time.

        Raises `GroupEnded` if there is none within the limit, or no agent is left.
        """
        before = self.group.read_output()
        known, charged = worlds_with_steps(before), self._charges()
        at = event()
        requests = self.proxy.requests
        while (found := pause(self.group.read_output(), at, size, known)) is None:
            if not self.group.alive() or time.monotonic() - at > self._limit:
                self.record(case, "never" if self.group.alive() else "died", after=round(time.monotonic() - at, 1))
                raise GroupEnded
            time.sleep(POLL_SECONDS)
        used = {"requests": self.proxy.requests - requests} if self.ours else {}
        grown = max(count - charged.get(who, 0) for who, count in self._charges().items())
        self.record(case, "went on", **found.figures() | {"charged": grown}, **used)
        self.settle()

    def record(self, case: str, outcome: str, **figures: Any) -> None:
        """Record the result of a case."""
        self.found.append({"case": case, "outcome": outcome, "load": round(os.getloadavg()[0], 1), **figures})

    def settle(self, seconds: float = SETTLING) -> None:
        """Let the world work for this many seconds."""
        time.sleep(seconds)
        self.group.read_output()

    def agents_started(self, *numbers: int) -> Callable[[], float]:
        """Return the event that agents start."""
        return lambda: self.group.start(*numbers)

    def agent_killed(self, agent: Agent) -> Callable[[], float]:
        """Return the event that an agent is lost with all its processes."""

        def event() -> float:
            at = time.monotonic()
            agent.kill()
            return at

        return event

    def processes_signaled(self, number: int, *pids: int) -> Callable[[], float]:
        """Return the event that processes get a signal."""

        def event() -> float:
            at = time.monotonic()
            for pid in pids:
                os.kill(pid, number)
            return at

        return event

    def agent_drained(self, agent: Agent, max_nodes: int) -> Callable[[], float]:
        """Return the event that the queue drains this node, as before it stops its training job."""

        def event() -> float:
            at, place = time.monotonic(), self.group.place
            job = training_job(place, agent.number)
            self._groups.set(
                Run(place.run, ""),
                Control(epoch=1, min_nodes=place.min_nodes, max_nodes=max_nodes, drain=(job,), grace=60.0),
            )
            return at

        return event

    def record_exit(self, agent: Agent) -> None:
        """Add the agent's exit code to the last case."""
        self.found[-1]["exit"] = agent.process.wait(60)

    def outage(self, case: str, seconds: float) -> None:
        """Cut the proxy for this many seconds, and wait afterwards. Raises `GroupEnded` if an agent is lost."""
        agents, began = len(self.group.alive()), time.monotonic()
        self.proxy.cut()
        time.sleep(seconds)
        self.proxy.restore()
        time.sleep(3 * SETTLING)
        lines = self.group.read_output()
        left = len(self.group.alive())
        gap = longest_gap(lines, began, time.monotonic())
        self.record(case, "went on" if left == agents else "died", still=round(gap, 3), alive=left, agents=agents)
        if left < agents:
            raise GroupEnded

    def split(self) -> bool:
        """Return True if two worlds have worked at once."""
        return overlapped(self.group.read_output())

    def _charges(self) -> dict[int, int]:
        """Return the restarts charged so far: by Trainmaster to the job (0), by torchrun to each agent."""
        if self.ours:
            group = self._groups.get(Run(self.group.place.run, ""))
            return {0: group.restarts if group is not None else 0}
        self.group.read_output()
        seen = {number: agent.world() for number, agent in self.group.agents.items()}
        return {number: world["charged"] for number, world in seen.items() if world is not None}
