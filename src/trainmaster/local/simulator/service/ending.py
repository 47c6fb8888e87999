"""How a training job's script ends and what comes after: uploading, then the end; or waiting for other instances.

It must not read a clock or speak to anybody: it changes the world and leaves messages in its outbox.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

from trainmaster.domain.text import MAX_REASON_LENGTH
from trainmaster.local.simulator.service import warm_pools
from trainmaster.local.simulator.service.job import COMPLETED, FAILED, IN_PROGRESS, STOPPING, Ending, Stage, TrainingJob
from trainmaster.local.simulator.service.state import SignalContainer, World

DONE = Ending(COMPLETED, COMPLETED, "Training job completed")


def exited(world: World, job: TrainingJob, failure: str | None, now: datetime) -> None:
    """The script has ended by itself; `failure` tells why it failed, None that it did not."""
    save_progress(world, job, now)
    if failure is None:
        world.progress.pop(job.checkpoint_uri or "", None)
        return upload(world, job, DONE, now)
    reason = failure[:MAX_REASON_LENGTH]
    return upload(world, job, Ending(FAILED, FAILED, "Training job failed", reason), now)


def upload(world: World, job: TrainingJob, ending: Ending, now: datetime) -> None:
    """The script has ended: what it left is uploaded, then the job ends."""
    job.ending = ending
    status = STOPPING if job.status == STOPPING else IN_PROGRESS
    world.enter(job, Stage.UPLOADING)
    world.show(job, status, "Uploading", "Uploading generated training model", now)
    world.after(job, job.profile.uploading_seconds, partial(finish, world, job), now)


def finish(world: World, job: TrainingJob, now: datetime) -> None:
    """The job ends as was decided; its instances go, or stay as a warm pool."""
    ending = job.ending or DONE
    leave_instances(job, now)
    world.enter(job, Stage.ENDED)
    job.ended, job.failure_reason = now, ending.failure_reason
    warm_pools.keep_or_give(world, job, now)
    world.show(job, ending.status, ending.secondary, ending.message, now)


def leave_instances(job: TrainingJob, now: datetime) -> None:
    """The job is on instances no longer."""
    job.ran = job.time_on_instances(now)
    job.run_since = None


def save_progress(world: World, job: TrainingJob, now: datetime) -> None:
    """The work done is kept under the job's checkpoint URI, for whoever comes next with the same one."""
    if job.trained_since and job.checkpoint_uri:
        saved = world.progress.get(job.checkpoint_uri, timedelta(0))
        world.progress[job.checkpoint_uri] = saved + job.done + job.worked(now)
    job.trained_since, job.done = None, timedelta(0)


def stop_script(world: World, job: TrainingJob, now: datetime) -> None:
    """SIGTERM, then, where the script does not end within the grace, SIGKILL."""
    save_progress(world, job, now)
    world.enter(job, Stage.TERMINATING)
    if world.runs_commands(job):
        world.outbox.append(SignalContainer(job.name, job.run, kill=False))
        kill = SignalContainer(job.name, job.run, kill=True)
        return world.after(job, world.grace.total_seconds(), lambda _: world.outbox.append(kill), now)
    seconds = min(job.profile.stopping_seconds, world.grace.total_seconds())
    return world.after(job, seconds, partial(script_stopped, world, job), now)


def script_stopped(world: World, job: TrainingJob, now: datetime) -> None:
    """The script has ended because it was told to."""
    if job.ending is not None:
        return upload(world, job, job.ending, now)
    # Only an interruption stops a script without ending its job.
    leave_instances(job, now)
    world.give_instances(job)
    world.enter(job, Stage.INTERRUPTED)
    return world.after(job, job.profile.interrupted_seconds, lambda _: world.wait_for_instances(job), now)
