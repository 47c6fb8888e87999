"""An attempt as compact JSON values, and back: times as seconds since the job's entry, members and a resize as lists.

Part of `dynamodb_packing`, which makes one text of a whole job. What has its default value is left out, and so is a
name that follows from the job's and numbers. It must not know rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from trainmaster.domain.elastic.sizes import Cause, Member, Resizing
from trainmaster.domain.jobs.attempt import Attempt, Outcome
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.names import attempt_name, member_name
from trainmaster.domain.jobs.work import Work, kind_of_run

Seconds: TypeAlias = int | float
_OUTCOMES: Mapping[str, Outcome] = {outcome.value: outcome for outcome in Outcome}
"""Several times as quick as calling the enumeration, which matters for a thousand rows."""
_LAUNCHED, _STOP_SENT = 1, 2
_TOLD, _GIVEN_UP = 1, 2
_SIZES = frozenset(
    ("members", "joined", "resizing", "sized", "served", "resizes", "faulty", "wanted", "baseEnded", "restarts")
)
"""Members that only attempts of elastic jobs have."""


def attempt_values(attempt: Attempt, job: Job) -> dict[str, Any]:
    """The attempt's members that are not as usual."""
    entry = job.entry_time
    name, usual, kind = _usual_name(attempt, job)
    values = {
        "n": attempt.number,
        "units": dict(attempt.units),
        "at": since(entry, attempt.created_at),
        "name": name if name != usual else None,
        "run": kind if kind and name == usual else None,
        "choices": list(attempt.choices) or None,
        "type": attempt.instance_type or None,
        "outcome": attempt.outcome.value if attempt.outcome is not Outcome.ACTIVE else None,
        "launched": attempt.launched or None,
        "started": since(entry, attempt.started_at),
        "stopAsked": since(entry, attempt.stop_asked_at),
        "stopSent": attempt.stop_sent or None,
        "for": attempt.freed_for,
        "saved": since(entry, attempt.saved_at),
        "savesEvery": span_seconds(attempt.saves_every),
        "interruptions": attempt.interruptions or None,
        "reclaimed": since(entry, attempt.reclaimed_at),
        "warmUntil": since(entry, attempt.warm_until),
        "ended": since(entry, attempt.ended_at),
        "reason": attempt.reason,
        "given": attempt.given or None,
        "turnedDown": {pool: since(entry, moment) for pool, moment in attempt.turned_down.items()} or None,
        **_sizes(attempt, job),
    }
    return {key: value for key, value in values.items() if value is not None}


def attempt_of(value: Mapping[str, Any], name: str, entry: datetime) -> Attempt:
    """The attempt of such values, of the job of this name; what a newer version has added is left alone."""
    get = value.get
    return Attempt(
        number=value["n"],
        training_job_name=get("name") or _name_of(value, name),
        units=value["units"],
        created_at=entry + timedelta(seconds=value["at"]),
        choices=tuple(get("choices", ())),
        instance_type=get("type", ""),
        outcome=_OUTCOMES[get("outcome", "active")],
        launched=get("launched", False),
        started_at=at(entry, get("started")),
        stop_asked_at=at(entry, get("stopAsked")),
        stop_sent=get("stopSent", False),
        freed_for=get("for"),
        saved_at=at(entry, get("saved")),
        saves_every=optional_span(get("savesEvery")),
        interruptions=get("interruptions", 0),
        reclaimed_at=at(entry, get("reclaimed")),
        warm_until=at(entry, get("warmUntil")),
        ended_at=at(entry, get("ended")),
        reason=get("reason"),
        given=get("given", 0),
        turned_down={pool: entry + timedelta(seconds=after) for pool, after in get("turnedDown", {}).items()},
        **(_sizes_of(value, name, entry) if value.keys() & _SIZES else {}),
    )


def _name_of(value: Mapping[str, Any], name: str) -> str:
    return Work.kinds()[value["run"]].run_name(name, value["n"]) if "run" in value else attempt_name(name, value["n"])


def _usual_name(attempt: Attempt, job: Job) -> tuple[str, str, str]:
    """Return the attempt's name, the name that it should have, and the kind of its run; "" for a training job."""
    name, number = attempt.training_job_name, attempt.number
    known = Work.kinds().get(kind := kind_of_run(name))
    return (
        (name, attempt_name(job.name, number), "") if known is None else (name, known.run_name(job.name, number), kind)
    )


