"""Writes the paragraph of `why`: a job's state, its cause, and what comes next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from itertools import takewhile
from typing import TYPE_CHECKING

from trainmaster.cli.kinds import kind_of_job
from trainmaster.cli.output.outlook import deadline_sentence, start_sentence, wait_sentences
from trainmaster.cli.output.render import attempt_placement, demand_text, reason_text
from trainmaster.cli.output.times import add_seconds, format_duration, format_moments
from trainmaster.client.kinds import is_training_job, kind_wording
from trainmaster.client.views.moments import parse_timestamp
from trainmaster.client.views.wording import attempt_count
from trainmaster.domain.reasons import REASONS

if TYPE_CHECKING:
    from trainmaster.client.views.types import AttemptView, HistoryEntryView, JobDetailView, ManagerPauseView


def explanation(job: JobDetailView, now: datetime) -> str:
    """Explain why the job is in its state."""
    explain = _EXPLAINERS.get(job["jobState"], _other_state)
    return format_moments(" ".join(sentence for sentence in explain(job, now) if sentence), now)


def pause_sentence(pause: ManagerPauseView, now: datetime) -> str:
    """Tell who paused the manager and why, and that nothing starts meanwhile."""
    text = f"The manager is paused since {pause['at']} by {pause['by']}: {pause['reason'].rstrip('.')}."
    return format_moments(f"{text} No job starts until an admin resumes it with `trainmaster resume`.", now)


def _pending(job: JobDetailView, now: datetime) -> Iterator[str]:
    yield f"{job['jobName']} waits{_place(job)}, with priority {job['priority']}, since {job['entryTime']}."
    yield _last_attempt(job)
    yield from _outlook(job, now)


def _preempted(job: JobDetailView, now: datetime) -> Iterator[str]:
    yield f"{job['jobName']} was preempted and waits{_place(job)}, with priority {job['priority']}, to resume."
    yield _last_attempt(job)
    yield f"It keeps its entry time, {job['entryTime']}."
    yield from _outlook(job, now)


def _held(job: JobDetailView, _: datetime) -> Iterator[str]:
    reason = job["reason"]
    known = REASONS.get(reason["type"]) if reason is not None else None
    if known is not None and known.outside_queue:
        yield f"{job['jobName']} {reason_text(reason)}. Then it enters the queue."
    else:
        yield f"{job['jobName']} was held{_at_time(job)}."
        yield _cause(job)
        yield f"It keeps its entry time and waits for `trainmaster release {job['jobName']}`."
    yield deadline_sentence(job)


def _starting(job: JobDetailView, _: datetime) -> Iterator[str]:
    attempt = _newest(job)
    yield f"{job['jobName']} is starting on {_capacity(job)}, as {_attempt_name(job)}, since {attempt['createdAt']}."
    if is_training_job(job):
        yield "If SageMaker has no capacity for it, it returns to the queue."
    yield _requested_stop(job)


def _running(job: JobDetailView, now: datetime) -> Iterator[str]:
    attempt, kind, wording = _newest(job), kind_of_job(job), kind_wording(job)
    started = attempt["startedAt"] or attempt["createdAt"]
    # The API's clock may be slightly ahead of this one.
    duration = f" for {format_duration(max((now - parse_timestamp(started)).total_seconds(), 0))}" if started else ""
    yield f"{job['jobName']} has been running{duration} on {_capacity(job)}, as {_attempt_name(job)}."
    yield _sentence("" if wording is None else wording.progress(job))
    yield "" if kind is None else kind.end_sentence(job, now)
    yield _lost_member(job)
    yield _slower_sizes(job)
    yield _requested_stop(job) or _preemption_rule(job)
    yield deadline_sentence(job)


def _slower_sizes(job: JobDetailView) -> str:
    """Say how an elastic job scales if that keeps it from growing, or has it shrink."""
    elastic = job.get("elastic")
    scaling = elastic and elastic.get("scaling")
    slower = scaling and any(size.get("slowerThan") for size in scaling["sizes"])
    return _sentence(scaling["message"]) if scaling and slower else ""


def _preemption_rule(job: JobDetailView) -> str:
    """Say whether other jobs may preempt it; for an elastic job also its bounds."""
    elastic, preemptible = job.get("elastic"), job["preemptible"]
    rule = "A job of higher priority may preempt it." if preemptible else "It is not preemptible."
    if not elastic:
        return rule
    if (elastic["size"] or 0) > elastic["minInstances"]:
        rule = f"A job of higher priority may shrink {'or preempt it' if preemptible else 'it, but not preempt it'}."
    return f"Its size is {elastic['minInstances']} to {elastic['maxInstances']} instances. {rule}"


def _resizing(job: JobDetailView, _: datetime) -> Iterator[str]:
    elastic = job.get("elastic")
    resizing = elastic and elastic["resizing"]
    if not resizing:
        yield f"{job['jobName']} is being stopped during a resize."
    else:
        verb = "began to return" if resizing["givenUp"] else "began to resize"
        yield f"{job['jobName']} {verb} from {resizing['from']} to {resizing['to']} instances{_at_time(job)}."
        yield _cause(job)
        yield _sentence(f"it {resizing['message']}")
    yield _requested_stop(job)
    yield deadline_sentence(job)


def _lost_member(job: JobDetailView) -> str:
    """Say that an elastic job has lost a member."""
    elastic = job.get("elastic")
    if not elastic or not elastic["faultySince"]:
        return ""
    until = add_seconds(elastic["faultySince"], elastic["faultyScaleDownTimeoutSeconds"])
    lost = f"It lost a member at {elastic['faultySince']}; it had {elastic['wanted']} instances before."
    return f"{lost} It waits for a replacement until {until}, and then continues with the remaining instances."


def _preempting(job: JobDetailView, _: datetime) -> Iterator[str]:
    yield f"{job['jobName']} is being preempted{_at_time(job, 'since')}."
    yield _cause(job)
    kind = kind_of_job(job)
    on_with = "to resume from its checkpoint" if kind is None else kind.RESUME
    yield f"It then waits with its entry time, {job['entryTime']}, {on_with}."
    yield _requested_stop(job)


def _completed(job: JobDetailView, _: datetime) -> Iterator[str]:
    count = attempt_count(job)
    yield f"{job['jobName']} completed{_at_time(job)}, after {count} attempt{'s' if count > 1 else ''}."


def _failed(job: JobDetailView, _: datetime) -> Iterator[str]:
    yield f"{job['jobName']} failed{_at_time(job)}."
    yield _sentence(job["failureReason"] or "")


def _ended_by_hand(job: JobDetailView, _: datetime) -> Iterator[str]:
    end = " for good" if job["jobState"] == "stopped" else " while waiting"
    yield f"{job['jobName']} was {job['jobState']}{_at_time(job)}{end}."
    yield _cause(job)


def _other_state(job: JobDetailView, _: datetime) -> Iterator[str]:
    yield f"{job['jobName']} is {job['jobState']}."
    yield _sentence(reason_text(job["reason"]))


_EXPLAINERS: Mapping[str, Callable[[JobDetailView, datetime], Iterator[str]]] = {
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


def _outlook(job: JobDetailView, now: datetime) -> Iterator[str]:
    """Say why it waits, when it is likely to start, and what would help."""
    reason, start = job["reason"], start_sentence(job, now)
    if reason:
        known = REASONS.get(reason["type"])
        yield _sentence(("" if known is None else known.subject) + reason["message"])
    yield from wait_sentences(job.get("why"))
    if reason:
        yield start or "Its start cannot be estimated."
    else:
        yield "It starts in the next pass."
    yield deadline_sentence(job)


def _place(job: JobDetailView) -> str:
    if job["position"] is not None:
        return f" at position {job['position']}"
    return f" at position {job['positionAtLeast']} or later" if job["positionAtLeast"] is not None else ""


def _last_attempt(job: JobDetailView) -> str:
    """Say how the newest attempt of a waiting job ended."""
    if not job["attempts"]:
        return ""
    last = _newest(job)
    return _sentence(f"Attempt {last['number']}: {reason_text(last['reason']) or last['outcome']}")


def _attempt_name(job: JobDetailView) -> str:
    """Return the newest attempt; only attempts of training jobs have a name outside the queue."""
    attempt = _newest(job)
    number = f"attempt {attempt['number']}"
    return number if not is_training_job(job) else f"{attempt['trainingJobName']} ({number})"


def _capacity(job: JobDetailView) -> str:
    """Return the newest attempt's capacity if the queue chose it, else the job's demand."""
    attempt = _newest(job)
    chosen = attempt.get("instanceType") or job.get("elastic") or (not is_training_job(job) and attempt["units"])
    return attempt_placement(attempt) if chosen else demand_text(job)


def _newest(job: JobDetailView) -> AttemptView:
    return job["attempts"][-1]


def _at_time(job: JobDetailView, preposition: str = "at") -> str:
    """Return the time at which the job entered its state."""
    change = _change(job)
    return f" {preposition} {change['at']}" if change else ""


def _cause(job: JobDetailView) -> str:
    """Return the reason for which the job entered its state."""
    change = _change(job)
    return _sentence(reason_text(change["reason"])) if change else ""


def _change(job: JobDetailView) -> HistoryEntryView | None:
    """Return the newest transition into the job's state; entries without a change of state do not count."""
    state = job["jobState"]
    return next((line for line in reversed(job["history"]) if line["to"] == state != line["from"]), None)


def _requested_stop(job: JobDetailView) -> str:
    """Return the stop request for a job that still holds capacity."""
    since = takewhile(lambda line: line["from"] == line["to"], reversed(job["history"]))
    request = next((line for line in since if "stop" in reason_text(line["reason"])), None)
    return _sentence(f"{reason_text(request['reason'])} at {request['at']}") if request else ""


def _sentence(text: str) -> str:
    """Capitalise the text and end it with a full stop."""
    return text[:1].upper() + text[1:].rstrip(".") + "." if text else ""
