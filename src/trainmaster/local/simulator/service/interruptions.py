"""Interruptions of training jobs: stops, time limits, loss of spot instances."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from trainmaster.local.simulator.service.demand import Market
from trainmaster.local.simulator.service.ending import finish, script_stopped, stop_script
from trainmaster.local.simulator.service.job import IN_PROGRESS, STOPPED, STOPPING, Ending, Stage, TrainingJob
from trainmaster.local.simulator.service.state import AccountState
from trainmaster.local.simulator.wire.errors import invalid

STOP_REQUESTED = Ending(STOPPED, STOPPED, "Training job stopped")
MAX_RUNTIME_EXCEEDED = Ending(
    STOPPED, "MaxRuntimeExceeded", "Training job runtime exceeded MaxRuntimeInSeconds provided"
)
MAX_WAIT_EXCEEDED = Ending(
    STOPPED, "MaxWaitTimeExceeded", "Training job wait time exceeded MaxWaitTimeInSeconds provided"
)
STOP_SECONDS = 5
"""Maximum time that a job without a script takes to stop."""
INTERRUPTIBLE = frozenset({Stage.DOWNLOADING, Stage.TRAINING})


def stop(state: AccountState, job: TrainingJob, now: datetime) -> None:
    """Stop a job. Raises `ApiError` if it has ended; stopping it again has no effect."""
    if job.terminal:
        raise invalid(f"The request was rejected because the training job is in status {job.status}.")
    if job.status != STOPPING:
        end(state, job, STOP_REQUESTED, now)


def end(state: AccountState, job: TrainingJob, ending: Ending, now: datetime) -> None:
    """Begin to end a job, from any stage."""
    job.ending = ending
    if job.stage is Stage.UPLOADING:
        return state.set_status(job, STOPPING, "Uploading", "Uploading generated training model", now)
    state.set_status(job, STOPPING, "Stopping", "Stopping the training job", now)
    if job.stage is Stage.TRAINING:
        return stop_script(state, job, now)
    if job.stage is Stage.TERMINATING:
        return None  # interrupted: the script has been signaled already, and the job ends with it
    state.enter_stage(job, Stage.STOPPING)
    seconds = min(STOP_SECONDS, job.profile.stopping_seconds)
    return state.schedule(job, seconds, partial(finish, state, job), now)


def interrupt(state: AccountState, job: TrainingJob, now: datetime) -> None:
    """Interrupt a spot job. Raises `ValueError` if it has no running instances."""
    if job.market != Market.SPOT or job.stage not in INTERRUPTIBLE:
        raise ValueError(f"{job.name} has no running spot instances: it is {job.stage}")
    lose_instances(state, job, "Interrupted", "Training job interrupted: spot instances were lost", now)


def lose_instances(state: AccountState, job: TrainingJob, secondary: str, message: str, now: datetime) -> None:
    """Take the instances of a running job, which resumes once it gets others."""
    state.set_status(job, IN_PROGRESS, secondary, message, now)
    if job.stage is Stage.TRAINING:
        return stop_script(state, job, now)
    return script_stopped(state, job, now)


def enforce_max_wait(state: AccountState, job: TrainingJob) -> None:
    """End a spot job after its `MaxWaitTimeInSeconds`."""
    limit = job.limit("MaxWaitTimeInSeconds")
    if job.market == Market.SPOT and limit is not None and job.profile.limited:
        state.timers.at(job.created + limit, partial(_reach_time_limit, state, job, MAX_WAIT_EXCEEDED))


def enforce_max_runtime(state: AccountState, job: TrainingJob, now: datetime) -> None:
    """End a job whose time on instances, over all runs, reaches its `MaxRuntimeInSeconds`."""
    if not job.profile.limited:
        return
    left = job.max_runtime - job.earlier_run_time
    run_since = job.run_since

    def due(time: datetime) -> None:
        if job.run_since == run_since:
            _reach_time_limit(state, job, MAX_RUNTIME_EXCEEDED, time)

    state.timers.at(now + left, due)


def _reach_time_limit(state: AccountState, job: TrainingJob, ending: Ending, now: datetime) -> None:
    if job.status == IN_PROGRESS and job.stage is not Stage.UPLOADING:
        end(state, job, ending, now)
