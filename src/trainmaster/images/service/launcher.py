"""Launches, stops and observes attempts of image jobs, as runs of regions.

The verbs are those of training jobs, so image jobs are started, preempted, stopped and observed alike. Each verb can be
repeated. With every tick, `reconcile` dispatches regions again that dead workers have left.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from trainmaster.domain.access.caller import Caller
from trainmaster.domain.errors import AccessDenied, InvalidRequest, NotPermitted, RequestRefused, ServiceError
from trainmaster.domain.jobs.attempt import Attempt
from trainmaster.domain.jobs.job import Job, JobState
from trainmaster.domain.jobs.observation import Observation
from trainmaster.images.domain.concurrency import called, concurrency_of, narrowed_concurrency, widened_concurrency
from trainmaster.images.domain.endpoint import Limits
from trainmaster.images.domain.progress import DEAD_AFTER, begun, dispatchable, exhausted, observed, silent
from trainmaster.images.domain.tiling import regions
from trainmaster.images.domain.work import Claim, ImageWork, Run, image_work, run_parts
from trainmaster.images.ports import ImageIntake, RegionQueue, Runs
from trainmaster.images.service.resource_access import EVERYTHING, ResourceAccess
from trainmaster.ports.runtime import Clock
from trainmaster.ports.sagemaker import CreateResult
from trainmaster.ports.store import Store

log = logging.getLogger(__name__)

MANAGER: Final = "manager"
"""Worker of the claim that fails a region whose workers die."""


@dataclass(frozen=True, slots=True)
class ImageLauncher:
    """Runs of image jobs.

    Args:
        store: reads the jobs of runs.
        runs: the regions and their workers.
        queue: dispatches regions to workers.
        intake: the dead-letter queue for requests of failed jobs.
        clock: the time.
        limits: the deployment's settings.
        resources: the models, roles, images and outputs that each caller may use.
    """

    store: Store
    runs: Runs
    queue: RegionQueue
    intake: ImageIntake
    clock: Clock
    limits: Limits
    resources: ResourceAccess = EVERYTHING

    def objection(self, job: Job) -> str | None:
        """Return what of the request the job's submitter may not use, or no longer; None if they may use all of it.

        Raises `Throttled`, `Unavailable`.
        """
        if not self.resources.rules:
            return None
        try:
            self.resources.check(self.store.request_of(job.name), Caller(job.submitted_by))
        except (AccessDenied, InvalidRequest) as error:
            return error.message
        return None

    def create(self, job: Job, attempt: Attempt) -> CreateResult:
        """Create the run and dispatch its regions, at most as many at once as the held requests allow.

        Existing records stay; regions that were not begun are dispatched again, since an earlier call may have ended
        before it did so. Raises `Throttled`, `Unavailable`, `NotPermitted`.
        """
        work = _work(job)
        concurrency = concurrency_of(work, sum(attempt.units.values()))
        run = self.runs.create(job.name, attempt.number, regions(work.part, work.cut), concurrency=concurrency)
        if run.attempt != attempt.number:
            return CreateResult.ALREADY_THERE
        if not run.stopped:
            self.queue.dispatch(job.name, run.attempt, dispatchable(run))
        return CreateResult.ALREADY_THERE if begun(run) else CreateResult.NEW

    def stop(self, run_name: str) -> bool:
        """Ask the run's workers to stop; return False if none is at work, so that the run has ended.

        Raises `Throttled`, `Unavailable`, `NotPermitted`.
        """
        job, number = run_parts(run_name)
        self.runs.stop(job, number)
        seen = self.describe(run_name)
        return seen is not None and not seen.terminal

    def describe(self, run_name: str) -> Observation | None:
        """Return the observation of a run; None without one. Raises `Throttled`, `Unavailable`, `NotPermitted`."""
        name, number = run_parts(run_name)
        run = self.runs.run(name)
        if run is None or run.attempt != number:
            return None
        job = self.store.find(name)
        return None if job is None else observed(run, _work(job), self._dead_before())

    def reconcile(self, job: Job, cap: int | None = None) -> None:
        """Dispatch regions again that dead workers have left or that never began; fail those without tries left.

        Args:
            job: current; if it holds more than when the attempt began, more of its regions work at once.
            cap: of its pool now; if it is less than the job holds, fewer of its regions work at once. None if it is
                unknown.

        Raises `Throttled`, `Unavailable`, `NotPermitted`.
        """
        attempt = job.attempt
        run = None if attempt is None else self.runs.run(job.name)
        if attempt is None or run is None or run.stopped or run.attempt != attempt.number:
            return
        before, now = run, self.clock.now()
        run = run if cap is None else self._fit(run, _work(job), sum(job.units.values()), cap)
        failed = [self._fail(run, number) for number in exhausted(run, self._dead_before(), self.limits.attempts)]
        if due := {number for after in failed for number in after}:
            self.queue.dispatch(run.job, run.attempt, sorted(due))
        # Regions that were dispatched just now are not silent.
        lost = silent(run, now, attempt.created_at, DEAD_AFTER, self.limits.attempts) if run is before else ()
        if lost:
            log.warning("regions are dispatched again", extra={"job": run.job, "regions": len(lost)})
            self.queue.dispatch(run.job, run.attempt, lost)

    def _fit(self, run: Run, work: ImageWork, held: int, cap: int) -> Run:
        """Have as many of the run's regions at work at once as the job holds requests for, and its endpoint takes now.

        Returns the run as it stands then.
        """
        if run.concurrency is None:
            return run
        widened, before = widened_concurrency(work, run.concurrency, held), set(called(run))
        own = widened or run.concurrency
        narrowed = narrowed_concurrency(work, own, cap)
        if set(called(replace(run, concurrency=own, narrowed=narrowed))) == before:
            return run
        if widened is not None:
            self.runs.widen(run.job, run.attempt, widened)
        if narrowed != run.narrowed:
            self.runs.narrow(run.job, run.attempt, narrowed)
        # Read again: regions that ended before the write dispatched their successors by the old limit.
        run = self.runs.run(run.job) or run
        if more := [number for number in dispatchable(run) if number not in before]:
            self.queue.dispatch(run.job, run.attempt, more)
        return run

    def ending(self, job: Job) -> None:
        """Send the request of a job that is about to fail to the dead-letter queue.

        This happens before the commit of the end, so that a crash between the two sends it twice and never loses it.
        Raises `Throttled`, `Unavailable`: then the end is tried again. A lack of permission, or a request that SQS
        never accepts, is only logged, so that it does not keep the job running; the queue's table keeps the request.
        """
        if job.state is not JobState.FAILED:
            return
        try:
            self._set_aside(job)
        except (NotPermitted, RequestRefused):
            log.exception("a failed job's request could not be set aside", extra={"job": job.name})

    def ended(self, job: Job) -> None:
        """Remove the regions' records of a job that has ended.

        Errors are only logged: the job has ended, and the records expire.
        """
        try:
            self.runs.forget(job.name)
        except ServiceError as error:
            log.warning("could not clean up after an image job", extra={"job": job.name, "cause": str(error)})

    def _set_aside(self, job: Job) -> None:
        reason = (job.attempt.reason if job.attempt is not None else None) or job.history[-1].reason
        body = json.dumps(self.store.request_of(job.name), separators=(",", ":"), ensure_ascii=False)
        self.intake.set_aside(body, reason, attributes={"Attempts": str(len(job.attempts))})

    def _fail(self, run: Run, number: int) -> Sequence[int]:
        """Fail a region whose workers have died too often; return the regions to dispatch next."""
        claim = Claim(job=run.job, attempt=run.attempt, number=number, worker=MANAGER)
        now = self.clock.now()
        taken = self.runs.begin(claim, now, dead_before=self._dead_before())
        if taken is None:
            return ()
        died = f"{taken.tries - 1} workers died at it"
        reason = f"{died}; before that: {taken.reason}" if taken.reason else died
        rest = self.runs.leave(claim, now, reason=reason, final=True)
        return () if rest is None else rest.next

    def _dead_before(self) -> datetime:
        return self.clock.now() - DEAD_AFTER


def _work(job: Job) -> ImageWork:
    work = image_work(job)
    if work is None:
        raise ValueError(f"{job.name} is not an image job")
    return work
