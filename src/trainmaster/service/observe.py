"""What SageMaker reports becomes one guarded transition on the attempt that it names.

Events are hints: duplicated, reordered, sometimes lost. It must not plan or start anything.
"""

from __future__ import annotations

from trainmaster.domain.jobs.job import ENDED, WAITING, Job
from trainmaster.domain.jobs.names import STAMP
from trainmaster.domain.jobs.observation import Observation
from trainmaster.service import dependencies
from trainmaster.service.context import ManagerContext
from trainmaster.service.launch import apply_observation

MAX_TRIES = 5


def observe(context: ManagerContext, seen: Observation) -> bool:
    """Take over a report; whether a pass is worth while: capacity may have become free, or a resize can go on.

    A report that lost a race is taken over again from the job as it stands then, so that a terminal event is
    never dropped because something else changed the job in the same moment.
    """
    name = seen.job_name or seen.training_job_name.split(STAMP)[0]
    for _ in range(MAX_TRIES):
        job = context.store.find(name)
        if job is not None and _ended_by(job, seen):
            # Told twice: whoever heard it first may not have come to tell the jobs that run after this one.
            return dependencies.release_dependents(context.store, job, context.clock.now(), context.faults)
        if job is None or not job.units or _may_be_a_stranger(job, seen):
            return False
        after = apply_observation(context, job, seen)
        if after == job:
            return False
        if _is_told(after, seen):
            return after.state in ENDED or after.state in WAITING or _holds_other(job, after)
    return True


def _is_told(job: Job, seen: Observation) -> bool:
    """Whether the job now knows what the report said."""
    attempt = job.attempt
    if not seen.terminal or not job.units or attempt is None:
        return True
    # The job's own training job has left its name behind while its members end.
    own = seen.training_job_name == attempt.training_job_name
    return attempt.base_ended_at is not None if own else seen.training_job_name not in attempt.training_job_names


def _holds_other(before: Job, after: Job) -> bool:
    """Whether a training job has ended with which the job has not: an attempt goes on as another, a member is gone."""
    return before.units != after.units or before.attempts[-1].number != after.attempts[-1].number


def _ended_by(job: Job, seen: Observation) -> bool:
    """Whether the job has ended with the attempt whose end the report tells."""
    newest = None if job.attempt is None else job.attempt.training_job_name
    return job.state in ENDED and seen.terminal and newest == seen.training_job_name


def _may_be_a_stranger(job: Job, seen: Observation) -> bool:
    """Before we know that SageMaker has the attempt, an untagged training job of its name may be somebody else's."""
    return seen.job_name is None and job.attempt is not None and not job.attempt.launched
