"""Jobs of the past as a replay submits them: with their work, as far as the API tells it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from statistics import median
from typing import Any

from trainmaster.domain.access.caller import Caller
from trainmaster.domain.capacity.catalogue import Catalogue
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.compat import parse_iso
from trainmaster.domain.elastic.sizes import Hook
from trainmaster.domain.errors import Refused
from trainmaster.domain.jobs.attempt import Attempt
from trainmaster.domain.jobs.job import ACTIVE, ENDED, Job, JobState
from trainmaster.domain.jobs.run_times import History
from trainmaster.domain.requests.elastic.bounds import elastic_of
from trainmaster.domain.requests.options import Options
from trainmaster.domain.requests.pools import demand_in
from trainmaster.domain.requests.tags import options_of
from trainmaster.local.replay.drafts.requests import Request, replayed_request, with_profile
from trainmaster.local.replay.virtual_queue import RESTART_SECONDS
from trainmaster.local.simulator import Outcome, Profile
from trainmaster.service.admission.build_job import build_job

UNKNOWN_SECONDS = 3_600.0
"""Run time of a job that has not run, if no job has ended from which to estimate it."""
_RELEASED = "released by "
View = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Run:
    """A time in which a job worked in the period, and the instances that it had."""

    since: datetime
    until: datetime
    size: int

    @property
    def seconds(self) -> float:
        """Length of the run."""
        return (self.until - self.since).total_seconds()


@dataclass(frozen=True, slots=True, kw_only=True)
class PastJob:
    """A job of the past.

    Attributes:
        job: as it enters the queue.
        request: its request, with the variables of the simulator.
        arrives: when it enters the replay.
        worked: whether it worked at the beginning of the period, so that its wait is not one of the replay.
        work: seconds of work, of an elastic job at its smallest size.
        cancelled_at: when its user cancelled it, if it had not started; None for other jobs.
        recorded_wait: seconds that it really waited for its first start; None if it has not started.
    """

    job: Job
    request: Request
    arrives: datetime
    worked: bool
    work: float
    cancelled_at: datetime | None
    recorded_wait: float | None


def past_jobs(
    views: Sequence[View], pools: Mapping[str, Pool], catalogue: Catalogue, since: datetime, at: datetime
) -> tuple[tuple[PastJob, ...], int]:
    """Return the jobs in order of arrival, and the number of those that cannot be submitted to these pools."""
    found = [_Record(view, job, since, at) for view in views if (job := _job(view, pools, catalogue)) is not None]
    history = _learned(found)
    startup = median(seconds) if (seconds := [each for record in found for each in record.startups]) else 0.0
    made = (record.past_job(history, startup) for record in found)
    return tuple(_after_parents(sorted(made, key=_by_arrival))), len(views) - len(found)


def _by_arrival(each: PastJob) -> tuple[datetime, bool, datetime, str]:
    return each.arrives, not each.worked, each.job.entry_time, each.job.name


def _after_parents(jobs: Iterable[PastJob]) -> list[PastJob]:
    """Return the jobs in order of arrival, none before a parent; those that are not replayed are no parents."""
    arrivals: dict[str, datetime] = {}
    result: list[PastJob] = []
    for each in jobs:
        parents = tuple(name for name in each.job.after if name in arrivals)
        arrivals[each.job.name] = max([each.arrives, *(arrivals[name] for name in parents)])
        result.append(replace(each, job=replace(each.job, after=parents), arrives=arrivals[each.job.name]))
    return sorted(result, key=_by_arrival)


def _job(view: View, pools: Mapping[str, Pool], catalogue: Catalogue) -> Job | None:
    """Return the job of a view as it enters the queue; None if it cannot be submitted to these pools.

    Elastic jobs are resized by restarts, since their nodes are not simulated.
    """
    request = replayed_request(view["jobName"], view["jobDetails"])
    try:
        options = options_of(request)
        job = _built(view, request, options, pools, catalogue)
    except Refused:
        return None
    elastic = None if job.elastic is None else replace(job.elastic, hook=Hook.RESTART, target="")
    return replace(
        job, priority=view["priority"], share=view["share"], preemptible=view["preemptible"], elastic=elastic, notify=()
    )


def _built(view: View, request: Request, options: Options, pools: Mapping[str, Pool], catalogue: Catalogue) -> Job:
    """Return the job that admission would build, without the rules on who may submit what. Raises `Refused`."""
    elastic = elastic_of(request, options)
    size = None if elastic is None else elastic.min_instances
    demand = demand_in(request, options.pools, pools, options.resources, catalogue, instances=size)
    caller = Caller(view["submittedBy"])
    return build_job(request, options, demand, caller, _submitted_at(view), elastic=elastic)


def _submitted_at(view: View) -> datetime:
    """Return when a job was submitted; jobs that are held at first enter the queue later."""
    first = view["history"][0] if view["history"] else None
    return parse_iso(first["at"] if first is not None and first["from"] is None else view["entryTime"])


class _Record:
    """A job as the API tells of it: its runs in the period, and the work that it did in them."""

    def __init__(self, view: View, job: Job, since: datetime, at: datetime) -> None:
        self.job, self._view, self._since, self._at = job, view, since, at
        self._state = JobState(view["jobState"])
        started = [attempt for attempt in view["attempts"] if attempt["startedAt"] is not None]
        self.startups = [_seconds(attempt["createdAt"], attempt["startedAt"]) for attempt in started]
        self.runs = [run for attempt in started if (run := self._run(attempt)).until > since]
        self._worked_before = any(parse_iso(attempt["startedAt"]) < since for attempt in started)

    @property
    def arrives(self) -> datetime:
        """Time of its arrival: its entry, or its release by a person if it had not run before."""
        released = [parse_iso(line["at"]) for line in self._view["history"] if line["reason"].startswith(_RELEASED)]
        first = min((run.since for run in self.runs), default=None)
        late = [time for time in released if first is None or time <= first]
        return max(self.job.entry_time, self._since, *late[-1:])

    @property
    def work(self) -> float:
        """Seconds of work that it did in the period and kept; of an elastic job at its smallest size.

        A job that writes checkpoints loses the time of a restart with each attempt after the first, another one all
        attempts but the last.
        """
        if not self.runs:
            return 0.0
        if not self.job.checkpointed:
            return self._at_smallest(self.runs[-1], self.runs[-1].seconds)
        first, *later = self.runs
        parts = [self._at_smallest(run, max(run.seconds - RESTART_SECONDS, 0.0)) for run in later]
        begun = first.seconds - (RESTART_SECONDS if self._worked_before and first.since > self._since else 0.0)
        return self._at_smallest(first, max(begun, 0.0)) + sum(parts) + self._unlisted()

    @property
    def has_ended(self) -> bool:
        """True if its run time is known: it has ended after it had worked."""
        return self._state in ENDED and bool(self.runs)

    def past_job(self, history: History, startup: float) -> PastJob:
        """Return the job as it is replayed."""
        work = self.work if self.has_ended else self._whole_work(history)
        profile = Profile(
            training_seconds=work,
            starting_seconds=median(self.startups) if self.startups else startup,
            outcome=Outcome.FAILED if self.has_ended and self._state is not JobState.COMPLETED else Outcome.COMPLETED,
            failure_reason=self._failure,
        )
        gone = self._state in ENDED and not self.runs
        plain = replayed_request(self.job.name, self._view["jobDetails"])
        return PastJob(
            job=self.job,
            request=with_profile(plain, profile, checkpointed=self.job.checkpointed),
            arrives=self.arrives,
            worked=any(run.since == self._since for run in self.runs) and self.job.entry_time < self._since,
            work=work,
            cancelled_at=parse_iso(self._view["endedAt"]) if gone else None,
            recorded_wait=self._wait(),
        )

    @property
    def _failure(self) -> str:
        """Reason of the failure; a stop counts as one, so that jobs that run after it do not."""
        reason = self._view["failureReason"] if self._state is JobState.FAILED else None
        return reason or "AlgorithmError: stopped by its user"

    def _run(self, attempt: View) -> Run:
        since, until = max(parse_iso(attempt["startedAt"]), self._since), attempt["endedAt"]
        return Run(since, self._at if until is None else parse_iso(until), sum(attempt["units"].values()))

    def _at_smallest(self, run: Run, seconds: float) -> float:
        return seconds if self.job.elastic is None else seconds * run.size / self.job.elastic.min_instances

    def _unlisted(self) -> float:
        """Seconds of work of the oldest attempts, which the API tells only together."""
        earlier = self._view["earlierAttempts"]
        if earlier is None or parse_iso(earlier["beganAt"]) < self._since:
            return 0.0
        elastic = self.job.elastic
        if elastic is not None:
            return float(earlier["instanceSeconds"]) / elastic.min_instances
        return float(earlier["atWorkSeconds"])

    def _whole_work(self, history: History) -> float:
        """Return the expected work of a job that has not ended, as the queue itself estimates it."""
        expected, worked = self._view["expectedEnd"], self.work
        if self._state in ACTIVE and expected is not None and self.runs:
            left = max((parse_iso(expected) - self._at).total_seconds(), 0.0)
            return worked + self._at_smallest(self.runs[-1], left)
        estimate = history.run_time(self.job, worked, 0.5)
        most = self.job.max_runtime.total_seconds()
        return max(min(UNKNOWN_SECONDS if estimate is None else estimate, most), worked, 1.0)

    def _wait(self) -> float | None:
        earlier, attempts = self._view["earlierAttempts"], self._view["attempts"]
        began = earlier["beganAt"] if earlier is not None else attempts[0]["createdAt"] if attempts else None
        return None if began is None else max(_seconds(self._view["entryTime"], began), 0.0)


def _learned(records: Iterable[_Record]) -> History:
    """Return what the queue knows of run times from the jobs that have ended."""
    history = History()
    for record in records:
        if record.has_ended and record.work > 0:
            job, end = record.job, record.job.entry_time + timedelta(seconds=record.work)
            size = 1 if job.elastic is None else job.elastic.min_instances
            ran = Attempt(
                number=1,
                training_job_name=job.name,
                units={job.name: size},
                created_at=job.entry_time,
                started_at=job.entry_time,
                ended_at=end,
            )
            history = history.after(replace(job, state=JobState.COMPLETED, attempt=ran, ended_at=end))
    return history


def _seconds(since: str, until: str) -> float:
    return (parse_iso(until) - parse_iso(since)).total_seconds()
