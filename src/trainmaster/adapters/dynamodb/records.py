"""Run times by kind of job, and usage of shares, as one small row.

A row of one kilobyte costs two write units for every end, one of four kilobytes eight; so it is compressed, and weights
have two decimals. They are truncated, because a rounded weight would stop decaying. The transaction that ends an
attempt, or a size, books it under the row's version, so each is booked once. `domain.records` decides what is kept.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any

from trainmaster.adapters.dynamodb.encoding.compression import inflate
from trainmaster.adapters.dynamodb.events.outbox import outbox_actions
from trainmaster.adapters.dynamodb.reading import read_or
from trainmaster.adapters.dynamodb.rows import MAX_TEXT_BYTES, STATE, Key, Row, keyed
from trainmaster.adapters.dynamodb.settings import SETTINGS, Deployed
from trainmaster.adapters.dynamodb.table import ABSENT, Action, Guard, Table
from trainmaster.domain.capacity.refusals import Refusal
from trainmaster.domain.elastic.scaling import KindCurve, ScalingCurve
from trainmaster.domain.events.publication import Publication
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.run_times import History, RestartCost, Sketch
from trainmaster.domain.records import Records, booked
from trainmaster.domain.shares.charging import books
from trainmaster.domain.shares.thresholds import Reached, Told, told_after
from trainmaster.domain.shares.usage import UNIX_EPOCH, Account, Usage

RECORDS: Key = (STATE, "records")
_MEMBERS = frozenset(
    {
        *("kinds", "halved", "startups", "waits", "pauses", "curves", "restarts"),
        *("accounts", "released", "freed", "told", "refusals"),
    }
)
_PARTS = 100
"""Weights are stored in hundredths."""


def booking_actions(
    table: Table, deployed: Deployed, changes: Sequence[tuple[Job, Job]], *, consistent: bool
) -> list[Action]:
    """Return the write that books the ends in these changes, guarded by the row's version; empty without any.

    The guard notices a row that was read too early, so the first try need not be `consistent`.
    """
    if not any(books(before, after) for before, after in changes):
        return []
    rows = {row["sk"]["S"]: row for row in table.batch_get([RECORDS, SETTINGS], consistent=consistent)}
    settings, row = deployed.in_force(rows.get(SETTINGS[1])), rows.get(RECORDS[1])
    records = records_of(row)
    for before, after in changes:
        records = booked(records, before, after, settings.policy, settings.pools)
    return [_update(table, row, records)]


def threshold_actions(table: Table, found: Sequence[Reached], publication: Publication) -> list[Action]:
    """Return the writes that note these thresholds, and put the events of those that are new; empty without any."""
    row = table.get(RECORDS)
    records = records_of(row)
    entries = publication.of_thresholds(found, records.told)
    if not entries:
        return []
    updated = replace(records, told=told_after(records.told, found))
    return [_update(table, row, updated), *outbox_actions(table, entries)]


def _update(table: Table, row: Row | None, records: Records) -> Action:
    """Return the write of the records, guarded by the version of the row before."""
    version = read_or(row, lambda found: int(found["version"]["N"]), 0)
    updated = {**(row or {}), **records_row(records, version + 1, row)}
    # A row without a version is damaged, and is replaced.
    guard = Guard("version", version) if version else ABSENT if row is None else None
    return table.put_action(updated, guard)


def records_row(records: Records, version: int, before: Row | None = None) -> Row:
    """Return the row of the records, with the members of the row before it that only a newer release knows."""
    none: dict[str, Any] = {}
    stored = read_or(before, _values_of, none)
    unknown = {key: stored[key] for key in stored.keys() - _MEMBERS}
    values = {**unknown, **_history(records.history), "accounts": _usage(records.usage)}
    if records.released:
        values["released"] = {pool: _since_epoch(at) for pool, at in records.released.items()}
    if records.freed:
        values["freed"] = {pool: _since_epoch(at) for pool, at in records.freed.items()}
    if records.told:
        values["told"] = {share: _told(told) for share, told in records.told.items()}
    if records.refusals:
        values["refusals"] = {kind: [each.job, _since_epoch(each.at)] for kind, each in records.refusals.items()}
    text = json.dumps(values, separators=(",", ":"), ensure_ascii=False)
    return keyed(RECORDS, version=version, records=zlib.compress(text.encode("utf-8", "surrogatepass"), level=9))


def records_of(row: Row | None) -> Records:
    """Return the records in the row; empty without a row, and without what older versions did not write."""
    return read_or(row, _records_of, Records())


def _records_of(row: Row) -> Records:
    values = _values_of(row)
    released, freed = (
        {pool: UNIX_EPOCH + timedelta(seconds=at) for pool, at in values.get(name, {}).items()}
        for name in ("released", "freed")
    )
    told = {share: _read_told(*parts) for share, parts in values.get("told", {}).items()}
    refusals = {kind: _read_refusal(*parts) for kind, parts in values.get("refusals", {}).items()}
    return Records(_read_history(values), _read_usage(values.get("accounts", {})), released, freed, told, refusals)


def _values_of(row: Row) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(inflate(row["records"]["B"], MAX_TEXT_BYTES).decode("utf-8", "surrogatepass"))
    return values


def _history(history: History) -> dict[str, Any]:
    halved = {kind: _distances(sketch.halved) for kind, sketch in history.kinds.items() if sketch.halved}
    return {
        "kinds": [[kind, *_pairs(_cut(sketch))] for kind, sketch in history.kinds.items()],
        **({"halved": halved} if halved else {}),
        "startups": {types: round(seconds, 1) for types, seconds in history.startups.items()},
        **({"pauses": {hook: round(seconds, 1) for hook, seconds in history.pauses.items()}} if history.pauses else {}),
        **({"curves": {kind: _curve(known) for kind, known in history.curves.items()}} if history.curves else {}),
        "restarts": [_short(round(history.restarts.worked, 1)), _short(round(history.restarts.restarts, 1))],
    }


def _curve(known: KindCurve) -> list[float]:
    return [round(known.curve.serial, 4), round(known.curve.communication, 6), round(known.jobs, 1)]


def _read_curve(serial: float, communication: float, jobs: float, *_: Any) -> KindCurve:
    return KindCurve(ScalingCurve(float(serial), float(communication)), float(jobs))


def _read_history(values: Mapping[str, Any]) -> History:
    halved = values.get("halved", {})
    kinds = {kind: _read_sketch(numbers, halved.get(kind, [])) for kind, *numbers in values.get("kinds", [])}
    curves = {kind: _read_curve(*numbers) for kind, numbers in values.get("curves", {}).items()}
    restarts = RestartCost(*map(float, values.get("restarts", [])[:2]))
    return History(kinds, values.get("startups", {}), values.get("pauses", {}), curves, restarts)


def _cut(sketch: Sketch) -> dict[int, int]:
    parts = ((bucket, int(weight * _PARTS)) for bucket, weight in sketch.weights.items())
    return {bucket: part for bucket, part in parts if part > 0}


def _read_sketch(numbers: Sequence[int], halved: Sequence[int]) -> Sketch:
    weights = {bucket: parts / _PARTS for bucket, parts in _read_pairs(numbers)}
    return Sketch(weights, tuple(UNIX_EPOCH + timedelta(seconds=at) for at in accumulate(halved)))


def _distances(times: Iterable[datetime]) -> list[int]:
    """Return whole seconds: of the first time since 1970, and of each further one since the one before."""
    seconds = [int(_since_epoch(time)) for time in times]
    return [at - before for before, at in zip([0, *seconds], seconds, strict=False)]


def _pairs(counts: Mapping[int, int]) -> list[int]:
    """Return alternating bucket distances and counts: small numbers compress well."""
    numbers: list[int] = []
    last = 0
    for bucket, count in sorted(counts.items()):
        numbers += [bucket - last, count]
        last = bucket
    return numbers


def _read_pairs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    return zip(accumulate(numbers[::2]), numbers[1::2], strict=True)


def _usage(usage: Usage) -> dict[str, list[Any]]:
    return {share: _account(account) for share, account in usage.accounts.items()}


def _account(account: Account) -> list[Any]:
    """Return tenths of a second and hundredths of a cent, so that small amounts add up to large ones."""
    amounts = [round(account.faded, 1), _since_epoch(account.at), account.period, round(account.gpu_seconds, 1)]
    return [*map(_short, amounts), _short(round(account.dollars, 4))]


def _told(told: Told) -> list[Any]:
    return [_short(_since_epoch(told.until)), told.percent, told.gpu_hours, told.dollars]


def _read_told(until: float, percent: int, gpu_hours: float | None, dollars: float | None, *_: Any) -> Told:
    return Told(UNIX_EPOCH + timedelta(seconds=until), percent, gpu_hours, dollars)


def _read_refusal(job: str, at: float, *_: Any) -> Refusal:
    return Refusal(job, UNIX_EPOCH + timedelta(seconds=at))


def _since_epoch(at: datetime) -> float:
    """Return Unix time in tenths of a second."""
    return round((at - UNIX_EPOCH).total_seconds(), 1)


def _short(number: float) -> float:
    return int(number) if float(number).is_integer() else number


def _read_usage(values: Mapping[str, Sequence[Any]]) -> Usage:
    return Usage({share: _read_account(*numbers) for share, numbers in values.items()})


def _read_account(faded: float, at: float, period: int, gpu_seconds: float, dollars: float) -> Account:
    return Account(float(faded), UNIX_EPOCH + timedelta(seconds=at), period, float(gpu_seconds), float(dollars))
