"""Carrying out what was committed: creating and stopping training jobs, and doing it again after a crash.

Each step can be repeated: an attempt's name is fixed before SageMaker is called, so a second create finds the
first one's training job, and a second stop finds it stopping. It must not decide what starts or stops.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from trainmaster.domain import lifecycle
from trainmaster.domain.attempt import Attempt
from trainmaster.domain.capacity import Pool
from trainmaster.domain.errors import CapacityExhausted, NotPermitted, RequestRefused, Throttled, Unavailable
from trainmaster.domain.job import ENDED, Job, JobState
from trainmaster.domain.observation import Observation, Status
from trainmaster.domain.policy import FailureClass, Policy
from trainmaster.domain.request import for_pool
from trainmaster.ports import Checkpoints, Clock, Created, Launcher, Request, Store
from trainmaster.service import held

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Hands:
    """What acting needs: the memory, SageMaker, and the time.

    Attributes:
        policy: the settings that a pass has read; None outside of passes, where they are read when a failure asks.
        pools: the pools that a pass has read.
        checkpoints: where jobs save their work; None where nobody looks.
    """

    store: Store
    launcher: Launcher
    clock: Clock
    policy: Policy | None = None
    pools: Mapping[str, Pool] = field(default_factory=dict)
    checkpoints: Checkpoints | None = None

    @property
    def retries(self) -> lifecycle.Retries:
        """How failures are tried again."""
        return (self.policy or self.store.settings().policy).retries


def launch(hands: Hands, job: Job) -> Job:
    """Create the attempt's training job; returns the job as it stands then.

    Missing capacity puts the job back, a refused request ends it. Throttling and trouble leave it `starting` and
    not launched: it keeps its capacity and the next pass tries again. Raises `Throttled`, `Unavailable`.
    """
    attempt = lifecycle.current(job)
    try:
        created = hands.launcher.create(job, attempt, _request_for(hands, job, attempt))
    except _PoolGoneError as gone:
        return _commit(hands, job, lifecycle.give_back(job, hands.clock.now(), str(gone), hands.retries))
    except CapacityExhausted as error:
        lacking = lifecycle.failed_as(job, FailureClass.CAPACITY, hands.clock.now(), str(error), hands.retries)
        return _commit(hands, job, lacking)
    except NotPermitted as error:
        # An administrator can mend a missing permission; ending the whole queue's jobs for it could not be mended.
        back = lifecycle.give_back(job, hands.clock.now(), f"not permitted: {error}", hands.retries)
        return _commit(hands, job, back)
    except RequestRefused as error:
        return _commit(hands, job, lifecycle.fail(job, hands.clock.now(), str(error)))
    if created is Created.NAME_TAKEN:
        reason = f"the name {attempt.training_job_name} belongs to a training job that the queue did not start"
        return _commit(hands, job, lifecycle.fail(job, hands.clock.now(), reason))
    known = _commit(hands, job, lifecycle.launched(job))
    # An earlier pass had created it, so it may have gone on, or ended, without us.
    return look(hands, known) if created is Created.ALREADY_THERE else known


class _PoolGoneError(Exception):
    """The pool that an attempt was to start in is there no more."""


def _request_for(hands: Hands, job: Job, attempt: Attempt) -> Request:
    """The request as it has to be for the pool that the queue has chosen.

    Where that pool is gone and SageMaker does not have the attempt either, there is nothing to create. Raises
    `_PoolGoneError`, `Throttled`, `Unavailable`, `NotPermitted`.
    """
    request = hands.store.request_of(job.name)
    if not job.demand.ours:
        return request
    ((name, instances),) = attempt.units.items()
    if name in hands.pools:
        return for_pool(request, hands.pools[name], instances)
    if hands.launcher.describe(attempt.training_job_name) is None:
        raise _PoolGoneError(f"there is no pool {name} any more")
    return request


def stop(hands: Hands, job: Job) -> Job:
    """Ask SageMaker to stop the attempt; its warm pool would eat the cap, so it goes too.

    Raises `Throttled`, `Unavailable`, `NotPermitted`: the next pass tries again.
    """
    if hands.launcher.stop(lifecycle.current(job).training_job_name, end_warm_pool=job.keep_alive):
        return _commit(hands, job, lifecycle.stop_sent(job))
    return look(hands, job)


def look(hands: Hands, job: Job) -> Job:
    """Ask SageMaker how the job's attempt stands, and take it over."""
    if job.attempt is None or not job.units:
        return job
    name = job.attempt.training_job_name
    # Unknown to SageMaker although it was there: somebody deleted it.
    seen = hands.launcher.describe(name) or Observation(training_job_name=name, status=Status.DELETING)
    return take_over(hands, job, seen)


