"""Jobs that are groups of training jobs, in the simulator: the base works at the pace of all that are at work with it.

A member is a training job of one instance that works as long as nobody stops it. Whenever one comes to work or leaves,
the base pauses for a resize, as the group meets anew. It must not decide who comes or goes.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from benchmarks.elastic.results import Span
from trainmaster.domain.jobs.names import STAMP
from trainmaster.local.simulator import SageMakerSimulator
from trainmaster.local.virtual_time import seconds_at

FOREVER_SECONDS = 1e9
_MEMBER = re.compile(rf"^(?P<job>.+){STAMP}(?P<attempt>\d+)-m\d+$")


class Members:
    """Who is at work with which base.

    Args:
        simulator: that runs them.
        pause: seconds for which a change stops the base.
    """

    def __init__(self, simulator: SageMakerSimulator, pause: float) -> None:
        self._simulator = simulator
        self._pause = pause
        self._known: dict[str, set[str]] = defaultdict(set)
        self._at_work: dict[str, set[str]] = defaultdict(set)

    def at_work(self, base: str) -> int:
        """How many members work with a training job."""
        return len(self._at_work[base])

    def note(self, name: str) -> None:
        """A training job has changed; one that is no member changes nothing."""
        base = base_of(name)
        if base is None:
            return
        self._known[base].add(name)
        works = self._simulator.call("DescribeTrainingJob", TrainingJobName=name)["SecondaryStatus"] == "Training"
        if works != (name in self._at_work[base]):
            self._at_work[base] ^= {name}
            begun = self._simulator.call("DescribeTrainingJob", TrainingJobName=base).get("TrainingStartTime")
            # Those that come with their base have nothing to interrupt.
            fresh = begun is None or begun >= self._simulator.now()
            self._simulator.change_pace(base, 0.0 if fresh else self._pause)

    def spans(self, base: str) -> list[Span]:
        """What a base and its members held together: a span for each change of their number."""
        changes = defaultdict[float, int](int)
        for name in (base, *self._known[base]):
            told = self._simulator.call("DescribeTrainingJob", TrainingJobName=name)
            count = told["ResourceConfig"]["InstanceCount"]
            changes[seconds_at(told["CreationTime"])] += count
            changes[seconds_at(told["TrainingEndTime"])] -= count
        return list(_spans(changes))


def base_of(name: str) -> str | None:
    """The training job that a member works with; None for one that is no member."""
    found = _MEMBER.match(name)
    if found is None:
        return None
    # The first attempt has the job's own name.
    return found["job"] if found["attempt"] == "1" else f"{found['job']}{STAMP}{found['attempt']}"


def _spans(changes: dict[float, int]) -> Iterator[Span]:
    times = [time for time in sorted(changes) if changes[time]]
    size = 0
    for begin, end in pairwise(times):
        size += changes[begin]
        yield Span(begin, end, size)
