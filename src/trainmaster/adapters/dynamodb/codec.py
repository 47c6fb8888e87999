"""A job as one compact JSON text, and back: everything beyond the small attributes of its row.

Compact because DynamoDB charges by the kilobyte: default values are left out, times are seconds since the job's entry,
and an attempt's name is left out if it follows from job and number.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeAlias

from trainmaster.domain.capacity.resources import Resources
from trainmaster.domain.capacity.units import Demand, Units
from trainmaster.domain.document import document, keep_unknown, value_of
from trainmaster.domain.document import member_name as member_key
from trainmaster.domain.elastic.scaling import Speed, Speeds
from trainmaster.domain.elastic.sizes import Cause, Elastic, Member, Resizing
from trainmaster.domain.jobs.attempt import Attempt, Outcome, Release
from trainmaster.domain.jobs.attempt_totals import AttemptTotals
from trainmaster.domain.jobs.job import Change, Job, JobState, ParentRule, Reservation
from trainmaster.domain.jobs.names import attempt_name, member_name
from trainmaster.domain.jobs.work import Work, kind_of_run, work_of_values
from trainmaster.domain.policy.settings import FailureClass, PreemptionOverrides
from trainmaster.domain.value_types import Check, check_fields, check_of, checks_of_fields

Seconds: TypeAlias = int | float
# Looking an enumeration's member up is several times as fast as calling the enumeration, for a thousand rows.
STATES: Mapping[str, JobState] = {state.value: state for state in JobState}
_FAILURES: Mapping[str, FailureClass] = {failure.value: failure for failure in FailureClass}
_OUTCOMES: Mapping[str, Outcome] = {outcome.value: outcome for outcome in Outcome}
ROW_FIELDS = frozenset({"name", "entry_time", "priority", "state", "version"})
"""Fields of a job that are attributes of its row."""
JOB, ROW = "job", "row"
"""Parts of `Job.unknown`: members of the job's text, and attributes of its row."""
_BY_QUEUE, _RESOURCES = "queueSelectsPool", "resources"
_LAUNCHED, _STOP_SENT = 1, 2
_is_units = check_of(Units)
_REQUESTED, _GIVEN_UP = 1, 2


class Owner(NamedTuple):
    """Context of a stored value: the job's name and entry time, and the number of the attempt."""

    job: str
    entry: datetime
    attempt: int = 0


class Codec(NamedTuple):
    """Conversion of a value to JSON and back.

    Attributes:
        exact: whether `read` returns values of the right types only, so that they need no check.
    """

    write: Callable[[Any, Owner], Any]
    read: Callable[[Any, Owner], Any]
    exact: bool = False


class Stored(NamedTuple):
    """Declaration of a stored field.

    Attributes:
        field: field of the dataclass.
        codec: conversion of values other than the field's default, which is not stored.
        key: member of the JSON object, the field's name in camelCase.
    """

    field: str
    codec: Codec
    key: str


class Reader(NamedTuple):
    """The reader of a stored member: its field, its conversion unless it is stored as it is, and a check if needed."""

    field: str
    read: Callable[[Any, Owner], Any] | None
    check: Check | None


def encode_job(job: Job, lines: Iterable[Change]) -> str:
    """Return the job as JSON text, with these lines of its history."""
    values = _written(job, _JOB_DEFAULTS, Owner(job.name, job.entry_time))
    values |= _demand_values(job.demand) | {"history": [_line(line, job.entry_time) for line in lines]}
    return _text(_with_unknown(values, job.unknown.get(JOB, {})))


def decode_job(text: str, name: str, entry: datetime) -> dict[str, Any]:
    """Return the fields of the job in such a text; members of newer releases are in `unknown`."""
    values, owner = json.loads(text), Owner(name, entry)
    found = _read(values, _JOB_KEYS, owner)
    if unknown := _unknown_members(values):
        found["unknown"] = {JOB: unknown}
    if _BY_QUEUE in values or _RESOURCES in values:
        resources = _resources_of(values.get(_RESOURCES))
        found["demand"] = replace(found["demand"], queue_selects_pool=_BY_QUEUE in values, **resources)
        check_fields(found["demand"])
    return found