def take_over(hands: Hands, job: Job, seen: Observation) -> Job:
    """Turn a report about the job's newest attempt into one guarded transition."""
    retries = hands.retries if seen.ends_badly else None
    after = lifecycle.observe(job, seen, hands.clock.now(), retries)
    return job if after is None else _commit(hands, job, after)


def finish_unfinished(hands: Hands, active: tuple[Job, ...]) -> tuple[Job, ...]:
    """Do what an earlier pass committed and did not get done; returns the active jobs as they stand then."""
    return _each(hands, active, _unfinished)


def check_silent(hands: Hands, active: tuple[Job, ...]) -> tuple[Job, ...]:
    """Ask SageMaker about the jobs whose turn it is: events may have been lost.

    Whose turn it is follows from the minute and the name alone, so that nothing needs to be written down.
    """
    now = hands.clock.now()
    minute = int(now.timestamp()) // 60
    rounds = max(1, len(active) // MOST_CHECKS)
    return _each(hands, active, lambda h, job: look(h, job) if _is_due(job, minute, rounds) else job)


MOST_CHECKS = 100
"""About as many DescribeTrainingJob calls as one tick makes at most (its rate is not published)."""
_QUIET_MINUTES = 10
_BUSY_MINUTES = 2


def _is_due(job: Job, minute: int, rounds: int) -> bool:
    if job.attempt is None or not job.attempt.launched:
        return False
    period = rounds * (_QUIET_MINUTES if job.state is JobState.RUNNING and not job.stopping else _BUSY_MINUTES)
    return (minute + sum(job.name.encode())) % period == 0


def _unfinished(hands: Hands, job: Job) -> Job:
    attempt = job.attempt
    if attempt is None:
        return job
    if not attempt.launched:
        return _never_started(hands, job, attempt) if job.stop_asked else launch(hands, job)
    return stop(hands, job) if job.stop_asked and not attempt.stop_sent else job


def _never_started(hands: Hands, job: Job, attempt: Attempt) -> Job:
    """Its user stopped it before we knew whether SageMaker has it."""
    seen = hands.launcher.describe(attempt.training_job_name)
    if seen is None:
        gone = Observation(training_job_name=attempt.training_job_name, status=Status.STOPPED)
        return take_over(hands, job, gone)
    known = _commit(hands, job, lifecycle.launched(job))
    # It may have ended while we asked; then there is nothing to stop.
    return stop(hands, known) if known.units else known


def _each(hands: Hands, jobs: tuple[Job, ...], step: Callable[[Hands, Job], Job]) -> tuple[Job, ...]:
    """One bad job never blocks the rest; throttling ends the round, since asking on would make it worse."""
    result = list(jobs)
    for index, job in enumerate(jobs):
        try:
            result[index] = step(hands, job)
        except Throttled as error:
            log.warning("SageMaker throttles; the next pass goes on", extra={"job": job.name, "cause": str(error)})
            break
        except (Unavailable, NotPermitted) as error:
            log.warning("could not act; the next pass tries again", extra={"job": job.name, "cause": str(error)})
    return tuple(result)


def _commit(hands: Hands, before: Job, after: Job) -> Job:
    """Commit a change that needs no fence; the stored job where somebody else was faster."""
    if not hands.store.transition([(before, after)]):
        return hands.store.find(before.name) or before
    if after.state in ENDED:
        held.follow(hands.store, after, hands.clock.now())
    return after
