"""The lifecycle of a training job: Starting, (Pending,) Downloading, Training, Uploading, and the end.

Functions change the state and leave messages in its outbox. The time is an argument. `interruptions` and `ending` have
the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

from trainmaster.local.simulator.service.demand import Market, accelerated
from trainmaster.local.simulator.service.ending import finish, script_exited, stop_instance_time
from trainmaster.local.simulator.service.interruptions import enforce_max_runtime, enforce_max_wait
from trainmaster.local.simulator.service.job import FAILED, IN_PROGRESS, STOPPED, Ending, Stage, TrainingJob
from trainmaster.local.simulator.service.profiles import Outcome
from trainmaster.local.simulator.service.script_log import log_end, log_progress, log_start
from trainmaster.local.simulator.service.state import AccountState, StartContainer

_Step = Callable[[AccountState, TrainingJob, datetime], None]
NO_CAPACITY = Ending(
    FAILED,
    FAILED,
    "Training job failed",
    "CapacityError: Unable to provision requested ML compute capacity. "
    "Please retry using a different ML instance type.",
)
MAX_PENDING_EXCEEDED = Ending(STOPPED, STOPPED, "Training job pended longer than MaxPendingTimeInSeconds")


def begin(state: AccountState, job: TrainingJob, now: datetime) -> None:
    """Begin the lifecycle of a new job: request instances, unless it has those of a warm pool."""
    state.set_status(job, IN_PROGRESS, "Starting", "Starting the training job", now)
    enforce_max_wait(state, job)
    if job.instances:
        return prepare(state, job, job.profile.warm_starting_seconds, now)
    state.enter_stage(job, Stage.REQUESTING)
    return _schedule(state, job, job.profile.requesting_seconds, request_instances, now)


def request_instances(state: AccountState, job: TrainingJob, now: datetime) -> None:
    """Request instances: the first alternative that EC2 has."""
    for units in job.alternatives:
        if state.ec2.has_capacity(units, job.market):
            state.allocate_instances(job, units)
            if "InstancePreferences" in job.request.get("ResourceConfig", {}):
                job.selected = units
            return prepare(state, job, job.profile.starting_seconds, now)
    return wait_for_capacity(state, job, now)


def retry_waiting(state: AccountState, now: datetime) -> None:
    """Retry the jobs that wait for capacity, longest wait first."""
    state.capacity_changed = False
    for job in list(state.waiting.values()):
        if any(state.ec2.has_capacity(units, job.market) for units in job.alternatives):
            request_instances(state, job, now)


def prepare(state: AccountState, job: TrainingJob, seconds: float, now: datetime) -> None:
    """Prepare the allocated instances."""
    interrupted = job.stage is Stage.INTERRUPTED
    state.enter_stage(job, Stage.PREPARING)
    job.chain_start = job.chain_start or now
    secondary = "Restarting" if interrupted else job.secondary
    state.set_status(job, IN_PROGRESS, secondary, "Preparing the instances for training", now)
    _schedule(state, job, seconds, _download, now)


def wait_for_capacity(state: AccountState, job: TrainingJob, now: datetime) -> None:
    """Have a job wait for EC2 capacity; it counts against the quotas meanwhile."""
    state.enter_stage(job, Stage.PENDING)
    state.waiting[job.name] = job
    state.set_status(job, IN_PROGRESS, "Pending", "Training job waiting for capacity", now)
    if job.market == Market.SPOT:
        return
    if job.market in state.plans:
        # It waits until the plan's last reserved capacity ends; waiting for a Scheduled plan has no limit.
        return
    fast = accelerated(job.alternatives)
    limit = job.limit("MaxPendingTimeInSeconds") if fast else None
    if limit is not None:
        state.schedule(job, limit.total_seconds(), partial(give_up, state, job, MAX_PENDING_EXCEEDED), now)
        return
    # CPU types are tried once (SageMaker developer guide, train-instance-preferences).
    once = not fast and len(job.alternatives) > 1
    patience = 0 if once else job.profile.pending_seconds
    state.schedule(job, patience, partial(give_up, state, job, NO_CAPACITY), now)


def give_up(state: AccountState, job: TrainingJob, ending: Ending, now: datetime) -> None:
    """End a job that has no instances."""
    job.ending = ending
    finish(state, job, now)


def _download(state: AccountState, job: TrainingJob, now: datetime) -> None:
    state.enter_stage(job, Stage.DOWNLOADING)
    job.started = job.started or now
    job.run_since = now
    enforce_max_runtime(state, job, now)
    state.set_status(job, IN_PROGRESS, "Downloading", "Downloading input data", now)
    _schedule(state, job, job.profile.downloading_seconds, _train, now)


def _train(state: AccountState, job: TrainingJob, now: datetime) -> None:
    state.enter_stage(job, Stage.TRAINING)
    job.run += 1
    job.trained_since = now
    state.set_status(job, IN_PROGRESS, "Training", "Training image download completed. Training in progress.", now)
    if state.runs_commands(job):
        state.outbox.append(StartContainer(job, job.run))
        return
    seconds = _begin_work(state, job, now)
    log_start(state, job, seconds, now)
    _run_script(state, job, seconds, now)


def _run_script(state: AccountState, job: TrainingJob, seconds: float, now: datetime) -> None:
    """Simulate a script that ends in so many seconds."""
    _schedule(state, job, seconds, _script_ends, now)
    log_progress(state, job, now)


def change_pace(state: AccountState, job: TrainingJob, pause_seconds: float, now: datetime) -> None:
    """Apply a change of the pace of a running script, after a pause."""
    if job.stage is not Stage.TRAINING or job.trained_since is None or state.runs_commands(job):
        return
    worked = job.worked(now)
    job.work_done, job.work_left = job.work_done + worked, job.work_left - worked.total_seconds()
    job.trained_since = max(job.trained_since, now + timedelta(seconds=pause_seconds))
    job.pace = state.pace(job.request)
    state.enter_stage(job, Stage.TRAINING)
    _run_script(state, job, _seconds_left(job, now), now)


def _begin_work(state: AccountState, job: TrainingJob, now: datetime) -> float:
    """Return the seconds of training left; after a checkpoint, progress begins after the restart."""
    saved = state.progress.get(job.checkpoint_uri or "")
    job.pace = state.pace(job.request)
    job.work_left = job.profile.training_seconds
    if saved is not None:
        job.trained_since = now + timedelta(seconds=job.profile.restarting_seconds)
        job.work_left = max(0.0, job.work_left - saved.total_seconds())
    return _seconds_left(job, now)


def _seconds_left(job: TrainingJob, now: datetime) -> float:
    since = job.trained_since or now
    return (since - now).total_seconds() + max(0.0, job.work_left) / job.pace


def _script_ends(state: AccountState, job: TrainingJob, now: datetime) -> None:
    if job.retries < job.profile.internal_errors:
        return internal_error(state, job, now)
    failed = job.profile.outcome is Outcome.FAILED
    return script_exited(state, job, job.profile.failure_reason if failed else None, now)


def internal_error(state: AccountState, job: TrainingJob, now: datetime) -> None:
    """Retry after an internal error, on the same instances, as often as the `RetryStrategy` allows."""
    job.retries += 1
    if job.retries > job.request.get("RetryStrategy", {}).get("MaximumRetryAttempts", 0):
        return script_exited(
            state, job, "InternalServerError: We encountered an internal error. Please try again.", now
        )
    log_end(state, job, "internal error of SageMaker, which starts the script again", now)
    stop_instance_time(job, now)
    state.enter_stage(job, Stage.PREPARING)
    state.set_status(job, IN_PROGRESS, "Starting", "Starting the training job", now)
    return _schedule(state, job, job.profile.starting_seconds, _download, now)


def _schedule(state: AccountState, job: TrainingJob, seconds: float, step: _Step, now: datetime) -> None:
    state.schedule(job, seconds, partial(step, state, job), now)
