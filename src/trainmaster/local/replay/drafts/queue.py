"""Replays the jobs of the past with one set of settings."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from trainmaster.domain.access.caller import Caller
from trainmaster.domain.errors import IllegalTransition
from trainmaster.domain.jobs.attempt_totals import NO_TOTALS
from trainmaster.domain.jobs.job import ENDED, Job, JobState
from trainmaster.domain.jobs.names import STAMP
from trainmaster.domain.policy.settings import Policy
from trainmaster.domain.shares.usage_totals import Rates, Span, UsageTotals, parts_of
from trainmaster.local.replay.drafts.jobs import PastJob
from trainmaster.local.replay.drafts.requests import plan_name
from trainmaster.local.replay.drafts.week import Week
from trainmaster.local.replay.virtual_queue import RESTART_SECONDS, VirtualQueue
from trainmaster.local.virtual_time import VirtualTime, instant_profile
from trainmaster.service import dependencies
from trainmaster.service.access import Access
from trainmaster.service.change import ApiContext, cancel

HORIZON = timedelta(days=28)
"""Time after the period in which jobs can still end; SageMaker's longest run."""
MAX_IDLE_STEPS = 500
"""Instants in a row at which nothing starts, ends or arrives, after which the rest never starts."""
Progress = Callable[[float], None]
"""Called with the finished part, from 0 to 1."""
_USER = Caller("arn:aws:iam::111122223333:user/replay")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOutcome:
    """The outcome of a job in a replay.

    Attributes:
        wait: seconds from its entry into the queue to its first start, without times in which it was held; None if it
            has not started, or worked already when the period began.
        completion: seconds from its submission to its end; None if it has not ended, or was cancelled before its start.
        preemptions: number of its preemptions.
        lost_instance_seconds: work that was done again, and restarts.
        dollars: by the prices of pools and types.
    """

    past: PastJob
    wait: float | None
    completion: float | None
    preemptions: int
    lost_instance_seconds: float
    dollars: float


class _NoPublisher:
    """A publisher that wakes no manager: the virtual queue runs its passes itself."""

    def wake(self, follows: int) -> None:
        """Do nothing."""

    def set_aside(self, message: str, reason: str) -> None:
        """Do nothing."""


