"""A job as one compact JSON text, and back: all that the small attributes of its row do not say.

Compact because DynamoDB charges by the kilobyte: what has its default value is left out, times are seconds since
the job's entry, and an attempt's name is left out where it follows from job and number. It must not know rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from trainmaster.adapters.dynamodb.attempt_codec import (
    Seconds,
    attempt_of,
    attempt_values,
    optional_span,
    seconds_of,
    since,
    span_seconds,
)
from trainmaster.domain.capacity.resources import Resources
from trainmaster.domain.capacity.units import Demand
from trainmaster.domain.document import document, value_of
from trainmaster.domain.elastic.sizes import Elastic
from trainmaster.domain.jobs.attempt import Attempt
from trainmaster.domain.jobs.attempt_totals import AttemptTotals
from trainmaster.domain.jobs.job import Change, Job, JobState, ParentRule, Reservation
from trainmaster.domain.jobs.work import Work, work_of_values
from trainmaster.domain.policy.settings import DEFAULT_SHARE, FailureClass, PreemptionOverrides

STATES: Mapping[str, JobState] = {state.value: state for state in JobState}
"""Several times as quick as calling the enumeration, which matters for a thousand rows."""
_FAILURES: Mapping[str, FailureClass] = {failure.value: failure for failure in FailureClass}
_DAY = timedelta(days=1)
_NO_WISHES = PreemptionOverrides()


def packed(job: Job, lines: Iterable[Change]) -> str:
    """The job as JSON text, with these lines of its history."""
    return _text(_without_defaults(job) | {"history": [_line(line, job.entry_time) for line in lines]})


def unpacked(text: str, name: str, entry: datetime) -> dict[str, Any]:
    """Fields of the job of such a text; what a newer version has added is left alone."""
    values = json.loads(text)
    known = ((_READERS[key], value) for key, value in values.items() if key in _READERS)
    fields = {field: read(value, name, entry) for (field, read), value in known}
    if "ours" in values or "asks" in values:
        fields["demand"] = replace(
            fields["demand"], queue_selects_pool="ours" in values, **_asks_of(values.get("asks"))
        )
    return fields


def packed_lines(lines: Iterable[Change], entry: datetime) -> str:
    """A part of a history as JSON text."""
    return _text([_line(line, entry) for line in lines])


def unpacked_lines(text: str, entry: datetime) -> tuple[Change, ...]:
    """The lines of such a text."""
    return _read_history(json.loads(text), "", entry)


def _text(value: Any) -> str:
    # ASCII only: then even text that is not valid Unicode comes back as it was.
    return json.dumps(value, separators=(",", ":"))


def _without_defaults(job: Job) -> dict[str, Any]:
    entry = job.entry_time
    values = {
        "demand": [dict(units) for units in job.demand.alternatives],
        "digest": job.digest,
        "ours": job.demand.queue_selects_pool or None,
        "asks": _asks(job.demand),
        "share": job.share if job.share != DEFAULT_SHARE else None,
        "fixed": None if job.preemptible else True,
        "maxRuntime": seconds_of(job.max_runtime) if job.max_runtime != _DAY else None,
        "maxPending": span_seconds(job.max_pending),
        "keepAlive": job.keep_alive or None,
        "fit": job.warm_pool_key or None,
        "image": job.container_image or None,
        "saves": job.checkpointed or None,
        "by": job.submitted_by,
        "attempt": None if job.attempt is None else attempt_values(job.attempt, job),
        "past": [attempt_values(attempt, job) for attempt in job.past] or None,
        "earlier": document(job.earlier, sparse=True) or None,
        "hold": None if job.reservation is None else [dict(job.reservation.units), since(entry, job.reservation.until)],
        "retryAt": since(entry, job.retry_at),
        "returns": job.capacity_failures or None,
        "stop": job.stop_requested or None,
        "failure": job.failure,
        "endedAt": since(entry, job.ended_at),
        **_rules(job),
    }
    return {key: value for key, value in values.items() if value is not None}


def _rules(job: Job) -> dict[str, Any]:
    """What its user asked for by tags; most jobs have none of it."""
    entry, wishes = job.entry_time, job.wishes
    spans = (wishes.min_runtime, wishes.cooldown, wishes.delay)
    return {
        "wishes": [*map(span_seconds, spans), wishes.max_preemptions] if wishes != _NO_WISHES else None,
        "notBefore": since(entry, job.not_before),
        "deadline": since(entry, job.deadline),
        "after": list(job.after) or None,
        "ifParentFails": job.if_parent_fails.value if job.if_parent_fails is not ParentRule.CANCEL else None,
        "group": job.group,
        "groupMost": job.max_concurrent,
        "retries": dict(job.retries) or None,
        "failures": dict(job.failures) or None,
        "heldBy": job.held_by,
        "elastic": None if job.elastic is None else document(job.elastic, sparse=True),
        "work": None if job.work is None else [job.work.kind, *job.work.values()],
    }


def _line(line: Change, entry: datetime) -> list[Any]:
    values = [since(entry, line.at), line.before and line.before.value, line.after.value, line.reason]
    told = [line.attempt, line.size]
    while told and told[-1] is None:
        told.pop()
    return [*values, *told]


def _same(value: Any, _name: str, _entry: datetime) -> Any:
    return value


def _read_span(value: Seconds, _name: str, _entry: datetime) -> timedelta:
    return timedelta(seconds=value)


def _read_moment(value: Seconds, _name: str, entry: datetime) -> datetime:
    return entry + timedelta(seconds=value)


def _read_demand(value: list[dict[str, int]], _name: str, _entry: datetime) -> Demand:
    return Demand(tuple(value))


def _asks(demand: Demand) -> list[Any] | None:
    """What a demand by resource asks for, how often, and how many of its alternatives the job names itself."""
    asked = demand.resources
    return None if asked is None else [document(asked, sparse=True), demand.instances, demand.listed]


def _asks_of(value: Sequence[Any] | None) -> dict[str, Any]:
    if value is None:
        return {}
    asked, instances, listed = value
    return {"resources": value_of(Resources, asked), "instances": instances, "listed": listed}


def _read_wishes(value: list[Any], _name: str, _entry: datetime) -> PreemptionOverrides:
    *spans, most = value
    min_runtime, cooldown, delay = map(optional_span, spans)
    return PreemptionOverrides(min_runtime=min_runtime, cooldown=cooldown, delay=delay, max_preemptions=most)


def _read_elastic(value: Mapping[str, Any], _name: str, _entry: datetime) -> Elastic:
    return value_of(Elastic, value)


def _read_work(value: list[Any], _name: str, _entry: datetime) -> Work:
    return work_of_values(value[0], value[1:])


def _read_failures(value: Mapping[str, int], _name: str, _entry: datetime) -> Mapping[FailureClass, int]:
    return {_FAILURES[failure]: times for failure, times in value.items()}


def _read_names(value: list[str], _name: str, _entry: datetime) -> tuple[str, ...]:
    return tuple(value)


def _read_parent_rule(value: str, _name: str, _entry: datetime) -> ParentRule:
    return ParentRule(value)


def _read_reservation(value: list[Any], _name: str, entry: datetime) -> Reservation:
    return Reservation(value[0], entry + timedelta(seconds=value[1]))


def _read_attempts(value: list[Any], name: str, entry: datetime) -> tuple[Attempt, ...]:
    return tuple(attempt_of(one, name, entry) for one in value)


def _read_earlier(value: Mapping[str, Any], _name: str, _entry: datetime) -> AttemptTotals:
    return value_of(AttemptTotals, value)


def _read_history(value: list[Any], _name: str, entry: datetime) -> tuple[Change, ...]:
    return tuple(_read_line(line, entry) for line in value)


def _read_line(value: list[Any], entry: datetime) -> Change:
    seconds, before, after, reason, attempt, size, *_ = (*value, None, None)
    at = entry + timedelta(seconds=seconds)
    return Change(at, before and STATES[before], STATES[after], reason, attempt, size)


_READERS: Mapping[str, tuple[str, Callable[[Any, str, datetime], Any]]] = {
    "demand": ("demand", _read_demand),
    "digest": ("digest", _same),
    "share": ("share", _same),
    "fixed": ("preemptible", lambda *_: False),
    "maxRuntime": ("max_runtime", _read_span),
    "maxPending": ("max_pending", _read_span),
    "keepAlive": ("keep_alive", _same),
    "fit": ("warm_pool_key", _same),
    "image": ("container_image", _same),
    "saves": ("checkpointed", _same),
    "by": ("submitted_by", _same),
    "attempt": ("attempt", attempt_of),
    "past": ("past", _read_attempts),
    "earlier": ("earlier", _read_earlier),
    "hold": ("reservation", _read_reservation),
    "retryAt": ("retry_at", _read_moment),
    "returns": ("capacity_failures", _same),
    "stop": ("stop_requested", _same),
    "failure": ("failure", _same),
    "endedAt": ("ended_at", _read_moment),
    "wishes": ("wishes", _read_wishes),
    "notBefore": ("not_before", _read_moment),
    "deadline": ("deadline", _read_moment),
    "after": ("after", _read_names),
    "ifParentFails": ("if_parent_fails", _read_parent_rule),
    "group": ("group", _same),
    "groupMost": ("max_concurrent", _same),
    "retries": ("retries", _read_failures),
    "failures": ("failures", _read_failures),
    "heldBy": ("held_by", _same),
    "elastic": ("elastic", _read_elastic),
    "work": ("work", _read_work),
    "history": ("history", _read_history),
}
