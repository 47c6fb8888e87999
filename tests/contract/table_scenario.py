"""A table with every kind of row and every stored field, as the real store writes it: source of the fixture tables."""

from __future__ import annotations

import random
import types
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Union, get_args, get_origin, get_type_hints

import builders as b
from other_kind import a_batch
from trainmaster.adapters.dynamodb.rendezvous.run_keys import SECRET_BYTES, RunKeys
from trainmaster.adapters.dynamodb.store import DynamoStore
from trainmaster.adapters.dynamodb.table import Table
from trainmaster.domain.access.audit import AuditEntry
from trainmaster.domain.capacity.catalogue import Catalogue, ReportedQuota
from trainmaster.domain.capacity.external import ExternalJob, Origin
from trainmaster.domain.capacity.pool_history import PoolEvent
from trainmaster.domain.capacity.resources import InstanceType
from trainmaster.domain.capacity.units import Demand, Kind, Pool
from trainmaster.domain.capacity.warm_pools import WarmPool
from trainmaster.domain.document import written
from trainmaster.domain.elastic.rendezvous import Run
from trainmaster.domain.events.callback import Callback
from trainmaster.domain.events.publication import Publication
from trainmaster.domain.events.types import EventType
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.attempt import Attempt, Outcome
from trainmaster.domain.jobs.job import Change, Job, JobState
from trainmaster.domain.jobs.listing import Filter
from trainmaster.domain.plan import Cursors
from trainmaster.domain.policy.settings import Budget, Policy
from trainmaster.domain.restore import Restore
from trainmaster.domain.shares.thresholds import Reached
from trainmaster.domain.shares.usage import Spent
from trainmaster.ports.store import Store

DEFAULTS = {"unknown": {}, "units": {b.P5: 1}, "outcome": Outcome.PREEMPTED, "freed_for": "ended"}
"""Values of fields whose type does not tell a good one."""


def filled(kind: Any, /, **given: Any) -> Any:
    """Return a value of a dataclass with no field at its default, so that all of them are stored."""
    hints = get_type_hints(kind)
    values = {
        each.name: given.get(each.name, DEFAULTS.get(each.name, _value(hints[each.name], each)))
        for each in fields(kind)
        if each.init
    }
    return kind(**values)


def _value(hint: Any, field: Any = None) -> Any:
    default = None if field is None or field.default is MISSING else field.default
    union = get_origin(hint) in (Union, types.UnionType)
    kind = next(each for each in get_args(hint) if each is not type(None)) if union else hint
    inside, origin = get_args(kind), get_origin(kind) or kind
    if kind is bool:
        return not default
    if kind in (int, float, str, datetime, timedelta):
        simple = {int: 3, float: 2.5, str: "text", datetime: b.at(7.25), timedelta: timedelta(seconds=90)}
        return simple[kind]
    if origin is tuple:
        return (_value(inside[0]),)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {_value(inside[0]): _value(inside[1])}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return next(each for each in reversed(kind) if each is not default)
    return filled(kind) if is_dataclass(kind) else None


def play(table: Table) -> None:
    """Write all that the queue stores. Every value is fixed, so that two runs write equal rows."""
    store = open_store(table)
    _settings(store)
    for job in _waiting():
        store.submit(job, b.a_request(job.name), audit=filled(AuditEntry, job=job.name))
    store.submit(b.a_job("large"), b.a_request("large", Environment={"NOISE": random.Random(1).randbytes(3_000).hex()}))
    store.submit(b.a_job("task"), b.a_request("task"), callback=filled(Callback, job="task"))
    _active(store)
    _ended(store)
    _long_history(store)
    _move(store, b.a_job("moved"), replace(b.a_job("moved"), priority=7, version=2))
    store.update_external_jobs({origin.value.replace(" ", "-"): ExternalJob({b.P5: 1}, origin) for origin in Origin})
    RunKeys(table, lambda: bytes(SECRET_BYTES))(Run("elastic", b.ROLE))
    store.save_restore(filled(Restore))
    open_store(table, EventType.SUBMITTED).submit(b.a_job("announced"), b.a_request("announced"))
    spent = Reached("research", Budget(gpu_hours=1.5, dollars=10.5), Spent(5_400.0, 1.0), 100, b.NOW)
    open_store(table, EventType.BUDGET).publish_thresholds([spent])
    store.begin_pass()


def open_store(table: Table, *events: EventType) -> DynamoStore:
    """Return a store with the deployment's settings of the fixture, which puts these events."""
    pools, published = b.pools_of(b.a_pool(cap=8)), Publication(frozenset(events))
    return DynamoStore(table, default_pools=pools, parameter="fixture", publication=published, now=lambda: b.NOW)