class DraftReplay(VirtualQueue):
    """One replay of a period with some settings."""

    def __init__(self, week: Week, policy: Policy, on_progress: Progress = lambda _: None) -> None:
        profile = replace(instant_profile(RESTART_SECONDS), limited=True)
        super().__init__(week.pools, policy, profile, start=week.since)
        self._week, self._on_progress = week, on_progress
        self.store.save_catalogue(week.catalogue)
        self._jobs = {each.job.name: each for each in week.jobs}
        self._open = set(self._jobs)
        self._ended, self._cancelled = 0, False
        self._rates = Rates(week.pools, week.catalogue)
        self._context_of_user = ApiContext(self.store, _NoPublisher(), VirtualTime(self.clock), Access(admins=("*",)))
        self.simulator.profiles.pace = self._pace
        self._arrivals = list(reversed(week.jobs))
        self._later = list(self._events())
        heapq.heapify(self._later)

    def run(self) -> list[JobOutcome]:
        """Run until the last job has ended, or until none can; return the outcomes in order of arrival."""
        for pool in self._week.pools.values():
            if pool.plan_arn is not None:
                block = (pool.starts_at or self._week.since, pool.ends_at or self._week.at + HORIZON)
                self.simulator.add_plan(plan_name(pool.plan_arn), pool.instance_type, pool.cap, block)
        self._continue_work()
        idle, seen = 0, -1
        while self._open and (time := self.next_time()) is not None and time <= self._week.at + HORIZON:
            self.step()
            self._close_ended()
            idle = idle + 1 if self._is_idle() and len(self._open) == seen else 0
            seen = len(self._open)
            if idle > MAX_IDLE_STEPS:
                break
        return [self._outcome(each) for each in self._week.jobs]

    def next_arrival(self) -> datetime | None:
        """Return the time of the next submission, cancellation, or due time of a held job."""
        times = [self._arrivals[-1].arrives] if self._arrivals else []
        return min([*times, *(event[0] for event in self._later[:1])], default=None)

    def admit_due(self, time: datetime) -> bool:
        """Submit and cancel the jobs that are due, and enqueue those whose start time has come."""
        acted = False
        while self._arrivals and self._arrivals[-1].arrives <= time:
            self._submit(self._arrivals.pop(), time)
            acted = True
        while self._later and self._later[0][0] <= time:
            _, name, is_cancelled = heapq.heappop(self._later)
            if is_cancelled:
                self._cancelled = True
                with suppress(IllegalTransition):  # it has ended
                    cancel(self._context_of_user, _USER, name)
            else:
                dependencies.enqueue_due(self.store, time)
            acted = True
        return acted

    def _continue_work(self) -> None:
        """Start the jobs that worked when the period began, before others can take their place."""
        if not (self._arrivals and self._arrivals[-1].worked):
            return
        while self._arrivals and self._arrivals[-1].worked:
            self._submit(self._arrivals.pop(), self._week.since)
        self._run_passes(self._week.since)

    def _events(self) -> Iterator[tuple[datetime, str, bool]]:
        """Yield what happens to jobs after their arrival: time, name, whether it is a cancellation."""
        for each in self._week.jobs:
            if each.cancelled_at is not None:
                yield max(each.cancelled_at, each.arrives), each.job.name, True
            due = each.job.not_before
            if due is not None and due > each.arrives:
                yield due, each.job.name, False

    def _submit(self, past: PastJob, now: datetime) -> None:
        job, _ = dependencies.resolve_parents(self.store, past.job, past.request, now)
        dependencies.apply_parent_ends(self.store, self.store.submit(job, past.request), now)

    def _pace(self, request: Mapping[str, Any]) -> float:
        """Return the pace of an elastic job's attempt: work is assumed to scale with the instances."""
        elastic = self._jobs[request["TrainingJobName"].partition(STAMP)[0]].job.elastic
        return 1.0 if elastic is None else request["ResourceConfig"]["InstanceCount"] / elastic.min_instances

    def _is_idle(self) -> bool:
        return not self._arrivals and not self._later and self.simulator.next_time() is None

    def _close_ended(self) -> None:
        """Note the jobs that have ended, also those that were cancelled or failed with a parent."""
        if len(self.done) == self._ended and not self._cancelled:
            return
        self._ended, self._cancelled = len(self.done), False
        self._open = {name for name in self._open if not self._has_ended(name)}
        self._on_progress(1 - len(self._open) / max(len(self._jobs), 1))

    def _has_ended(self, name: str) -> bool:
        job = self.store.find(name)
        return job is not None and job.state in ENDED

    def _outcome(self, past: PastJob) -> JobOutcome:
        job, now = self.store.find(past.job.name) or past.job, self.clock.now()
        attempts = self.attempts_of(job)
        whole = replace(
            job, past=tuple(attempts[:-1]), attempt=attempts[-1] if attempts else None, attempt_totals=NO_TOTALS
        )
        span = Span(self._week.since, now + timedelta(seconds=1))
        total = sum((part.totals for part in parts_of(whole, span, self._rates, now)), start=UsageTotals())
        began = attempts[0].created_at if attempts else None
        ended = job.ended_at if attempts or job.state is JobState.COMPLETED else None
        return JobOutcome(
            past=past,
            wait=None if began is None or past.worked else (began - job.entry_time).total_seconds(),
            completion=None if ended is None else (ended - past.job.entry_time).total_seconds(),
            preemptions=total.preemptions,
            lost_instance_seconds=_lost(past, whole),
            dollars=total.dollars,
        )


def _lost(past: PastJob, job: Job) -> float:
    """Return the instance-seconds of a finished job beyond its work."""
    if job.state not in (JobState.COMPLETED, JobState.FAILED) or job.attempt is None:
        return 0.0
    if job.elastic is not None:
        return max(job.served - past.work * job.elastic.min_instances, 0.0)
    # Times are rounded to microseconds, so smaller differences are no loss.
    return max(round(job.at_work - past.work, 3), 0.0) * job.attempt.size
