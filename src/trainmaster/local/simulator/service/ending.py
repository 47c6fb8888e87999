"""The end of a training job's script: Uploading, then a terminal status; or waiting for other instances.

Functions change the state and leave messages in its outbox. The time is an argument.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

from trainmaster.domain.text import MAX_REASON_LENGTH
from trainmaster.local.simulator.service import warm_pools
from trainmaster.local.simulator.service.job import COMPLETED, FAILED, IN_PROGRESS, STOPPING, Ending, Stage, TrainingJob
from trainmaster.local.simulator.service.script_log import log_end, log_signal
from trainmaster.local.simulator.service.state import AccountState, SignalContainer

SUCCEEDED = Ending(COMPLETED, COMPLETED, "Training job completed")


def script_exited(state: AccountState, job: TrainingJob, failure: str | None, now: datetime) -> None:
    """End a job whose script has ended; `failure` is the reason, or None if it succeeded."""
    log_end(state, job, failure, now)
    save_progress(state, job, now)
    if failure is None:
        state.progress.pop(job.checkpoint_uri or "", None)
        return upload(state, job, SUCCEEDED, now)
    reason = failure[:MAX_REASON_LENGTH]
    return upload(state, job, Ending(FAILED, FAILED, "Training job failed", reason), now)


def upload(state: AccountState, job: TrainingJob, ending: Ending, now: datetime) -> None:
    """Begin Uploading, after which the job ends."""
    job.ending = ending
    status = STOPPING if job.status == STOPPING else IN_PROGRESS
    state.enter_stage(job, Stage.UPLOADING)
    state.set_status(job, status, "Uploading", "Uploading generated training model", now)
    state.schedule(job, job.profile.uploading_seconds, partial(finish, state, job), now)


def finish(state: AccountState, job: TrainingJob, now: datetime) -> None:
    """End a job with the status that was set; release its instances or keep them in a warm pool."""
    ending = job.ending or SUCCEEDED
    stop_instance_time(job, now)
    state.enter_stage(job, Stage.ENDED)
    job.ended, job.failure_reason = now, ending.failure_reason
    warm_pools.keep_or_release(state, job, now)
    state.set_status(job, ending.status, ending.secondary, ending.message, now)


def stop_instance_time(job: TrainingJob, now: datetime) -> None:
    """Stop counting the job's time on instances."""
    job.earlier_run_time = job.time_on_instances(now)
    job.run_since = None


def save_progress(state: AccountState, job: TrainingJob, now: datetime) -> None:
    """Save the work done under the job's checkpoint URI, for the next job with the same one."""
    if job.trained_since and job.checkpoint_uri:
        saved = state.progress.get(job.checkpoint_uri, timedelta(0))
        state.progress[job.checkpoint_uri] = saved + job.work_done + job.worked(now)
    job.trained_since, job.work_done = None, timedelta(0)


def stop_script(state: AccountState, job: TrainingJob, now: datetime) -> None:
    """Send SIGTERM; send SIGKILL if the script does not end within the grace period."""
    log_signal(state, job, now)
    save_progress(state, job, now)
    state.enter_stage(job, Stage.TERMINATING)
    if state.runs_commands(job):
        state.outbox.append(SignalContainer(job.name, job.run, kill=False))
        kill = SignalContainer(job.name, job.run, kill=True)
        return state.schedule(job, state.grace.total_seconds(), lambda _: state.outbox.append(kill), now)
    seconds = min(job.profile.stopping_seconds, state.grace.total_seconds())
    return state.schedule(job, seconds, partial(script_stopped, state, job), now)


def script_stopped(state: AccountState, job: TrainingJob, now: datetime) -> None:
    """Continue after the end of a script that was signaled."""
    if job.ending is not None:
        return upload(state, job, job.ending, now)
    # Only a spot interruption stops a script without ending its job.
    stop_instance_time(job, now)
    state.release_instances(job)
    state.enter_stage(job, Stage.INTERRUPTED)
    return state.schedule(job, job.profile.interrupted_seconds, lambda _: state.wait_for_instances(job), now)
