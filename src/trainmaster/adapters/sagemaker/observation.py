"""Reads training jobs from Describe answers and EventBridge events into values of the domain.

Both have the same members; an event has times as milliseconds and tags as a map (SageMaker developer guide, "Events
that SageMaker sends to EventBridge"). Raises nothing but `InvalidRequest` for any input, because strangers can send
messages to the queue.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from trainmaster.adapters.sagemaker.request import ATTEMPT_TAG, JOB_TAG, QUEUE_TAG, START_TAG, tag_value
from trainmaster.domain.capacity.units import Units, source, total, worst_case
from trainmaster.domain.capacity.warm_pools import MAX_KEEP_ALIVE
from trainmaster.domain.compat import UTC
from trainmaster.domain.errors import InvalidRequest
from trainmaster.domain.jobs.names import MAX_NAME
from trainmaster.domain.jobs.observation import TERMINAL, Observation, Status, Warm
from trainmaster.domain.requests.fields import entries, part, shown, text, whole
from trainmaster.domain.text import MAX_REASON_LENGTH
from trainmaster.ports.sagemaker import OpenJob, Owner, StartedJob

DETAIL_TYPE = "SageMaker Training Job State Change"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECONDS = re.compile(r"[0-9]{1,15}(\.[0-9]{1,9})?")
_STATUSES = frozenset(Status)
_WARM = frozenset(Warm)
INTERRUPTED = "Interrupted"
"""The secondary status of a spot job whose instances EC2 reclaimed (SageMaker API, DescribeTrainingJob)."""
_NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9])*")

Object = Mapping[str, object]


def observation_of_event(event: object, queue: str) -> Observation | None:
    """Return an event's observation, None if its training job cannot be this queue's.

    Every attempt carries its queue's tag from the start, so an event with other tags concerns another job. An event
    without tags may concern this queue: SageMaker does not promise to send them.

    Args:
        event: any JSON value.
        queue: this queue's name.

    Raises `InvalidRequest` with the field if the event concerns a training job and is unreadable.
    """
    if not isinstance(event, Mapping) or event.get("detail-type") != DETAIL_TYPE:
        return None
    detail = event.get("detail")
    if not isinstance(detail, Mapping):
        raise _bad("detail", detail, "an object")
    tags = _tags(detail)
    if tags and tags.get(QUEUE_TAG) != tag_value(queue):
        return None
    return _observation(detail, "detail.", tags.get(JOB_TAG))


def observation_of_answer(answer: Object) -> Observation:
    """Return the observation in a DescribeTrainingJob answer. Raises `InvalidRequest` if it is unreadable.

    Unlike an event, an answer is complete: without a warm pool's status there is no warm pool.
    """
    seen = _observation(answer, "", None)
    return seen if seen.warm is not None else replace(seen, warm=Warm.NONE)


def units_of_answer(answer: Object) -> Units:
    """Return the instances that a described training job holds, by their source (`capacity.source`).

    Empty once it has ended, and for a serverless job, which has no instances. With instance preferences it is
    SageMaker's choice, before that the worst case.
    """
    return {} if _status(answer, "") in TERMINAL else requested_units(answer)


def requested_units(answer: Object) -> Units:
    """Return the instances that a described training job holds or held, by their source."""
    plan = text(part(answer, "ResourceConfig"), "TrainingPlanArn")
    spot = answer.get("EnableManagedSpotTraining") is True
    held = _types(part(answer, "ResourceConfig"))
    return total({source(name, spot=spot, plan_arn=plan): count} for name, count in held.items())


def open_job_of_answer(answer: Object, tags: Mapping[str, str], queue: str) -> OpenJob:
    """Return a described training job with its owner, by its visible tags.

    Raises `InvalidRequest` if the answer is unreadable.
    """
    created_at = _time(answer.get("CreationTime"), "CreationTime")
    if created_at is None:
        raise _bad("CreationTime", None, "a time")
    is_ours = tags.get(QUEUE_TAG) == tag_value(queue)
    unknown = Owner.OTHER if tags else Owner.UNKNOWN
    return OpenJob(
        name=_name(answer.get("TrainingJobName"), "TrainingJobName"),
        created_at=created_at,
        units=units_of_answer(answer),
        owner=Owner.QUEUE if is_ours else unknown,
        job_name=tags.get(JOB_TAG, "") if is_ours else "",
        keep_alive=bool(whole(part(answer, "ResourceConfig"), "KeepAlivePeriodInSeconds")),
        stopping=_status(answer, "") is Status.STOPPING,
    )


def started_job_of_answer(answer: Object, tags: Mapping[str, str], queue: str) -> StartedJob | None:
    """Return a described training job of this queue, None for another's. Raises `InvalidRequest` if unreadable."""
    attempt, start = tags.get(ATTEMPT_TAG, ""), tags.get(START_TAG, "")
    if tags.get(QUEUE_TAG) != tag_value(queue) or not attempt.isdecimal() or JOB_TAG not in tags:
        return None
    created_at = _time(answer.get("CreationTime"), "CreationTime")
    if created_at is None:
        raise _bad("CreationTime", None, "a time")
    try:
        decided_at = datetime.fromisoformat(start)
    except ValueError:
        decided_at = created_at
    return StartedJob(
        seen=observation_of_answer(answer),
        units=requested_units(answer),
        job_name=tags[JOB_TAG],
        attempt=int(attempt),
        decided_at=decided_at,
    )


