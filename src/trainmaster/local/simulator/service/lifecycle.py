"""The course of a training job from its creation to its end, when nobody interferes.

Seeking instances, (pending,) preparing, downloading, training, uploading, ended. What interferes is in `ending`,
what follows the script in `closing`.
It must not read a clock or speak to anybody: it changes the world and leaves messages in its outbox.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

from trainmaster.local.simulator.service.demand import Market, accelerated
from trainmaster.local.simulator.service.ending import exited, finish, leave_instances
from trainmaster.local.simulator.service.interruptions import watch_runtime, watch_wait
from trainmaster.local.simulator.service.job import FAILED, IN_PROGRESS, STOPPED, Ending, Stage, TrainingJob
from trainmaster.local.simulator.service.profiles import Outcome
from trainmaster.local.simulator.service.state import StartContainer, World

_Step = Callable[[World, TrainingJob, datetime], None]
NO_CAPACITY = Ending(
    FAILED,
    FAILED,
    "Training job failed",
    "CapacityError: Unable to provision requested ML compute capacity. "
    "Please retry using a different ML instance type.",
)
PENDING_TOO_LONG = Ending(STOPPED, STOPPED, "Training job pended longer than MaxPendingTimeInSeconds")


def begin(world: World, job: TrainingJob, now: datetime) -> None:
    """A new job appears, and EC2 will be asked for its instances; a warm pool's instances are there already."""
    world.show(job, IN_PROGRESS, "Starting", "Starting the training job", now)
    watch_wait(world, job)
    if job.held:
        return prepare(world, job, job.profile.warm_starting_seconds, now)
    world.enter(job, Stage.SEEKING)
    return _then(world, job, job.profile.seeking_seconds, seek, now)


def seek(world: World, job: TrainingJob, now: datetime) -> None:
    """Ask EC2 for the first alternative that it has."""
    for units in job.alternatives:
        if world.ec2.has(units, job.market):
            world.take_instances(job, units)
            if "InstancePreferences" in job.request.get("ResourceConfig", {}):
                job.chosen = units
            return prepare(world, job, job.profile.starting_seconds, now)
    return _pend(world, job, now)


def retry_waiting(world: World, now: datetime) -> None:
    """EC2 may have instances again: ask for those that have waited longest first."""
    world.freed = False
    for job in list(world.waiting.values()):
        if any(world.ec2.has(units, job.market) for units in job.alternatives):
            seek(world, job, now)


def prepare(world: World, job: TrainingJob, seconds: float, now: datetime) -> None:
    """The instances are there; they have to be made ready."""
    interrupted = job.stage is Stage.INTERRUPTED
    world.enter(job, Stage.PREPARING)
    job.chain_start = job.chain_start or now
    secondary = "Restarting" if interrupted else job.secondary
    world.show(job, IN_PROGRESS, secondary, "Preparing the instances for training", now)
    _then(world, job, seconds, _download, now)


def _pend(world: World, job: TrainingJob, now: datetime) -> None:
    """EC2 has nothing now: the job waits, counting against the quota while it runs nothing."""
    world.enter(job, Stage.PENDING)
    world.waiting[job.name] = job
    world.show(job, IN_PROGRESS, "Pending", "Training job waiting for capacity", now)
    if job.market == Market.SPOT:
        return
    if job.market in world.plans:
        # Until the plan's last reserved capacity ends; being Scheduled counts against no limit.
        return
    fast = accelerated(job.alternatives)
    limit = job.limit("MaxPendingTimeInSeconds") if fast else None
    if limit is not None:
        world.after(job, limit.total_seconds(), partial(_give_up, world, job, PENDING_TOO_LONG), now)
        return
    # A list of CPU types only is tried once (SDG/train-instance-preferences).
    once = not fast and len(job.alternatives) > 1
    patience = 0 if once else job.profile.pending_seconds
    world.after(job, patience, partial(_give_up, world, job, NO_CAPACITY), now)


def _give_up(world: World, job: TrainingJob, ending: Ending, now: datetime) -> None:
    job.ending = ending
    finish(world, job, now)


def _download(world: World, job: TrainingJob, now: datetime) -> None:
    world.enter(job, Stage.DOWNLOADING)
    job.started = job.started or now
    job.run_since = now
    watch_runtime(world, job, now)
    world.show(job, IN_PROGRESS, "Downloading", "Downloading input data", now)
    _then(world, job, job.profile.downloading_seconds, _train, now)


def _train(world: World, job: TrainingJob, now: datetime) -> None:
    world.enter(job, Stage.TRAINING)
    job.run += 1
    job.trained_since = now
    world.show(job, IN_PROGRESS, "Training", "Training image download completed. Training in progress.", now)
    if world.runs_commands(job):
        world.outbox.append(StartContainer(job, job.run))
        return
    _then(world, job, _resume(world, job, now), _script_ends, now)


def repace(world: World, job: TrainingJob, pause_seconds: float, now: datetime) -> None:
    """The pace of a script that works may have changed: after a pause it does what is left at the new one."""
    if job.stage is not Stage.TRAINING or job.trained_since is None or world.runs_commands(job):
        return
    worked = job.worked(now)
    job.done, job.left = job.done + worked, job.left - worked.total_seconds()
    job.trained_since = max(job.trained_since, now + timedelta(seconds=pause_seconds))
    job.pace = world.pace(job.request)
    world.enter(job, Stage.TRAINING)
    _then(world, job, _seconds_to_go(job, now), _script_ends, now)


def _resume(world: World, job: TrainingJob, now: datetime) -> float:
    """Seconds that the script still needs; where it goes on from a checkpoint, progress begins after a restart."""
    saved = world.progress.get(job.checkpoint_uri or "")
    job.pace = world.pace(job.request)
    job.left = job.profile.training_seconds
    if saved is not None:
        job.trained_since = now + timedelta(seconds=job.profile.restarting_seconds)
        job.left = max(0.0, job.left - saved.total_seconds())
    return _seconds_to_go(job, now)


def _seconds_to_go(job: TrainingJob, now: datetime) -> float:
    since = job.trained_since or now
    return (since - now).total_seconds() + max(0.0, job.left) / job.pace


def _script_ends(world: World, job: TrainingJob, now: datetime) -> None:
    if job.retries < job.profile.internal_errors:
        return _internal_error(world, job, now)
    failed = job.profile.outcome is Outcome.FAILED
    return exited(world, job, job.profile.failure_reason if failed else None, now)


def _internal_error(world: World, job: TrainingJob, now: datetime) -> None:
    """SageMaker's own fault: tried again on the same instances as often as the `RetryStrategy` allows."""
    job.retries += 1
    if job.retries > job.request.get("RetryStrategy", {}).get("MaximumRetryAttempts", 0):
        return exited(world, job, "InternalServerError: We encountered an internal error. Please try again.", now)
    leave_instances(job, now)
    world.enter(job, Stage.PREPARING)
    world.show(job, IN_PROGRESS, "Starting", "Starting the training job", now)
    return _then(world, job, job.profile.starting_seconds, _download, now)


def _then(world: World, job: TrainingJob, seconds: float, step: _Step, now: datetime) -> None:
    world.after(job, seconds, partial(step, world, job), now)
