"""Jobs that consist of a base and members, in the simulator: the base works at the pace of all of them.

A member is a training job of one instance that runs until it is stopped. Whenever a member starts to work or leaves,
the base pauses for a resize, since the group meets again.
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
    """The running members of each base.

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
        """Return the number of members that work with a training job."""
        return len(self._at_work[base])

    def note(self, name: str) -> None:
        """Process the change of a training job, if it is a member."""
        base = base_of(name)
        if base is None:
            return
        self._known[base].add(name)
        works = self._simulator.call("DescribeTrainingJob", TrainingJobName=name)["SecondaryStatus"] == "Training"
        if works != (name in self._at_work[base]):
            self._at_work[base] ^= {name}
            begun = self._simulator.call("DescribeTrainingJob", TrainingJobName=base).get("TrainingStartTime")
            # Members that start with their base do not interrupt it.
            fresh = begun is None or begun >= self._simulator.now()
            self._simulator.change_pace(base, 0.0 if fresh else self._pause)

    def spans(self, base: str) -> list[Span]:
        """Return the instances that a base and its members held together, as a span for each number."""
        changes = defaultdict[float, int](int)
        for name in (base, *self._known[base]):
            description = self._simulator.call("DescribeTrainingJob", TrainingJobName=name)
            count = description["ResourceConfig"]["InstanceCount"]
            changes[seconds_at(description["CreationTime"])] += count
            changes[seconds_at(description["TrainingEndTime"])] -= count
        return list(_spans(changes))


def base_of(name: str) -> str | None:
    """Return the base of a member; None for other training jobs."""
    found = _MEMBER.match(name)
    if found is None:
        return None
    # The first attempt has the name of the job.
    return found["job"] if found["attempt"] == "1" else f"{found['job']}{STAMP}{found['attempt']}"


def _spans(changes: dict[float, int]) -> Iterator[Span]:
    times = [time for time in sorted(changes) if changes[time]]
    size = 0
    for begin, end in pairwise(times):
        size += changes[begin]
        yield Span(begin, end, size)
