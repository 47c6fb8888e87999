"""An image job's attempt as a run of regions, in the verbs by which training jobs are created, stopped and asked after.

So image jobs are started, preempted, stopped and observed as training jobs are. Each verb can be repeated. What workers
that died have left is dispatched again by `tend`, with every tick. It must not plan, nor work on regions.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from trainmaster.domain.errors import NotPermitted, RequestRefused, ServiceError
from trainmaster.domain.jobs.attempt import Attempt
from trainmaster.domain.jobs.job import Job, JobState
from trainmaster.domain.jobs.observation import Observation
from trainmaster.images.domain.concurrency import abreast_of, called, narrowed_to
from trainmaster.images.domain.endpoint import Limits
from trainmaster.images.domain.progress import DEAD_AFTER, begun, dispatchable, exhausted, observed, silent
from trainmaster.images.domain.tiling import regions
from trainmaster.images.domain.work import Claim, ImageWork, Run, image_work, run_parts
from trainmaster.images.ports import ImageIntake, RegionQueue, Runs
from trainmaster.ports.runtime import Clock
from trainmaster.ports.sagemaker import CreateResult
from trainmaster.ports.store import Store

log = logging.getLogger(__name__)

MANAGER: Final = "manager"
"""Who takes a region that is to be failed because its workers die."""


@dataclass(frozen=True, slots=True)
class ImageLauncher:
    """Runs of image jobs.

    Args:
        store: tells what a run's job is to do.
        runs: the regions, and who is at which.
        queue: how workers learn of regions.
        intake: where the requests of jobs go that have failed.
        clock: the time.
        limits: the deployment's settings.
    """

    store: Store
    runs: Runs
    queue: RegionQueue
    intake: ImageIntake
    clock: Clock
    limits: Limits

    def create(self, job: Job, attempt: Attempt) -> CreateResult:
        """Lay the job's regions out and have them worked on, no more at once than make the requests that it holds.

        What an earlier call laid out stays; what is not begun of it is dispatched again, as that call may have ended
        before it did. Raises `Throttled`, `Unavailable`, `NotPermitted`.
        """
        work = _work(job)
        abreast = abreast_of(work, sum(attempt.units.values()))
        run = self.runs.lay_out(job.name, attempt.number, regions(work.part, work.cut), abreast=abreast)
        if run.attempt != attempt.number:
            return CreateResult.ALREADY_THERE
        if not run.stopped:
            self.queue.dispatch(job.name, run.attempt, dispatchable(run))
        return CreateResult.ALREADY_THERE if begun(run) else CreateResult.NEW

    def stop(self, run_name: str) -> bool:
        """Have the run's workers leave off; False where none is at work (any more), so that it has ended.

        Raises `Throttled`, `Unavailable`, `NotPermitted`.
        """
        job, number = run_parts(run_name)
        self.runs.stop(job, number)
        seen = self.describe(run_name)
        return seen is not None and not seen.terminal

    def describe(self, run_name: str) -> Observation | None:
        """How the run stands; None where there is none. Raises `Throttled`, `Unavailable`, `NotPermitted`."""
        name, number = run_parts(run_name)
        run = self.runs.run(name)
        if run is None or run.attempt != number:
            return None
        job = self.store.find(name)
        return None if job is None else observed(run, _work(job), self._dead_before())

    def tend(self, job: Job, cap: int | None = None) -> None:
        """Dispatch again what dead workers have left, or what was never begun; fail what they die of.

        Args:
            job: as it stands.
            cap: of its pool now; where that is less than when the attempt began, fewer of its regions are at work at
                once. None where nobody knows.

        Raises `Throttled`, `Unavailable`, `NotPermitted`.
        """
        attempt = job.attempt
        run = None if attempt is None else self.runs.run(job.name)
        if attempt is None or run is None or run.stopped or run.attempt != attempt.number:
            return
        run = run if cap is None else self._fit(run, _work(job), cap)
        now = self.clock.now()
        failed = [self._fail(run, number) for number in exhausted(run, self._dead_before(), self.limits.attempts)]
        if due := {number for after in failed for number in after}:
            self.queue.dispatch(run.job, run.attempt, sorted(due))
        if lost := silent(run, now, attempt.created_at, DEAD_AFTER, self.limits.attempts):
            log.warning("regions are dispatched again", extra={"job": run.job, "regions": len(lost)})
            self.queue.dispatch(run.job, run.attempt, lost)

    def _fit(self, run: Run, work: ImageWork, cap: int) -> Run:
        """Have as many of the run's regions at work at once as its endpoint takes now; the run as it stands then."""
        if run.abreast is None:
            return run
        narrowed, before = narrowed_to(work, run.abreast, cap), set(called(run))
        if set(called(replace(run, narrowed=narrowed))) == before:
            return run
        self.runs.narrow(run.job, run.attempt, narrowed)
        # Read again: what ended until it was written has called by what it was before.
        run = self.runs.run(run.job) or run
        if more := [number for number in dispatchable(run) if number not in before]:
            self.queue.dispatch(run.job, run.attempt, more)
        return run

    def ending(self, job: Job) -> None:
        """Whoever is about to commit a job's end: the request of one that fails is set aside.

        Before the commit, so that a crash between the two has it set aside twice, and never lost. Raises `Throttled`,
        `Unavailable`: then the end is to be tried again. That we may not send, or that the queue will never take it, is
        only logged: no job stays at work for that, and its request stays in the queue's own memory.
        """
        if job.state is not JobState.FAILED:
            return
        try:
            self._set_aside(job)
        except (NotPermitted, RequestRefused):
            log.exception("a failed job's request could not be set aside", extra={"job": job.name})

    def ended(self, job: Job) -> None:
        """Whoever has ended the job: its regions are forgotten.

        Trouble is only logged: the job has ended all the same, and rows of regions expire.
        """
        try:
            self.runs.forget(job.name)
        except ServiceError as error:
            log.warning("could not clear up after an image job", extra={"job": job.name, "cause": str(error)})

    def _set_aside(self, job: Job) -> None:
        reason = (job.attempt.reason if job.attempt is not None else None) or job.history[-1].reason
        body = json.dumps(self.store.request_of(job.name), separators=(",", ":"), ensure_ascii=False)
        self.intake.set_aside(body, reason, attributes={"Attempts": str(len(job.attempts))})

    def _fail(self, run: Run, number: int) -> Sequence[int]:
        """Fail a region whose workers have died too often; what is to be dispatched for that."""
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
        raise ValueError(f"{job.name} is no image job")
    return work
