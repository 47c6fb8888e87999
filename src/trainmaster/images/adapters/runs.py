"""The regions of image jobs as rows of the table; implements `images.ports.Runs`.

A job's rows are one partition (`run_rows`). A worker that takes a region writes only that region's row, then reads
`run` again; a stop writes `run`, then reads the regions: whichever comes first, one of the two sees the other, and
workers do not contend for one row. A region's end and the count change together. A row of an earlier attempt counts as
new unless it is done, so another attempt costs one write; the first one costs one too if the run has few regions, since
`run` has them then. When a job ends, only `run` is written once more, to say so; regions' rows expire, and do not count
from then on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from trainmaster.adapters.dynamodb.rows import Row, keyed
from trainmaster.adapters.dynamodb.table import ABSENT, MAX_ACTIONS, Action, Guard, Table
from trainmaster.domain.document import document, keep_unknown
from trainmaster.domain.errors import Throttled
from trainmaster.images.adapters.run_rows import (
    RUN,
    fit_in_run,
    initial_run,
    is_current,
    is_of,
    key_of,
    line_text,
    matching_rows,
    number_in,
    partition,
    place_of,
    record_of,
    records_of,
    region_row,
    regions_text,
    rest_of,
    run_of_rows,
    unsettled_in,
)
from trainmaster.images.domain import leases
from trainmaster.images.domain.tiling import Region
from trainmaster.images.domain.work import MERGE, Claim, RegionRecord, Rest, Run
from trainmaster.ports.runtime import Clock

RETENTION = timedelta(days=60)
"""Lifetime of a row after its last write. The end of a job is the last write of all its rows, so no row outlives it by
more than DynamoDB's delay in removing expired rows; and rows without a run never count.
"""
_MAX_CONFLICTS = 20
"""Retries of a change after conflicting writes: a worker conflicts with its own heartbeats."""


@dataclass(frozen=True, slots=True)
class DynamoRuns:
    """Stores runs; every call raises `Throttled`, `Unavailable`, `NotPermitted`.

    Args:
        table: the queue's own.
        clock: decides when a row expires.
    """

    table: Table
    clock: Clock

    def create(self, job: str, attempt: int, regions: Sequence[Region], *, concurrency: int | None = None) -> Run:
        """Write the missing records; see `images.ports.Runs`."""
        records = leases.initial_records(regions)
        plan = initial_run(job, attempt, records, concurrency)
        # A first attempt usually finds no rows, and one request writes them all.
        if attempt == 1 and len(records) < MAX_ACTIONS and self._write_run(plan, records, None, []):
            return plan
        for _ in range(_MAX_CONFLICTS):
            run, rows = self._read(job)
            if run is not None and ("attempt" not in run or number_in(run, "attempt") >= attempt):
                return run_of_rows(job, run, rows)
            old = rows if run is not None else matching_rows(rows, attempt, records)
            kept = records_of(run, old, attempt)
            missing = [record for record in records if record.region.number not in kept]
            plan = initial_run(job, attempt, [*kept.values(), *missing], concurrency)
            if self._write_run(plan, missing, run, [row for row in rows if row not in old]):
                return plan
        raise Throttled(f"Concurrent writes kept changing the regions of {job}.")

    def run(self, job: str) -> Run | None:
        """Return the run of a job; see `images.ports.Runs`."""
        run, rows = self._read(job)
        return None if run is None or "attempt" not in run else run_of_rows(job, run, rows)

    def stop(self, job: str, attempt: int) -> None:
        """Ask this attempt's workers to stop; see `images.ports.Runs`."""
        self.table.commit([self._updating(job, attempt, "SET #stopped = :one ADD #version :one")])

    def widen(self, job: str, attempt: int, concurrency: int) -> None:
        """Raise the limit on the regions at work; see `images.ports.Runs`."""
        change = "SET #concurrency = :limit ADD #version :one"
        self.table.commit([self._updating(job, attempt, change, limit=concurrency)])

    def narrow(self, job: str, attempt: int, narrowed: int | None) -> None:
        """Limit the regions at work; see `images.ports.Runs`."""
        change = "REMOVE #narrowed" if narrowed is None else "SET #narrowed = :limit"
        self.table.commit([self._updating(job, attempt, f"{change} ADD #version :one", limit=narrowed or 0)])

    def begin(self, claim: Claim, now: datetime, *, dead_before: datetime) -> RegionRecord | None:
        """Take a region for a worker; see `images.ports.Runs`."""
        run, row = self._pair(claim)
        if run is None or row is None or not is_current(run, claim):
            return None
        record = record_of(row, claim.attempt)
        after = leases.taken(record, claim, now, dead_before=dead_before, unsettled=unsettled_in(run))
        if after is None or not self._replace(claim, row, after):
            return None
        if is_current(self.table.get(key_of(claim.job, RUN)), claim):
            return after
        # The run was stopped, or another attempt began, at this moment: undo the claim.
        self._replace(claim, self._row(claim, after, number_in(row, "version") + 1, row), record)
        return None

    def beat(self, claim: Claim, now: datetime, *, tiles_done: int) -> bool:
        """Record a heartbeat; see `images.ports.Runs`."""
        runs = self._changed(claim, lambda record: leases.with_heartbeat(record, now, tiles_done=tiles_done))
        return runs is not None and is_current(runs[1], claim)

    def finish(self, claim: Claim, now: datetime, *, features: int) -> Rest | None:
        """Record a region as done; see `images.ports.Runs`."""
        return rest_of(claim, self._changed(claim, lambda record: leases.finished(record, now, features=features)))

    def leave(self, claim: Claim, now: datetime, *, reason: str, final: bool, pauses: int = 0) -> Rest | None:
        """Give a region back; see `images.ports.Runs`."""

        def left(record: RegionRecord) -> RegionRecord:
            return leases.left(record, now, reason=reason, final=final, pauses=pauses)

        return rest_of(claim, self._changed(claim, left))

    def forget(self, job: str) -> None:
        """Remove the records of a job that has ended; see `images.ports.Runs`.

        A row without an attempt stays until it expires, so that a late call writes no new run. Regions' rows do not
        count beside it and expire before it; to delete them would cost two write units each.
        """
        if self.table.get(key_of(job, RUN)) is not None:
            self.table.put(keyed(key_of(job, RUN), forgotten=1, expires=self._expires()))

    def _write_run(self, plan: Run, missing: Sequence[RegionRecord], run: Row | None, stale: Sequence[Row]) -> bool:
        """Write the missing records, last the row that makes it this run; return False after a conflicting write.

        No worker can begin before that row exists, so concurrent calls may each write a part.

        Args:
            plan: the run to write.
            missing: its regions without a row; they get none if the run is new and its row has them.
            run: the current row of the run; None without one.
            stale: rows of other runs, to delete.
        """
        row = self._run_row(plan, run)
        guard = ABSENT if run is None else Guard("version", number_in(run, "version"))
        changes = self._changes(plan, () if "regions" in row else missing, stale)
        if not changes:
            return self.table.replace(row, guard)
        return not any(self.table.commit(part) for part in _parts([*changes, self.table.put_action(row, guard)]))

    def _changes(self, plan: Run, missing: Sequence[RegionRecord], stale: Sequence[Row]) -> list[Action]:
        """Return the actions that write rows of these regions, and delete stale rows in places without a region."""
        no_worker = Claim(job=plan.job, attempt=plan.attempt, number=MERGE, worker="")
        old = {row["sk"]["S"]: Guard("version", number_in(row, "version")) for row in stale}
        places = {place_of(record.region.number): record for record in missing}
        gone = [self.table.delete_action(key_of(plan.job, place), old[place]) for place in old if place not in places]
        puts = [
            self.table.put_action(self._row(no_worker, record, 1), old.get(place, ABSENT))
            for place, record in places.items()
        ]
        return [*gone, *puts]

    def _run_row(self, plan: Run, run: Row | None) -> Row:
        """Return the row of a run as an attempt begins; a new run of few regions has them in it."""
        row = keyed(
            key_of(plan.job, RUN),
            attempt=plan.attempt,
            unsettled=len(plan.line),
            line=line_text(plan.line),
            **({} if plan.concurrency is None else {"concurrency": plan.concurrency}),
            version=1 if run is None else number_in(run, "version") + 1,
            expires=self._expires(),
        )
        if run is not None:
            return row | {name: run[name] for name in ("regions", "created") if name in run}
        if not fit_in_run(plan.records):
            return row
        created = int(self.clock.now().timestamp() * 1000)
        return row | keyed(key_of(plan.job, RUN), regions=regions_text(plan.records), created=created)

    def _read(self, job: str) -> tuple[Row | None, list[Row]]:
        """Return the job's run, and its regions in no order."""
        rows = list(self.table.all_rows(partition(job)))
        run = next((row for row in rows if row["sk"]["S"] == RUN), None)
        return run, [row for row in rows if row is not run]

    def _pair(self, claim: Claim) -> tuple[Row | None, Row | None]:
        """Return the run and the region of a claim; see `region_row`."""
        places = RUN, place_of(claim.number)
        rows = {row["sk"]["S"]: row for row in self.table.batch_get([key_of(claim.job, place) for place in places])}
        run, row = rows.get(places[0]), rows.get(places[1])
        return run, row if run is None else region_row(run, row, claim.number)

    def _changed(self, claim: Claim, change: Callable[[RegionRecord], RegionRecord]) -> tuple[Row, Row] | None:
        """Change the claim's record; return the run before and after, or None if the claim is lost."""
        for _ in range(_MAX_CONFLICTS):
            run, row = self._pair(claim)
            if run is None or row is None or not is_of(run, claim) or not is_of(row, claim):
                return None
            record = record_of(row, claim.attempt)
            if not leases.owns(claim, record):
                return None
            after = change(record)
            if after.state not in leases.SETTLED or claim.number == MERGE:
                if self._replace(claim, row, after):
                    return run, run
            elif self._settle(claim, row, after):
                return run, self.table.get(key_of(claim.job, RUN)) or run
        raise Throttled(f"Concurrent writes kept changing region {claim.number} of {claim.job}.")

    def _replace(self, claim: Claim, row: Row, record: RegionRecord) -> bool:
        version = number_in(row, "version")
        guard = Guard("version", version) if version else ABSENT
        return self.table.replace(self._row(claim, record, version + 1, row), guard)

    def _settle(self, claim: Claim, row: Row, record: RegionRecord) -> bool:
        """Write a region's end and count it, in one transaction."""
        version = number_in(row, "version")
        put = self.table.put_action(self._row(claim, record, version + 1, row), Guard("version", version))
        expression = "SET #expires = :expires ADD #unsettled :less, #version :one"
        count = self._updating(claim.job, claim.attempt, expression)
        return not self.table.commit([put, count])

    def _updating(self, job: str, attempt: int, expression: str, *, limit: int = 0) -> Action:
        """Return the action that changes the run if the attempt is current."""
        names = ("attempt", "stopped", "unsettled", "version", "expires", "concurrency", "narrowed")
        values = {":one": 1, ":less": -1, ":expires": self._expires(), ":attempt": attempt, ":limit": limit}
        condition = "#attempt = :attempt"
        used = f"{expression} {condition}"
        return {
            "Update": {
                "TableName": self.table.name,
                "Key": keyed(key_of(job, RUN)),
                "UpdateExpression": expression,
                "ConditionExpression": condition,
                "ExpressionAttributeNames": {f"#{name}": name for name in names if f"#{name}" in used},
                "ExpressionAttributeValues": {
                    name: {"N": str(value)} for name, value in values.items() if name in used
                },
            }
        }

    def _row(self, claim: Claim, record: RegionRecord, version: int, before: Row | None = None) -> Row:
        """Return the row of a record, with what a newer release stored in the row before it."""
        stored = {} if before is None else json.loads(before["region"]["S"])
        values = keep_unknown(RegionRecord, document(record, sparse=True), stored)
        row = keyed(
            key_of(claim.job, place_of(record.region.number)),
            attempt=claim.attempt,
            version=version,
            region=json.dumps(values, separators=(",", ":")),
            expires=self._expires(),
        )
        return {**(before or {}), **row}

    def _expires(self) -> int:
        return int((self.clock.now() + RETENTION).timestamp())


def _parts(actions: Sequence[Action]) -> Iterator[Sequence[Action]]:
    """Yield as many actions as one transaction takes, in order."""
    return (actions[first : first + MAX_ACTIONS] for first in range(0, len(actions), MAX_ACTIONS))
