"""What interferes with the course of a training job: a stop, its own time limits, the loss of spot instances.

It must not read a clock or speak to anybody.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial

from trainmaster.local.simulator.service.demand import Market
from trainmaster.local.simulator.service.ending import finish, script_stopped, stop_script
from trainmaster.local.simulator.service.job import IN_PROGRESS, STOPPED, STOPPING, Ending, Stage, TrainingJob
from trainmaster.local.simulator.service.state import World
from trainmaster.local.simulator.wire.errors import invalid

BY_REQUEST = Ending(STOPPED, STOPPED, "Training job stopped")
RAN_TOO_LONG = Ending(STOPPED, "MaxRuntimeExceeded", "Training job runtime exceeded MaxRuntimeInSeconds provided")
WAITED_TOO_LONG = Ending(
    STOPPED, "MaxWaitTimeExceeded", "Training job wait time exceeded MaxWaitTimeInSeconds provided"
)
LEAVING_SECONDS = 5
"""How long a job without a script takes to stop, at most."""
AT_WORK = frozenset({Stage.DOWNLOADING, Stage.TRAINING})


def stop(world: World, job: TrainingJob, now: datetime) -> None:
    """Ask a job to stop. Raises `ApiError` where it has ended; asking again while it stops changes nothing."""
    if job.terminal:
        raise invalid(f"The request was rejected because the training job is in status {job.status}.")
    if job.status != STOPPING:
        end(world, job, BY_REQUEST, now)


def end(world: World, job: TrainingJob, ending: Ending, now: datetime) -> None:
    """Begin to end a job, from whatever stage it is in."""
    job.ending = ending
    if job.stage is Stage.UPLOADING:
        return world.show(job, STOPPING, "Uploading", "Uploading generated training model", now)
    world.show(job, STOPPING, "Stopping", "Stopping the training job", now)
    if job.stage is Stage.TRAINING:
        return stop_script(world, job, now)
    if job.stage is Stage.TERMINATING:
        return None  # interrupted: the script has been told already, and will now end as the job does
    world.enter(job, Stage.LEAVING)
    seconds = min(LEAVING_SECONDS, job.profile.stopping_seconds)
    return world.after(job, seconds, partial(finish, world, job), now)


def interrupt(world: World, job: TrainingJob, now: datetime) -> None:
    """EC2 takes a spot job's instances back. Raises `ValueError` where it has none that it could lose."""
    if job.market != Market.SPOT or job.stage not in AT_WORK:
        raise ValueError(f"{job.name} has no spot instances at work: it is {job.stage}")
    lose(world, job, "Interrupted", "Training job interrupted: spot instances were lost", now)


def lose(world: World, job: TrainingJob, secondary: str, message: str, now: datetime) -> None:
    """A job at work loses its instances, and will go on once it gets others."""
    world.show(job, IN_PROGRESS, secondary, message, now)
    if job.stage is Stage.TRAINING:
        return stop_script(world, job, now)
    return script_stopped(world, job, now)


def watch_wait(world: World, job: TrainingJob) -> None:
    """End a spot job that has not ended within its `MaxWaitTimeInSeconds`."""
    limit = job.limit("MaxWaitTimeInSeconds")
    if job.market == Market.SPOT and limit is not None and job.profile.limited:
        world.agenda.at(job.created + limit, partial(_out_of_time, world, job, WAITED_TOO_LONG))


def watch_runtime(world: World, job: TrainingJob, now: datetime) -> None:
    """End a job whose time on instances reaches its `MaxRuntimeInSeconds`, over all its runs."""
    if not job.profile.limited:
        return
    left = job.max_runtime - job.ran
    run_since = job.run_since

    def due(time: datetime) -> None:
        if job.run_since == run_since:
            _out_of_time(world, job, RAN_TOO_LONG, time)

    world.agenda.at(now + left, due)


def _out_of_time(world: World, job: TrainingJob, ending: Ending, now: datetime) -> None:
    if job.status == IN_PROGRESS and job.stage is not Stage.UPLOADING:
        end(world, job, ending, now)
