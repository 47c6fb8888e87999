"""The shipped queue over a trace with elastic jobs: planner, service and store are those that are deployed.

A job is elastic by the tags that a user would give, is resized by the hook `restart`, and works at the pace of the
instances that its attempt has. An attempt that follows a resize takes that much longer to start, any other that follows
one pays for a restart. It must not decide anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from typing import Any

from benchmarks.elastic.course import Course, Span
from benchmarks.elastic.workload import SizedJob
from benchmarks.elastic.yard import Terms
from trainmaster.domain.attempt import Attempt, Outcome
from trainmaster.domain.job import Job
from trainmaster.domain.names import STAMP
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.policy import Policy
from trainmaster.local.memory import MemoryStore
from trainmaster.local.replay.queue import Replay
from trainmaster.local.replay.queue import Terms as QueueTerms
from trainmaster.local.replay.requests import index_of
from trainmaster.local.simulator import Profile, VirtualClock
from trainmaster.local.virtual import seconds_at

SCALING_SECONDS = 60
"""A running job grows once its size has lasted for so long (HyperPod's example of `scalingTimeoutInSeconds`)."""


class ElasticReplay:
    """One run of the queue.

    Args:
        jobs: in order of submission, none larger than the pool.
        terms: the pool, and what changes cost.
        policy: the queue's settings.
    """

    def __init__(self, jobs: Sequence[SizedJob], terms: Terms, policy: Policy) -> None:
        self._jobs = jobs
        self._terms = terms
        queue_terms = QueueTerms(cap=terms.cap, policy=policy, restart_cost=terms.restart_cost)
        self._replay = _Elastic(jobs, queue_terms)
        self._replay.simulator.scripts.pace = self._pace
        self._replay.simulator.scripts.tailor = self._tailored

    def play(self) -> list[Course]:
        """Run to the end. Raises `ReplayFailed`."""
        self._replay.play()
        return [self._course(index) for index in range(len(self._jobs))]

    def _pace(self, request: Mapping[str, Any]) -> float:
        size = request["ResourceConfig"]["InstanceCount"]
        return self._jobs[index_of(_job_name(request))].pace(size)

    def _tailored(self, request: Mapping[str, Any], profile: Profile) -> Profile:
        """What going on costs: a resize as the time until it is at work, which the queue can measure."""
        stored = self._replay.store.find(_job_name(request))
        if stored is None or not stored.past or stored.past[-1].outcome is not Outcome.RESIZED:
            return profile
        return replace(profile, starting_seconds=self._terms.resize_cost, restarting_seconds=0)

    def _cost_after(self, attempt: Attempt) -> float:
        return self._terms.resize_cost if attempt.outcome is Outcome.RESIZED else self._terms.restart_cost

    def _course(self, index: int) -> Course:
        attempts = [each for each in self._replay.completed(index).attempts if each.outcome is not Outcome.RETURNED]
        spans = tuple(_span(attempt) for attempt in attempts)
        lost = 0.0
        for before, after in pairwise(attempts):
            span = _span(after)
            lost += span.size * min(self._cost_after(before), span.end - span.start)
        # What an attempt did not hold for any time is no part of its course.
        held = tuple(span for span in spans if span.end > span.start) or spans[-1:]
        return Course(self._jobs[index], held, lost)


class Saving(MemoryStore):
    """A store that knows of every running job that its work is saved as of now.

    The simulated scripts save when they are told to stop, so a stop loses nothing. In AWS the tick looks at each job's
    checkpoints every five minutes; here there is no S3 to look at.

    Args:
        clock: tells the time.
        given: as for the store in memory.
    """

    def __init__(self, clock: VirtualClock, **given: Any) -> None:
        super().__init__(**given)
        self._clock = clock

    def begin_pass(self) -> Snapshot:
        """As it is, with the checkpoints that a look would find."""
        snapshot, now = super().begin_pass(), self._clock.now()
        return replace(snapshot, active=tuple(_saved(job, now) for job in snapshot.active))


class _Elastic(Replay):
    """A replay whose elastic jobs are submitted with the tags that make them so."""

    def __init__(self, jobs: Sequence[SizedJob], terms: QueueTerms) -> None:
        super().__init__([job.trace for job in jobs], terms, make_store=lambda **given: Saving(self.clock, **given))
        self._sized = jobs

    def request(self, index: int) -> dict[str, Any]:
        """The trace's job, with its sizes."""
        made, sizes = super().request(index), self._sized[index].sizes
        if len(sizes) == 1:
            return made
        options = {"min-instances": sizes[0], "max-instances": sizes[-1], "scaling-timeout": SCALING_SECONDS}
        return made | {"Tags": [{"Key": f"trainmaster:{key}", "Value": str(value)} for key, value in options.items()]}


def _saved(job: Job, now: datetime) -> Job:
    attempt = job.attempt
    if attempt is None or attempt.started_at is None or attempt.started_at >= now:
        return job
    return replace(job, attempt=replace(attempt, saved_at=now))


def _job_name(request: Mapping[str, Any]) -> str:
    name: str = request["TrainingJobName"]
    return name.partition(STAMP)[0]


def _span(attempt: Attempt) -> Span:
    return Span(seconds_at(attempt.created_at), seconds_at(attempt.ended_at or attempt.created_at), attempt.size)
