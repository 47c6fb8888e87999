"""What interferes with the course of a training job: a stop, its own time limits, the loss of spot instances.

It must not read a clock or speak to anybody.
"""

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
"""How long a job without a script takes to stop, at most."""
INTERRUPTIBLE = frozenset({Stage.DOWNLOADING, Stage.TRAINING})


def stop(state: AccountState, job: TrainingJob, now: datetime) -> None:
    """Ask a job to stop. Raises `ApiError` where it has ended; asking again while it stops changes nothing."""
    if job.terminal:
        raise invalid(f"The request was rejected because the training job is in status {job.status}.")
    if job.status != STOPPING:
        end(state, job, STOP_REQUESTED, now)


def end(state: AccountState, job: TrainingJob, ending: Ending, now: datetime) -> None:
    """Begin to end a job, from whatever stage it is in."""
    job.ending = ending
    if job.stage is Stage.UPLOADING:
        return state.set_status(job, STOPPING, "Uploading", "Uploading generated training model", now)
    state.set_status(job, STOPPING, "Stopping", "Stopping the training job", now)
    if job.stage is Stage.TRAINING:
        return stop_script(state, job, now)
    if job.stage is Stage.TERMINATING:
        return None  # interrupted: the script has been told already, and will now end as the job does
    state.enter_stage(job, Stage.STOPPING)
    seconds = min(STOP_SECONDS, job.profile.stopping_seconds)
    return state.schedule(job, seconds, partial(finish, state, job), now)


def interrupt(state: AccountState, job: TrainingJob, now: datetime) -> None:
    """EC2 takes a spot job's instances back. Raises `ValueError` where it has none that it could lose."""
    if job.market != Market.SPOT or job.stage not in INTERRUPTIBLE:
        raise ValueError(f"{job.name} has no spot instances at work: it is {job.stage}")
    lose_instances(state, job, "Interrupted", "Training job interrupted: spot instances were lost", now)


def lose_instances(state: AccountState, job: TrainingJob, secondary: str, message: str, now: datetime) -> None:
    """A job at work loses its instances, and will go on once it gets others."""
    state.set_status(job, IN_PROGRESS, secondary, message, now)
    if job.stage is Stage.TRAINING:
        return stop_script(state, job, now)
    return script_stopped(state, job, now)


def enforce_max_wait(state: AccountState, job: TrainingJob) -> None:
    """End a spot job that has not ended within its `MaxWaitTimeInSeconds`."""
    limit = job.limit("MaxWaitTimeInSeconds")
    if job.market == Market.SPOT and limit is not None and job.profile.limited:
        state.timers.at(job.created + limit, partial(_reach_time_limit, state, job, MAX_WAIT_EXCEEDED))


def enforce_max_runtime(state: AccountState, job: TrainingJob, now: datetime) -> None:
    """End a job whose time on instances reaches its `MaxRuntimeInSeconds`, over all its runs."""
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