def _types(config: Object) -> Units:
    """Return instances by type."""
    if selected := text(config, "SelectedInstanceType"):
        return _selected(config, selected)
    if groups := entries(config, "InstanceGroups"):
        return total(_units(group, config) for group in groups)
    if preferences := entries(config, "InstancePreferences"):
        return worst_case(_units(preference, config) for preference in preferences)
    return _units(config, config)


def _selected(config: Object, selected: str) -> dict[str, int]:
    if count := whole(config, "SelectedInstanceCount"):
        return {selected: count}
    listed = worst_case(_units(entry, config) for entry in entries(config, "InstancePreferences"))
    return {name: count for name, count in listed.items() if name == selected}


def _units(entry: Object, config: Object) -> dict[str, int]:
    """Return the instances of one group or preference; the count may stand once, beside them all."""
    name = text(entry, "InstanceType")
    count = whole(entry, "InstanceCount") or whole(config, "InstanceCount") or 0
    return {name: count} if name and count > 0 else {}


def _observation(detail: Object, path: str, job_name: str | None) -> Observation:
    return Observation(
        training_job_name=_name(detail.get("TrainingJobName"), f"{path}TrainingJobName"),
        status=_status(detail, path),
        secondary=_text(detail, "SecondaryStatus", path) or "",
        job_name=None if job_name is None else _name(job_name, f"{path}Tags.{JOB_TAG}"),
        failure_reason=_reason(detail, path),
        created_at=_time(detail.get("CreationTime"), f"{path}CreationTime"),
        started_at=_time(detail.get("TrainingStartTime"), f"{path}TrainingStartTime"),
        stopping_since=_stopping_since(detail, path),
        chosen_type=text(part(detail, "ResourceConfig"), "SelectedInstanceType"),
        warm=_warm(detail),
        warm_until=_warm_until(detail, path),
        interruptions=_interruptions(detail),
    )


def _status(detail: Object, path: str) -> Status:
    value = detail.get("TrainingJobStatus")
    if isinstance(value, str) and value in _STATUSES:
        return Status(value)
    raise _bad(f"{path}TrainingJobStatus", value, "a training job's status")


def _reason(detail: Object, path: str) -> str | None:
    """Return the failure reason as the table can store it: cut, and without halves of surrogate pairs."""
    reason = (_text(detail, "FailureReason", path) or "")[:MAX_REASON_LENGTH]
    return reason.encode(errors="replace").decode() or None


def _stopping_since(detail: Object, path: str) -> datetime | None:
    """Return the time of the last `Stopping` step in SageMaker's list of secondary statuses."""
    steps = entries(detail, "SecondaryStatusTransitions")
    for index in reversed(range(len(steps))):
        if steps[index].get("Status") == "Stopping":
            field = f"{path}SecondaryStatusTransitions[{index}].StartTime"
            return _time(steps[index].get("StartTime"), field)
    return None


def _interruptions(detail: Object) -> int:
    """Return the number of spot interruptions: each begins a step of its own in SageMaker's list."""
    steps = entries(detail, "SecondaryStatusTransitions")
    listed = sum(step.get("Status") == INTERRUPTED for step in steps)
    return listed or int(detail.get("SecondaryStatus") == INTERRUPTED)


def _warm(detail: Object) -> Warm | None:
    status = text(part(detail, "WarmPoolStatus"), "Status")
    return Warm(status) if status in _WARM else None


def _warm_until(detail: Object, path: str) -> datetime | None:
    """Return the end of the warm pool of a job that has ended; None without one."""
    kept = whole(part(detail, "ResourceConfig"), "KeepAlivePeriodInSeconds")
    ended = _time(detail.get("TrainingEndTime"), f"{path}TrainingEndTime")
    return None if ended is None or not kept else ended + min(timedelta(seconds=kept), MAX_KEEP_ALIVE)


def _name(value: object, field: str) -> str:
    if isinstance(value, str) and len(value) <= MAX_NAME and _NAME.fullmatch(value):
        return value
    raise _bad(field, value, "a training job's name")


def _text(detail: Object, key: str, path: str) -> str | None:
    value = detail.get(key)
    if value is None or isinstance(value, str):
        return value
    raise _bad(path + key, value, "a string")


def _time(value: object, field: str) -> datetime | None:
    """Return a time from Describe (a datetime) or an event (milliseconds, a number or its text, or ISO 8601)."""
    if value is None:
        return None
    try:
        return _moment(value).astimezone(UTC)
    except (TypeError, ValueError, OverflowError) as error:
        raise _bad(field, value, "a time") from error


def _moment(value: object) -> datetime:
    """Return the time. Raises `TypeError`, `ValueError` or `OverflowError` if it is invalid."""
    if isinstance(value, datetime):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _EPOCH + timedelta(milliseconds=value)
    if not isinstance(value, str):
        raise TypeError("neither a number nor a string")
    if _MILLISECONDS.fullmatch(value):
        return _EPOCH + timedelta(milliseconds=float(value))
    moment = datetime.fromisoformat(value)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _tags(detail: Object) -> dict[str, str]:
    """Return the tags of an event; empty without the member."""
    tags = detail.get("Tags")
    if tags is None:
        return {}
    if not isinstance(tags, Mapping):
        raise _bad("detail.Tags", tags, "an object")
    return {key: value for key, value in tags.items() if isinstance(value, str)}


def _bad(field: str, value: object, wanted: str) -> InvalidRequest:
    hint = "See the SageMaker developer guide, 'Events that SageMaker sends to EventBridge'."
    return InvalidRequest(f"{field} is {shown(value)}, not {wanted}.", field=field, hint=hint)
