"""The article's example as data: submitted jobs and expected tables (section "Use case example")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

INSTANCES = {"ml.p5.48xlarge": 2}
"""The article's two instances."""


class UnexpectedState(Exception):
    """The queue did not reach an expected state."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A job of the scenario. One step takes a fifth of a second."""

    name: str
    priority: int
    steps: int


@dataclass(frozen=True, slots=True)
class Scene:
    """Jobs to submit, and the states of all jobs in the queue at the end of the scene."""

    caption: str
    submitted: tuple[Submission, ...]
    states: Mapping[str, str]

    def slowed(self, factor: float) -> Scene:
        """Return the scene with jobs that take `factor` times as long."""
        return replace(self, submitted=tuple(replace(job, steps=round(job.steps * factor)) for job in self.submitted))


# job2 ends first, then job4, long enough apart to show each table; a busy machine gets longer jobs (`Scene.slowed`).
JOB1 = Submission("job1", priority=1, steps=90)
JOB2 = Submission("job2", priority=2, steps=100)
JOB3 = Submission("job3", priority=1, steps=25)
JOB4 = Submission("job4", priority=3, steps=130)

SCENES = (
    Scene(
        "job1 and job2 run on the two instances; job3 waits",
        (JOB1, JOB2, JOB3),
        {"job1": "running", "job2": "running", "job3": "pending"},
    ),
    Scene(
        "job4 has the highest priority: job1 was preempted for it, and keeps its place in the queue",
        (JOB4,),
        {"job4": "running", "job2": "running", "job1": "preempted", "job3": "pending"},
    ),
    Scene(
        "job2 is completed: job1 resumes from its checkpoint, before job3",
        (),
        {"job4": "running", "job1": "running", "job3": "pending"},
    ),
    Scene("All jobs are completed: the queue is empty", (), {}),
)
