"""Tells in a short paragraph where a job is, why, until when, and what comes next: the words of `why`.

It must not look anything up: all that it says is in the job's detail, and now is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from itertools import takewhile
from typing import TYPE_CHECKING

from trainmaster.cli.output.outlook import deadline_sentence, start_sentence, story_sentences
from trainmaster.cli.output.render import demand_of, place_of, text_of
from trainmaster.cli.output.times import later, parse, span, with_moments
from trainmaster.client.views.wording import regions_of, tries
from trainmaster.domain.reasons import REASONS
from trainmaster.images.cli.requests import end_sentence

if TYPE_CHECKING:
    from trainmaster.client.views.jobs import AttemptView, HistoryEntry, JobDetail


def explanation(job: JobDetail, now: datetime) -> str:
    """Why the job is in the state in which it is."""
    tell = _TELLERS.get(job["jobState"], _other)
    return with_moments(" ".join(sentence for sentence in tell(job, now) if sentence), now)


def _pending(job: JobDetail, now: datetime) -> Iterator[str]:
    yield f"{job['jobName']} waits{_place(job)}, with priority {job['priority']}, since {job['entryTime']}."
    yield _last_attempt(job)
    yield from _outlook(job, now)


def _preempted(job: JobDetail, now: datetime) -> Iterator[str]:
    yield f"{job['jobName']} was preempted and waits{_place(job)}, with priority {job['priority']}, to be resumed."
    yield _last_attempt(job)
    yield f"Among equals it keeps its place as of {job['entryTime']}."
    yield from _outlook(job, now)


def _held(job: JobDetail, _: datetime) -> Iterator[str]:
    reason = job["reason"]
    known = REASONS.get(reason["type"]) if reason is not None else None
    if known is not None and known.outside_queue:
        yield f"{job['jobName']} {text_of(reason)}. Then it enters the queue."
    else:
        yield f"{job['jobName']} was held back{_when(job)}."
        yield _by_what(job)
        yield f"It keeps its entry time and does not start before `trainmaster release {job['jobName']}`."
    yield deadline_sentence(job)


def _starting(job: JobDetail, _: datetime) -> Iterator[str]:
    attempt = _newest(job)
    yield f"{job['jobName']} is starting on {_on(job)}, as {_called(job)}, since {attempt['createdAt']}."
    if not job.get("image"):
        yield "If SageMaker finds no capacity for it, it waits again."
    yield _stop_asked(job)


def _running(job: JobDetail, now: datetime) -> Iterator[str]:
    attempt = _newest(job)
    begun = attempt["startedAt"] or attempt["createdAt"]
    # The API's clock may be a little ahead of this one.
    for_long = f" for {span(max((now - parse(begun)).total_seconds(), 0))}" if begun else ""
    yield f"{job['jobName']} has been running{for_long} on {_on(job)}, as {_called(job)}."
    yield _sentence(regions_of(job))
    yield end_sentence(job, now)
    yield _lacking(job)
    yield _stop_asked(job) or _may_lose(job)
    yield deadline_sentence(job)


def _may_lose(job: JobDetail) -> str:
    """What a better job may take from it; of an elastic one also what it may have."""
    elastic = job.get("elastic")
    if not elastic:
        return "A job of higher priority may preempt it." if job["preemptible"] else "It is not preemptible."
    bounds = f"It may have {elastic['minInstances']} to {elastic['maxInstances']} instances"
    least = (elastic["size"] or 0) <= elastic["minInstances"]
    preempts = "a job of higher priority may preempt it" if job["preemptible"] else "it is not preemptible"
    if least:
        return f"{bounds}: {preempts}."
    shrinks = "a job of higher priority may have it shrink"
    return f"{bounds}: {shrinks}, " + ("or preempt it." if job["preemptible"] else "but not preempt it.")


def _resizing(job: JobDetail, _: datetime) -> Iterator[str]:
    elastic = job.get("elastic")
    resizing = elastic and elastic["resizing"]
    if not resizing:
        yield f"{job['jobName']} is being stopped while its size was to change."
    else:
        aim = "goes back" if resizing["givenUp"] else "goes"
        yield f"{job['jobName']} {aim} from {resizing['from']} to {resizing['to']} instances{_when(job)}."
        yield _by_what(job)
        yield _sentence(f"it {resizing['message']}")
    yield _stop_asked(job)
    yield deadline_sentence(job)


def _lacking(job: JobDetail) -> str:
    """That an elastic job has lost a member."""
    elastic = job.get("elastic")
    if not elastic or not elastic["faultySince"]:
        return ""
    until = later(elastic["faultySince"], elastic["faultyScaleDownTimeoutSeconds"])
    lacks = f"It lacks a member since {elastic['faultySince']}: it had {elastic['wanted']} instances before."
    return f"{lacks} It waits for a replacement until {until}, and then goes on with what is left."


def _preempting(job: JobDetail, _: datetime) -> Iterator[str]:
    yield f"{job['jobName']} is being stopped to make room{_when(job)}."
    yield _by_what(job)
    on_with = "to go on with the regions that are left" if job.get("image") else "to be resumed from its checkpoint"
    yield f"Then it waits at the place of its entry time, {job['entryTime']}, {on_with}."
    yield _stop_asked(job)


def _completed(job: JobDetail, _: datetime) -> Iterator[str]:
    count = tries(job)
    yield f"{job['jobName']} completed{_when(job)}, after {count} attempt{'s' if count > 1 else ''}."


def _failed(job: JobDetail, _: datetime) -> Iterator[str]:
    yield f"{job['jobName']} failed{_when(job)}."
    yield _sentence(job["failureReason"] or "")


def _ended_by_hand(job: JobDetail, _: datetime) -> Iterator[str]:
    end = " for good" if job["jobState"] == "stopped" else ", while it waited"
    yield f"{job['jobName']} was {job['jobState']}{_when(job)}{end}."
    yield _by_what(job)


def _other(job: JobDetail, _: datetime) -> Iterator[str]:
    yield f"{job['jobName']} is {job['jobState']}."
    yield _sentence(text_of(job["reason"]))


_TELLERS: Mapping[str, Callable[[JobDetail, datetime], Iterator[str]]] = {
    "pending": _pending,
    "preempted": _preempted,
    "held": _held,
    "starting": _starting,
    "running": _running,
    "preempting": _preempting,
    "resizing": _resizing,
    "completed": _completed,
    "failed": _failed,
    "stopped": _ended_by_hand,
    "cancelled": _ended_by_hand,
}


def _outlook(job: JobDetail, now: datetime) -> Iterator[str]:
    """Why it waits, when that will be over, and what would help."""
    reason, start = job["reason"], start_sentence(job, now)
    if reason:
        known = REASONS.get(reason["type"])
        yield _sentence(("" if known is None else known.subject) + reason["message"])
    yield from story_sentences(job.get("why"))
    if reason:
        yield start or "When it can start cannot be foreseen."
    else:
        yield "It starts with the next pass."
    yield deadline_sentence(job)


def _place(job: JobDetail) -> str:
    if job["position"] is not None:
        return f" at position {job['position']}"
    return f" at position {job['positionAtLeast']} or later" if job["positionAtLeast"] is not None else ""


def _last_attempt(job: JobDetail) -> str:
    """How the newest attempt of a waiting job ended."""
    if not job["attempts"]:
        return ""
    last = _newest(job)
    return _sentence(f"Attempt {last['number']}: {text_of(last['reason']) or last['outcome']}")


def _called(job: JobDetail) -> str:
    """The newest attempt; only those of training jobs have a name that people meet elsewhere."""
    attempt = _newest(job)
    number = f"attempt {attempt['number']}"
    return number if job.get("image") else f"{attempt['trainingJobName']} ({number})"


def _on(job: JobDetail) -> str:
    """What the newest attempt has, where the queue has chosen it; else what the job asks for."""
    attempt = _newest(job)
    chosen = attempt.get("instanceType") or job.get("elastic") or (job.get("image") and attempt["units"])
    return place_of(attempt) if chosen else demand_of(job)


def _newest(job: JobDetail) -> AttemptView:
    return job["attempts"][-1]


def _when(job: JobDetail) -> str:
    """The moment at which the job came into its state."""
    change = _change(job)
    return f" at {change['at']}" if change else ""


def _by_what(job: JobDetail) -> str:
    """What brought the job into its state."""
    change = _change(job)
    return _sentence(text_of(change["reason"])) if change else ""


def _change(job: JobDetail) -> HistoryEntry | None:
    """The newest change into the job's state; lines that leave the state as it was tell of something else."""
    state = job["jobState"]
    return next((line for line in reversed(job["history"]) if line["to"] == state != line["from"]), None)


def _stop_asked(job: JobDetail) -> str:
    """That somebody has asked for the stop of a job that still holds capacity."""
    since = takewhile(lambda line: line["from"] == line["to"], reversed(job["history"]))
    asked = next((line for line in since if "stop" in text_of(line["reason"])), None)
    return _sentence(f"{text_of(asked['reason'])} at {asked['at']}") if asked else ""


def _sentence(text: str) -> str:
    """With a capital letter at its beginning and a full stop at its end."""
    return text[:1].upper() + text[1:].rstrip(".") + "." if text else ""