def _sizes(attempt: Attempt, job: Job) -> dict[str, Any]:
    """What only elastic jobs have."""
    entry = job.entry_time
    return {
        "members": [_member(member, job, attempt.number) for member in attempt.members] or None,
        "joined": attempt.joined or None,
        "resizing": None if attempt.resizing is None else _resizing(attempt.resizing, entry),
        "sized": since(entry, attempt.sized_at),
        "served": attempt.served or None,
        "resizes": attempt.resizes or None,
        "faulty": since(entry, attempt.faulty_since),
        "wanted": attempt.wanted or None,
        "baseEnded": since(entry, attempt.base_ended_at),
        "restarts": attempt.restarts or None,
    }


def _sizes_of(value: Mapping[str, Any], name: str, entry: datetime) -> dict[str, Any]:
    get = value.get
    resizing = get("resizing")
    return {
        "members": tuple(_member_of(each, name, value["n"], entry) for each in get("members", ())),
        "joined": get("joined", 0),
        "resizing": None if resizing is None else _resizing_of(resizing, entry),
        "sized_at": at(entry, get("sized")),
        "served": get("served", 0.0),
        "resizes": get("resizes", 0),
        "faulty_since": at(entry, get("faulty")),
        "wanted": get("wanted", 0),
        "base_ended_at": at(entry, get("baseEnded")),
        "restarts": get("restarts", 0),
    }


def _member(member: Member, job: Job, number: int) -> list[Any]:
    """Which it is, when it was decided, what was done with it, and three times as far as there are any."""
    name = member.training_job_name
    which = name.rpartition("-m")[2]
    follows = which.isdecimal() and which.isascii() and name == member_name(job.name, number, int(which))
    entry, times = job.entry_time, (member.started_at, member.drain_asked_at, member.left_at)
    done = _LAUNCHED * member.launched + _STOP_SENT * member.stop_sent
    told = [since(entry, member.created_at), done, *(since(entry, time) for time in times)]
    while told[-1] is None:
        told.pop()
    return [int(which) if follows else name, *told]


def _member_of(value: Sequence[Any], job_name: str, number: int, entry: datetime) -> Member:
    which, created, done, started, drained, left, *_ = (*value, None, None, None)
    return Member(
        training_job_name=which if isinstance(which, str) else member_name(job_name, number, which),
        created_at=entry + timedelta(seconds=created),
        launched=bool(done & _LAUNCHED),
        stop_sent=bool(done & _STOP_SENT),
        started_at=at(entry, started),
        drain_asked_at=at(entry, drained),
        left_at=at(entry, left),
    )


def _resizing(resizing: Resizing, entry: datetime) -> list[Any]:
    """From, to, why, since when, until when, what was done, and for whom."""
    done = _TOLD * resizing.told + _GIVEN_UP * resizing.given_up
    times = (since(entry, resizing.asked_at), since(entry, resizing.until))
    return [resizing.before, resizing.after, resizing.cause.value, *times, done, resizing.freed_for]


def _resizing_of(value: Sequence[Any], entry: datetime) -> Resizing:
    before, after, cause, asked, until, done, freed_for, *_ = value
    return Resizing(
        before=before,
        after=after,
        cause=Cause(cause),
        asked_at=entry + timedelta(seconds=asked),
        until=entry + timedelta(seconds=until),
        freed_for=freed_for,
        told=bool(done & _TOLD),
        given_up=bool(done & _GIVEN_UP),
    )


def seconds_of(span: timedelta) -> Seconds:
    """Whole seconds as an integer; a float keeps microseconds exactly for two centuries."""
    seconds = span.total_seconds()
    return int(seconds) if seconds.is_integer() else seconds


def span_seconds(span: timedelta | None) -> Seconds | None:
    """The same of a span that there may be none of."""
    return None if span is None else seconds_of(span)


def optional_span(value: Seconds | None) -> timedelta | None:
    """The span of so many seconds, and back."""
    return None if value is None else timedelta(seconds=value)


def since(entry: datetime, time: datetime | None) -> Seconds | None:
    """Seconds from the job's entry until then."""
    return None if time is None else seconds_of(time - entry)


def at(entry: datetime, seconds: Seconds | None) -> datetime | None:
    """The time so many seconds after the job's entry."""
    return None if seconds is None else entry + timedelta(seconds=seconds)
