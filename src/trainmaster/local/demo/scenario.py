"""The article's example as data: which jobs are submitted, and which tables are to come of it.

Values only (article, section "Use case example").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

INSTANCES = {"ml.p5.48xlarge": 2}
"""The article's two instances."""


class UnexpectedState(Exception):
    """The queue did not do what a story tells."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A job of the story. One step takes a fifth of a second."""

    name: str
    priority: int
    steps: int


@dataclass(frozen=True, slots=True)
class Scene:
    """What is submitted, and the state of each job in the queue that ends the scene."""

    caption: str
    submitted: tuple[Submission, ...]
    states: Mapping[str, str]


# job2 ends first, then job4: long enough apart for a slow machine to show each table.
JOB1 = Submission("job1", priority=1, steps=90)
JOB2 = Submission("job2", priority=2, steps=100)
JOB3 = Submission("job3", priority=1, steps=25)
JOB4 = Submission("job4", priority=3, steps=130)

SCENES = (
    Scene(
        "job1 and job2 take the two instances; job3 has to wait",
        (JOB1, JOB2, JOB3),
        {"job1": "running", "job2": "running", "job3": "pending"},
    ),
    Scene(
        "job4 comes before all of them: job1 was stopped for it, and keeps its place",
        (JOB4,),
        {"job4": "running", "job2": "running", "job1": "preempted", "job3": "pending"},
    ),
    Scene(
        "job2 is done: job1 goes on from its checkpoint, before job3",
        (),
        {"job4": "running", "job1": "running", "job3": "pending"},
    ),
    Scene("All are done: the queue is empty", (), {}),
)
