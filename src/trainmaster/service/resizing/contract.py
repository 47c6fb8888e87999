"""The contract of custom resizes (`docs/how-to/custom-resize.md`): the request, and the effect of an answer.

A token names one resize of one attempt. It is not secret; it guards against answers to resizes that are over.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from trainmaster.domain.compat import StrEnum
from trainmaster.domain.elastic.sizes import Hook
from trainmaster.domain.errors import IllegalTransition, InvalidRequest
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import Change, Job, JobState
from trainmaster.domain.requests.fields import shown
from trainmaster.domain.text import MAX_REASON_LENGTH


class Outcome(StrEnum):
    """Outcome of a resize: `done`, or `refused`; then the job keeps its size."""

    DONE = "done"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class HookAnswer:
    """An answer to a resize request.

    Attributes:
        token: the resize's token, from the request.
        instances: the job's instances now, if the outcome is `done`.
        reason: why the resize was refused, if it was.
    """

    token: str
    outcome: Outcome
    instances: int | None = None
    reason: str = ""


def resize_request(job: Job) -> dict[str, Any]:
    """Return the request that is sent for the current resize; equal each time while the resize is under way."""
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
    """Return the token of the resize of this attempt that was decided at this time."""
    text = "\n".join((name, str(attempt), asked_at.isoformat()))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def parse_answer(token: str, value: Mapping[str, Any]) -> HookAnswer | None:
    """Return the answer in a function's response; None if it answers later. Raises `InvalidRequest`."""
    outcome, instances, reason = value.get("outcome"), value.get("instances"), value.get("reason", "")
    if outcome is None or outcome == "later":
        return None
    if outcome not in set(Outcome):
        raise InvalidRequest(f"outcome is {shown(outcome)}, not 'done', 'refused' or 'later'", field="outcome")
    if instances is not None and (not isinstance(instances, int) or isinstance(instances, bool)):
        raise InvalidRequest(f"instances is {shown(instances)}, not a number of instances", field="instances")
    return HookAnswer(
        token=token, outcome=Outcome(outcome), instances=instances, reason=str(reason)[:MAX_REASON_LENGTH]
    )


def apply_answer(job: Job, answer: HookAnswer, now: datetime) -> Job:
    """Return the job after an answer; unchanged if the resize has already ended as the answer says.

    Raises `IllegalTransition` for a resize that is not this job's, or has ended otherwise; `InvalidRequest` for
    instances that the resize does not allow.
    """
    if job.elastic is None or job.elastic.hook is not Hook.CUSTOM:
        raise IllegalTransition(f"job {job.name} has no custom hook: the queue resizes it", field="token")
    attempt = job.attempt
    under_way = attempt.resizing if attempt is not None and job.state is JobState.RESIZING else None
    if attempt is None or under_way is None or answer.token != token_of(job.name, attempt.number, under_way.asked_at):
        return _over(job, answer)
    if answer.outcome is Outcome.REFUSED:
        return abandon_resize(job, now, f"refused: {answer.reason}" if answer.reason else "refused")
    return lifecycle.complete_resize(job, now, _size(job, answer))


def abandon_resize(job: Job, now: datetime, reason: str) -> Job:
    """Return the job after its resize failed.

    A job that was to give instances to another job and does not is preempted as a whole, if it may be.
    """
    under_way = lifecycle.resizing_of(job)
    if under_way.freed_for and job.preemptible:
        return lifecycle.preempt(job, under_way.freed_for, now)
    return lifecycle.abandon_resize(job, now, reason)


def _size(job: Job, answer: HookAnswer) -> int:
    """Return the job's instances after the resize. Raises `InvalidRequest` if the resize does not allow them.

    The size that was asked for is allowed even if the bounds were changed meanwhile.
    """
    under_way, elastic = lifecycle.resizing_of(job), lifecycle.elastic_of(job)
    low, high = sorted((under_way.before, under_way.after))
    sizes = sorted({under_way.after, *(size for size in elastic.sizes if low <= size <= high)} - {under_way.before})
    size = answer.instances
    if size is None or size not in sizes:
        legal = map(str, sizes)
        raise InvalidRequest(
            f"instances is {shown(size)}: the resize was from {under_way.before} to {under_way.after}",
            field="instances",
            hint=f"give the instances that it has now, {' or '.join(legal)}; if nothing changed, answer 'refused'",
        )
    return size


def _over(job: Job, answer: HookAnswer) -> Job:
    """Return the job unchanged if its history agrees with the answer. Raises `IllegalTransition` if not."""
    ended = _end_of(job, answer.token)
    size = None if ended is None else ended.size
    agrees = size is None if answer.outcome is Outcome.REFUSED else size == answer.instances is not None
    if agrees:
        return job
    if size is not None:
        message, hint = f"done, with {size} instances", "the first answer stands"
    else:
        message = "over: " + (f"job {job.name} is stopping" if ended is None else ended.reason)
        hint = "undo what you have done for it"
    raise IllegalTransition(f"the resize of this token is {message}", field="token", hint=hint)


def _end_of(job: Job, token: str) -> Change | None:
    """Return the line of history that ended the resize; None if the resize stops together with its job.

    Raises `IllegalTransition` if the job has no resize of this token.
    """
    lines = iter(job.history)
    for line in lines:
        begins = line.after is JobState.RESIZING is not line.before
        if begins and line.attempt is not None and token_of(job.name, line.attempt, line.at) == token:
            return next((later for later in lines if later.before is JobState.RESIZING is not later.after), None)
    hint = f"job {job.name} is {job.state}"
    raise IllegalTransition("this job has no resize with this token", field="token", hint=hint)