def _settings(store: Store) -> None:
    spot = filled(Pool, name="spot", kind=Kind.SPOT)
    pools = [b.a_pool(cap=8, count_external=True), spot, filled(Pool, name="made", kind=Kind.ON_DEMAND)]
    policy = filled(Policy, shares=written_shares())
    store.set_settings(pools=pools, policy=policy, events=[filled(PoolEvent)])
    quotas = {b.P5: ReportedQuota(3, b.NOW)}
    kind = filled(InstanceType, name="ml.new.large")
    store.save_catalogue(Catalogue({kind.name: kind}, {b.P5: 8}, b.NOW, {b.P5: 98.32}, b.NOW, quotas))


def written_shares() -> dict[str, Any]:
    """Return a share of every setting under its name."""
    kind = get_args(get_type_hints(Policy)["shares"])[1]
    return {"research": filled(kind, name="research")}


def _waiting() -> Iterable[Job]:
    by_resource = Demand((), queue_selects_pool=True, resources=_resources(), instances=2, listed=1)
    yield b.a_job("pending")
    yield a_full_job("full")
    yield b.a_job("by-resource", demand=by_resource)
    yield a_batch("batch")
    yield b.a_preempted_job("preempted", submitted_by="arn:aws:iam::111122223333:role/team")
    yield b.a_held_job("held")
    yield b.a_job("after", state=JobState.HELD, after=("pending", "full"))
    yield b.a_job("until", state=JobState.HELD, not_before=b.at(86_400))


def a_full_job(name: str, **given: Any) -> Job:
    """Return a waiting job of which every field is stored."""
    kept = {"name": name, "state": JobState.PENDING, "demand": b.a_demand(), "work": None, "entry_time": b.NOW}
    kept |= {"attempt": filled(Attempt, number=2), "past": (filled(Attempt, number=1),)}
    return filled(Job, **{**kept, "history": (Change(b.NOW, None, JobState.PENDING, "submitted"),), **given})


def _resources() -> Any:
    hint = get_type_hints(Demand)["resources"]
    return filled(next(each for each in get_args(hint) if each is not type(None)))


def _active(store: Store) -> None:
    for job in (
        b.a_starting_job("starting"),
        b.a_running_job("running"),
        b.a_preempting_job("preempting"),
        b.a_custom_resize("resizing"),
        a_full_job("full-running", state=JobState.RUNNING, attempt=filled(Attempt, number=2, outcome=Outcome.ACTIVE)),
    ):
        waiting = replace(job, state=JobState.PENDING, attempt=None, version=1, history=job.history[:1])
        store.submit(waiting, b.a_request(job.name))
        _change(store, waiting, replace(job, version=2), cursors=filled(Cursors))


def _ended(store: Store) -> None:
    for name, job in (
        ("completed", b.an_ended_job("completed", keep_alive=True)),
        ("failed", replace(b.an_ended_job("failed"), state=JobState.FAILED, failure="AlgorithmError")),
        ("cancelled", b.a_cancelled_job("cancelled")),
    ):
        running = b.a_running_job(name) if job.attempt else b.a_job(name)
        store.submit(b.a_job(name), b.a_request(name))
        _change(store, b.a_job(name), replace(running, version=2))
        _change(store, replace(running, version=2), replace(job, version=3), warm=[filled(WarmPool)])


def _long_history(store: Store) -> None:
    job = b.a_job("long")
    store.submit(job, b.a_request("long"))
    for number in range(45):
        change = lifecycle.hold if number % 2 == 0 else lifecycle.release
        after = change(job, b.at(number), "ada")
        _change(store, job, after)
        job = after


def _move(store: Store, before: Job, after: Job) -> None:
    store.submit(before, b.a_request(before.name))
    _change(store, before, after)


def _change(store: Store, before: Job, after: Job, **others: Any) -> None:
    assert store.transition([(before, after)], **others), after.name


def everything(table: Table) -> dict[str, Any]:
    """Return all that the store reads from the table, as JSON."""
    store = open_store(table)
    in_force, snapshot = store.settings(history=True), store.read_snapshot()
    names = sorted(job.name for job in _all_jobs(store))
    return {
        "jobs": {name: plain(store.find(name)) for name in names},
        "requests": {name: store.request_of(name) for name in names},
        "pools": plain(dict(in_force.pools)),
        "policy": plain(in_force.policy),
        "history": plain(in_force.history),
        "catalogue": plain(in_force.catalogue),
        "external": plain(dict(snapshot.external_jobs)),
        "warm": plain(snapshot.warm),
        "records": plain(snapshot.records),
        "cursors": plain(snapshot.cursors),
        "restore": plain(store.restore()),
        "outbox": plain(store.outbox(limit=10)),
        "waiting": [job.name for job in snapshot.waiting],
    }


def _all_jobs(store: Store) -> Iterable[Job]:
    cursor: str | None = None
    while True:
        page = store.list_jobs(Filter(), limit=100, cursor=cursor)
        yield from page.jobs
        cursor = page.cursor
        if cursor is None:
            return


def plain(value: Any) -> Any:
    """Return a value as JSON, with every field of its dataclasses."""
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, tuple) else written(value)
