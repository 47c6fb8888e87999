"""What somebody else is asked who changes a job's size, and what the answer does: `docs/how-to/custom-resize.md`.

Pure. A token names one resize of one attempt; it is no secret, and guards against answers to resizes that are over. It
must not ask anybody.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from trainmaster.domain.elastic.sizes import Hook
from trainmaster.domain.errors import IllegalTransition, InvalidRequest
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import Change, Job, JobState
from trainmaster.domain.requests.fields import shown
from trainmaster.domain.text import MAX_REASON_LENGTH


class Outcome(StrEnum):
    """How a resize went: `done`, or `refused`, and the job goes on as it was."""

    DONE = "done"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What somebody else says of a resize.

    Attributes:
        token: of the resize, as it was asked.
        instances: where it is done, how many the job has now.
        reason: where it is refused, why.
    """

    token: str
    outcome: Outcome
    instances: int | None = None
    reason: str = ""


def question(job: Job) -> dict[str, Any]:
    """What whoever resizes the job is told; equal for as long as the resize is under way."""
    attempt, under_way = lifecycle.current(job), lifecycle.resizing_of(job)
    return {
        "token": token_of(job.name, attempt.number, under_way.asked_at),
        "job": job.name,
        "attempt": attempt.number,
        "trainingJobName": attempt.training_job_name,
        "from": under_way.before,
        "to": under_way.after,
        "cause": under_way.cause.value,
        "deadline": under_way.until.isoformat(),
        "answerTo": {"method": "POST", "path": f"/jobs/{job.name}/resize"},
    }


def token_of(name: str, attempt: int, asked_at: datetime) -> str:
    """The token of the resize of this attempt that was decided at this moment."""
    text = "\n".join((name, str(attempt), asked_at.isoformat()))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def answer_in(token: str, value: Mapping[str, Any]) -> Answer | None:
    """The answer that a function has returned at once; None where it will answer later.

    Raises `InvalidRequest` for what is no answer.
    """
    outcome, instances, reason = value.get("outcome"), value.get("instances"), value.get("reason", "")
    if outcome is None or outcome == "later":
        return None
    if outcome not in set(Outcome):
        raise InvalidRequest(f"outcome is {shown(outcome)}, not 'done', 'refused' or 'later'", field="outcome")
    if instances is not None and (not isinstance(instances, int) or isinstance(instances, bool)):
        raise InvalidRequest(f"instances is {shown(instances)}, not a number of instances", field="instances")
    return Answer(token=token, outcome=Outcome(outcome), instances=instances, reason=str(reason)[:MAX_REASON_LENGTH])


def answered(job: Job, answer: Answer, now: datetime) -> Job:
    """The job after an answer; the same where the resize has ended as the answer says.

    Raises `IllegalTransition` for a resize that is none of this job's, or has ended otherwise; `InvalidRequest` for
    instances that the resize does not allow.
    """
    if job.elastic is None or job.elastic.hook is not Hook.CUSTOM:
        raise IllegalTransition(f"nobody but the queue resizes job {job.name}", field="token")
    attempt = job.attempt
    under_way = attempt.resizing if attempt is not None and job.state is JobState.RESIZING else None
    if attempt is None or under_way is None or answer.token != token_of(job.name, attempt.number, under_way.asked_at):
        return _over(job, answer)
    if answer.outcome is Outcome.REFUSED:
        return given_up(job, now, f"refused: {answer.reason}" if answer.reason else "refused")
    return lifecycle.resized(job, now, _size(job, answer))


def given_up(job: Job, now: datetime, reason: str) -> Job:
    """The job where its resize does not come to be.

    Who was to give instances to another job, and does not, gives them all: it steps aside, where it may.
    """
    under_way = lifecycle.resizing_of(job)
    if under_way.freed_for and job.preemptible:
        return lifecycle.preempt(job, under_way.freed_for, now)
    return lifecycle.give_up(job, now, reason)


def _size(job: Job, answer: Answer) -> int:
    """The instances that the job has now, at most what it holds and no other than may be."""
    under_way, elastic = lifecycle.resizing_of(job), lifecycle.elastic_of(job)
    low, high = sorted((under_way.before, under_way.after))
    size = answer.instances
    if size is None or size == under_way.before or size not in elastic.sizes or not low <= size <= high:
        legal = [str(each) for each in elastic.sizes if low <= each <= high and each != under_way.before]
        raise InvalidRequest(
            f"instances is {shown(size)}: the job was to go from {under_way.before} to {under_way.after}",
            field="instances",
            hint=f"say how many it has now, {' or '.join(legal)}; where nothing has changed, answer 'refused'",
        )
    return size


def _over(job: Job, answer: Answer) -> Job:
    """The job as it is, where its history says of the resize what the answer says."""
    ended = _end_of(job, answer.token)
    size = None if ended is None else ended.size
    agrees = size is None if answer.outcome is Outcome.REFUSED else size == answer.instances is not None
    if agrees:
        return job
    if size is not None:
        message, hint = f"done, with {size} instances", "what was answered first stands; answer what is asked next"
    else:
        message = "over: " + (f"job {job.name} is to stop" if ended is None else ended.reason)
        hint = "put back what you have done for it"
    raise IllegalTransition(f"the resize of this token is {message}", field="token", hint=hint)


def _end_of(job: Job, token: str) -> Change | None:
    """The line of history by which the resize of this token ended; None where it has not, and stops with its job.

    Raises `IllegalTransition` where the job has never been asked for it.
    """
    lines = iter(job.history)
    for line in lines:
        begins = line.after is JobState.RESIZING is not line.before
        if begins and line.attempt is not None and token_of(job.name, line.attempt, line.at) == token:
            return next((later for later in lines if later.before is JobState.RESIZING is not later.after), None)
    hint = f"job {job.name} is {job.state}"
    raise IllegalTransition("the resize of this token is none of this job's", field="token", hint=hint)