def _unknown_members(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members that this release does not know, also those inside its documents."""
    if _PLAIN.issuperset(values):
        return {}
    unknown = {key: values[key] for key in values.keys() - _KNOWN_OF_JOB}
    for key, kind in _DOCUMENTS.items():
        if key in values and (inside := keep_unknown(kind, {}, values[key])):
            unknown[key] = inside
    return unknown


def _with_unknown(values: dict[str, Any], unknown: Mapping[str, Any]) -> dict[str, Any]:
    for key, value in unknown.items():
        kind = _DOCUMENTS.get(key)
        if kind is None:
            values.setdefault(key, value)
        elif key in values:
            values[key] = keep_unknown(kind, values[key], value)
    return values


def encode_history(lines: Iterable[Change], entry: datetime) -> str:
    """Return a part of a history as JSON text."""
    return _text([_line(line, entry) for line in lines])


def decode_history(text: str, entry: datetime) -> tuple[Change, ...]:
    """Return the history lines of such a text."""
    return tuple(_line_of(line, entry) for line in json.loads(text))


def _text(value: Any) -> str:
    # ASCII escapes preserve even text that is not valid Unicode.
    return json.dumps(value, separators=(",", ":"))


def _written(value: Any, table: Sequence[tuple[Stored, Any]], owner: Owner) -> dict[str, Any]:
    """Return the stored values of the fields that do not have their default."""
    return {
        stored.key: stored.codec.write(found, owner)
        for stored, default in table
        if (found := getattr(value, stored.field)) is not default and found != default
    }


def _read(values: Mapping[str, Any], table: Mapping[str, Reader], owner: Owner) -> dict[str, Any]:
    """Return the values of the known members by field. Raises `TypeError` for one of another type than its field."""
    found = {}
    for key, value in values.items():
        if reader := table.get(key):
            field, read, check = reader
            made = found[field] = value if read is None else read(value, owner)
            if check is not None and not check(made):
                raise TypeError(f"{field} has a value of another type")
    return found


# ---------------------------------------------------------------- values


def _seconds(span: timedelta) -> Seconds:
    """Return whole seconds as an integer; a float keeps microseconds exactly for two centuries."""
    seconds = span.total_seconds()
    return int(seconds) if seconds.is_integer() else seconds


def _release(release: Release, owner: Owner) -> list[Any]:
    return [_seconds(release.at - owner.entry), release.left]


def _release_of(value: list[Any], owner: Owner) -> Release:
    return Release(owner.entry + timedelta(seconds=value[0]), value[1])


def _since(entry: datetime, time: datetime | None) -> Seconds | None:
    return None if time is None else _seconds(time - entry)


def _at(entry: datetime, seconds: Seconds | None) -> datetime | None:
    return None if seconds is None else entry + timedelta(seconds=seconds)


def _demand_values(demand: Demand) -> dict[str, Any]:
    """Return what a demand has besides alternatives: by resources, with the number of its own alternatives."""
    resources = demand.resources
    if resources is None:
        values = {}
    else:
        values = {_RESOURCES: [document(resources, sparse=True), demand.instances, demand.listed]}
    return {_BY_QUEUE: True, **values} if demand.queue_selects_pool else values


def _alternatives_of(value: Sequence[Any]) -> tuple[Units, ...]:
    for units in value:
        if not _is_units(units):
            raise TypeError("demand has a value of another type")
    return tuple(value)


def _resources_of(value: Sequence[Any] | None) -> dict[str, Any]:
    if value is None:
        return {}
    resources, instances, listed = value
    return {"resources": value_of(Resources, resources), "instances": instances, "listed": listed}


def _overrides(overrides: PreemptionOverrides, _: Owner) -> list[Any]:
    spans = (overrides.min_runtime, overrides.cooldown, overrides.delay)
    return [*(None if span is None else _seconds(span) for span in spans), overrides.max_preemptions]


def _overrides_of(value: Sequence[Any], _: Owner) -> PreemptionOverrides:
    *spans, limit = value
    min_runtime, cooldown, delay = (None if span is None else timedelta(seconds=span) for span in spans)
    return PreemptionOverrides(min_runtime=min_runtime, cooldown=cooldown, delay=delay, max_preemptions=limit)


def _line(line: Change, entry: datetime) -> list[Any]:
    values = [_since(entry, line.at), line.before and line.before.value, line.after.value, line.reason]
    last = [line.attempt, line.size]
    while last and last[-1] is None:
        last.pop()
    return [*values, *last]


def _line_of(value: Sequence[Any], entry: datetime) -> Change:
    """Return the line. Raises `TypeError` for a part of another type; each row has several lines."""
    parts: tuple[Any, ...] = (*value, None, None)
    seconds, before, after, reason, attempt, size, *_ = parts
    if reason.__class__ is not str or not (attempt is None or attempt.__class__ is int):
        raise TypeError("a line of the history has a value of another type")
    if not (size is None or size.__class__ is int):
        raise TypeError("a line of the history has a size of another type")
    at = entry + timedelta(seconds=seconds)
    return Change(at, before and STATES[before], STATES[after], reason, attempt, size)


def _member(member: Member, owner: Owner) -> list[Any]:
    """Return its number or name, when it was decided, what was done with it, and up to four times."""
    name = member.training_job_name
    which = name.rpartition("-m")[2]
    follows = which.isdecimal() and which.isascii() and name == member_name(owner.job, owner.attempt, int(which))
    times = (member.created_at, member.started_at, member.drain_asked_at, member.left_at, member.called_at)
    created, *others = (_since(owner.entry, time) for time in times)
    done = _LAUNCHED * member.launched + _STOP_SENT * member.stop_sent
    values = [int(which) if follows else name, created, done, *others]
    while values[-1] is None:
        values.pop()
    return values


def _member_of(value: Sequence[Any], owner: Owner) -> Member:
    which, created, done, started, drained, left, called, *_ = (*value, None, None, None, None)
    return Member(
        training_job_name=which if isinstance(which, str) else member_name(owner.job, owner.attempt, which),
        created_at=owner.entry + timedelta(seconds=created),
        launched=bool(done & _LAUNCHED),
        stop_sent=bool(done & _STOP_SENT),
        started_at=_at(owner.entry, started),
        drain_asked_at=_at(owner.entry, drained),
        left_at=_at(owner.entry, left),
        called_at=_at(owner.entry, called),
    )


def _resizing(resizing: Resizing, owner: Owner) -> list[Any]:
    """Return from, to, the cause, two times, what was done, and the job for which it frees capacity."""
    done = _REQUESTED * resizing.hook_called + _GIVEN_UP * resizing.given_up
    times = (_since(owner.entry, resizing.asked_at), _since(owner.entry, resizing.until))
    return [resizing.before, resizing.after, resizing.cause.value, *times, done, resizing.freed_for]


def _resizing_of(value: Sequence[Any], owner: Owner) -> Resizing:
    before, after, cause, start, until, done, freed_for, *_ = value
    return Resizing(
        before=before,
        after=after,
        cause=Cause(cause),
        asked_at=owner.entry + timedelta(seconds=start),
        until=owner.entry + timedelta(seconds=until),
        freed_for=freed_for,
        hook_called=bool(done & _REQUESTED),
        given_up=bool(done & _GIVEN_UP),
    )


def _speeds(speeds: Speeds, owner: Owner) -> list[Any]:
    """Return the pool, and for each size instances, rate, reports, when the last was measured, and the latest."""
    return [speeds.pool, *(_speed(speed, owner) for speed in speeds.of_sizes)]


def _speed(speed: Speed, owner: Owner) -> list[Any]:
    known: list[Any] = [speed.instances, speed.rate, speed.reports]
    # The first three, and for the last size the time, are all that earlier releases read.
    return known if speed.measured_at is None else [*known, _since(owner.entry, speed.measured_at), list(speed.latest)]


def _speeds_of(value: Sequence[Any], owner: Owner) -> Speeds:
    pool, *sizes = value
    speeds = Speeds(pool, tuple(_speed_of(size, owner) for size in sizes))
    for speed in speeds.of_sizes:
        check_fields(speed)
    return speeds


def _speed_of(value: Sequence[Any], owner: Owner) -> Speed:
    instances, rate, reports, *rest = value
    latest = tuple(map(float, rest[1])) if len(rest) > 1 else ()
    return Speed(instances, float(rate), reports, latest, _at(owner.entry, rest[0] if rest else None))


def _attempt(attempt: Attempt, owner: Owner) -> dict[str, Any]:
    """Return the attempt's number, its fields, and its name unless that follows from the job's name and the number."""
    owner = owner._replace(attempt=attempt.number)
    named = {"number": attempt.number, **_name(attempt.training_job_name, owner)}
    return {**attempt.unknown, **named, **_written(attempt, _ATTEMPT_DEFAULTS, owner)}


def _attempt_of(value: Mapping[str, Any], owner: Owner) -> Attempt:
    number, name = value["number"], value.get("trainingJobName")
    if number.__class__ is not int or not (name is None or name.__class__ is str):
        raise TypeError("an attempt has a number or a name of another type")
    owner = Owner(owner.job, owner.entry, number)
    found = _read(value, _ATTEMPT_KEYS, owner)
    if not _KNOWN_OF_ATTEMPT.issuperset(value):
        found["unknown"] = {key: value[key] for key in value.keys() - _KNOWN_OF_ATTEMPT}
    return Attempt(number=number, training_job_name=name or _usual_name(value, owner), **found)


def _name(name: str, owner: Owner) -> dict[str, str]:
    """Return the kind of a run with its usual name, nothing for a training job with its usual one, else the name."""
    known = Work.kinds().get(kind := kind_of_run(name))
    if known is not None and name == known.run_name(owner.job, owner.attempt):
        return {"run": kind}
    return {} if known is None and name == attempt_name(owner.job, owner.attempt) else {"trainingJobName": name}


def _usual_name(value: Mapping[str, Any], owner: Owner) -> str:
    named = Work.of_kind(value["run"]).run_name if "run" in value else attempt_name
    return named(owner.job, owner.attempt)


# ---------------------------------------------------------------- tables

_SAME = Codec(lambda value, _: value, lambda value, _: value)
_SPAN = Codec(lambda span, _: _seconds(span), lambda seconds, _: timedelta(seconds=seconds))
_MOMENT = Codec(
    lambda time, owner: _seconds(time - owner.entry),
    lambda seconds, owner: owner.entry + timedelta(seconds=seconds),
)
_NAMES = Codec(lambda names, _: list(names), lambda names, _: tuple(names))
_BY_NAME = Codec(lambda values, _: dict(values), lambda values, _: values)
_FAILURE_COUNTS = Codec(
    lambda counts, _: dict(counts), lambda counts, _: {_FAILURES[failure]: count for failure, count in counts.items()}
)
_ATTEMPT = Codec(_attempt, _attempt_of, exact=True)


def _many(codec: Codec) -> Codec:
    """Return the codec of a tuple of such values."""
    return Codec(
        lambda values, owner: [codec.write(value, owner) for value in values],
        lambda values, owner: tuple(codec.read(value, owner) for value in values),
        exact=codec.exact,
    )


def _sparse(kind: type) -> Codec:
    """Return the codec of a dataclass's document without default values."""
    return Codec(lambda value, _: document(value, sparse=True), lambda value, _: value_of(kind, value))


def _stored(field: str, codec: Codec = _SAME) -> Stored:
    return Stored(field, codec, member_key(field))


JOB_FIELDS = (
    _stored(
        "demand",
        Codec(
            lambda demand, _: [dict(units) for units in demand.alternatives],
            lambda value, _: Demand(_alternatives_of(value)),
            exact=True,
        ),
    ),
    _stored("digest"),
    _stored("share"),
    _stored("preemptible"),
    _stored("max_runtime", _SPAN),
    _stored("max_pending", _SPAN),
    _stored("keep_alive"),
    _stored("warm_pool_key"),
    _stored("container_image"),
    _stored("checkpointed"),
    _stored("submitted_by"),
    _stored("attempt", _ATTEMPT),
    _stored("past", _many(_ATTEMPT)),
    _stored("attempt_totals", _sparse(AttemptTotals)),
    _stored(
        "reservation",
        Codec(
            lambda kept, owner: [dict(kept.units), _since(owner.entry, kept.until)],
            lambda value, owner: Reservation(value[0], owner.entry + timedelta(seconds=value[1])),
        ),
    ),
    _stored("retry_at", _MOMENT),
    _stored("capacity_failures"),
    _stored("stop_requested"),
    _stored("failure"),
    _stored("ended_at", _MOMENT),
    _stored("preemption_overrides", Codec(_overrides, _overrides_of)),
    _stored("not_before", _MOMENT),
    _stored("deadline", _MOMENT),
    _stored("after", _NAMES),
    _stored("if_parent_fails", Codec(lambda rule, _: rule.value, lambda value, _: ParentRule(value))),
    _stored("group"),
    _stored("max_concurrent"),
    _stored("retries", _FAILURE_COUNTS),
    _stored("failures", _FAILURE_COUNTS),
    _stored("held_by"),
    _stored("elastic", _sparse(Elastic)),
    _stored("speeds", Codec(_speeds, _speeds_of)),
    _stored("infeasible"),
    _stored("callback"),
    _stored("notify", _NAMES),
    _stored(
        "work",
        Codec(lambda work, _: [work.kind, *work.values()], lambda value, _: work_of_values(value[0], value[1:])),
    ),
    _stored(
        "history",
        Codec(
            lambda lines, owner: [_line(line, owner.entry) for line in lines],
            lambda lines, owner: tuple(_line_of(line, owner.entry) for line in lines),
            exact=True,
        ),
    ),
)
"""Every stored field of a job but `ROW_FIELDS`; the history may be stored in parts."""
ATTEMPT_FIELDS = (
    _stored("units", _BY_NAME),
    _stored("created_at", _MOMENT),
    _stored("choices", _NAMES),
    _stored("instance_type"),
    _stored("outcome", Codec(lambda outcome, _: outcome.value, lambda value, _: _OUTCOMES[value], exact=True)),
    _stored("launched"),
    _stored("launched_at", _MOMENT),
    _stored("started_at", _MOMENT),
    _stored("stop_asked_at", _MOMENT),
    _stored("called_at", _MOMENT),
    _stored("stop_sent"),
    _stored("refused"),
    _stored("stop_called_at", _MOMENT),
    _stored("stopped_outside"),
    _stored("end_reported_at", _MOMENT),
    _stored("freed_for"),
    _stored("saved_at", _MOMENT),
    _stored("saves_every", _SPAN),
    _stored("interruptions"),
    _stored("reclaimed_at", _MOMENT),
    _stored("warm_until", _MOMENT),
    _stored("ended_at", _MOMENT),
    _stored("reason"),
    _stored("given"),
    _stored("releases", _many(Codec(_release, _release_of))),
    _stored(
        "turned_down",
        Codec(
            lambda times, owner: {pool: _since(owner.entry, time) for pool, time in times.items()},
            lambda value, owner: {pool: owner.entry + timedelta(seconds=after) for pool, after in value.items()},
        ),
    ),
    _stored("members", _many(Codec(_member, _member_of))),
    _stored("joined"),
    _stored("resizing", Codec(_resizing, _resizing_of)),
    _stored("sized_at", _MOMENT),
    _stored("served"),
    _stored("resizes"),
    _stored("faulty_since", _MOMENT),
    _stored("wanted"),
    _stored("base_ended_at", _MOMENT),
    _stored("successor"),
    _stored("base_lost"),
    _stored("given_up"),
    _stored("restarts"),
)
"""Every stored field of an attempt but its number and its name."""


def _with_defaults(kind: Any, table: Iterable[Stored]) -> tuple[tuple[Stored, Any], ...]:
    """Return the fields with their defaults; `MISSING` for a field without one, which is always stored."""
    factories = {field.name: field.default_factory for field in fields(kind)}
    defaults = {field.name: field.default for field in fields(kind)}
    return tuple(
        (stored, defaults[stored.field] if factory is MISSING else factory())
        for stored in table
        for factory in (factories[stored.field],)
    )


def _readers(kind: type, table: Iterable[Stored]) -> Mapping[str, Reader]:
    checks = checks_of_fields(kind)
    return {
        key: Reader(field, None if codec is _SAME else codec.read, None if codec.exact else checks[field])
        for field, codec, key in table
    }


_JOB_KEYS = _readers(Job, JOB_FIELDS)
_JOB_DEFAULTS = _with_defaults(Job, (stored for stored in JOB_FIELDS if stored.field != "history"))
_ATTEMPT_KEYS = _readers(Attempt, ATTEMPT_FIELDS)
_KNOWN_OF_JOB = frozenset({*_JOB_KEYS, _BY_QUEUE, _RESOURCES})
_KNOWN_OF_ATTEMPT = frozenset({*_ATTEMPT_KEYS, "number", "trainingJobName", "run"})
_DOCUMENTS: Mapping[str, type] = {"elastic": Elastic, "attemptTotals": AttemptTotals}
"""Members of a job that are documents, which a newer release may extend."""
_PLAIN = _KNOWN_OF_JOB - _DOCUMENTS.keys()
_ATTEMPT_DEFAULTS = _with_defaults(Attempt, ATTEMPT_FIELDS)
