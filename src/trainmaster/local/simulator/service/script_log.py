"""The log of a script that is simulated: when it starts, how far it is, how it ends.

Each line says that it is simulated: no program runs, so there is no output of one. Commands write logs of their own.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

from trainmaster.local.simulator.service.job import TrainingJob
from trainmaster.local.simulator.service.state import AccountState, ScriptLine


def log_start(state: AccountState, job: TrainingJob, seconds: float, now: datetime) -> None:
    """Log the start of a script that will take so many seconds."""
    image = job.request.get("AlgorithmSpecification", {}).get("TrainingImage", "").rpartition("/")[2]
    program = f"image {image}" if image else "algorithm"
    _log(state, job, f"This machine runs no container for the {program}. Training takes {seconds:.0f} s", now)
    if _done(job, now) > 0:
        _log(state, job, f"Continuing: {_percent(job, now)} of the training was saved", now)


def log_progress(state: AccountState, job: TrainingJob, now: datetime) -> None:
    """Log the progress of a script from now on, until it ends or is signaled."""
    if state.keeps_log and job.profile.log_seconds > 0:
        state.schedule(job, job.profile.log_seconds, partial(_log_progress, state, job), now)


def log_signal(state: AccountState, job: TrainingJob, now: datetime) -> None:
    """Log that the script is asked to end."""
    _log(state, job, f"SIGTERM, with {_percent(job, now)} of the training done", now)


def log_end(state: AccountState, job: TrainingJob, failure: str | None, now: datetime) -> None:
    """Log the end of a script; `failure` is the reason, or None if it succeeded."""
    _log(state, job, f"Training failed: {failure}" if failure else "Training has ended", now)


def _log_progress(state: AccountState, job: TrainingJob, now: datetime) -> None:
    _log(state, job, f"{_percent(job, now)} of the training is done", now)
    log_progress(state, job, now)


def _log(state: AccountState, job: TrainingJob, text: str, now: datetime) -> None:
    """Add a line to the log of each instance, if the simulator keeps logs and the script is simulated."""
    if state.keeps_log and job.run_since is not None and not state.runs_commands(job):
        line = ScriptLine(job.name, sum(job.instances.values()) or 1, job.run_since, now, f"[simulated] {text}.")
        state.outbox.append(line)


def _done(job: TrainingJob, now: datetime) -> float:
    """Return the seconds of work done in all runs."""
    left = timedelta(seconds=job.work_left) - job.worked(now)
    return job.profile.training_seconds - max(left, timedelta(0)).total_seconds()


def _percent(job: TrainingJob, now: datetime) -> str:
    total = job.profile.training_seconds
    return f"{_done(job, now) / total:.0%}" if total else "100%"
