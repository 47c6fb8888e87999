"""The regions of image jobs as rows of the table; implements `ports.image.Runs`.

A job's rows are one partition: `run` says which attempt works, whether it is to leave off and how many regions are not
settled; each region, and the merging, has a row behind it. A worker that takes a region writes that region's row alone,
then looks at `run` again; who stops a run writes `run`, then looks at the regions: whichever came first, one of the two
sees the other, and workers do not meet on one row. A region's end and the count change together. A row of an attempt
before the one that works counts as a new one, unless it is done: so another attempt costs one write.
It must not decide what becomes of a region: that is `domain.image.claims`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from trainmaster.adapters.dynamodb_rows import Key, Row, keyed
from trainmaster.adapters.dynamodb_table import ABSENT, MOST_ACTIONS, Action, Guard, Table
from trainmaster.domain.document import document, value_of
from trainmaster.domain.errors import Throttled
from trainmaster.domain.image import claims
from trainmaster.domain.image.cutting import Region
from trainmaster.domain.image.work import MERGE, Claim, RegionRecord, Run
from trainmaster.ports import Clock

KEPT = timedelta(days=60)
"""How long a row stays after its last word; whoever ends a job removes its rows long before."""
RUN = "run"
_MEETINGS = 20
"""How often a change is tried anew because somebody else had written the row: a worker meets its own beats."""


@dataclass(frozen=True, slots=True)
class DynamoRuns:
    """Keeps runs; every call raises `Throttled`, `Unavailable`, `NotPermitted`.

    Args:
        table: the queue's own.
        clock: says when a row expires.
    """

    table: Table
    clock: Clock

    def lay_out(self, job: str, attempt: int, regions: Sequence[Region]) -> Run:
        """Write the regions that are not there yet; see `ports.image.Runs`."""
        records = claims.laid_out(regions)
        # Nearly always nothing is there yet, and all of it is one transaction.
        if len(records) < MOST_ACTIONS and self._laid(job, attempt, None, [], records):
            return Run(job=job, attempt=attempt, records=records)
        for _ in range(_MEETINGS):
            run, rows = self._read(job)
            if run is not None and ("attempt" not in run or _number(run, "attempt") >= attempt):
                return _run_of(job, run, rows)
            kept = [_record_of(row, attempt) for row in rows]
            there = {record.region.number for record in kept}
            missing = [record for record in records if record.region.number not in there]
            if self._laid(job, attempt, run, kept, missing):
                return Run(job=job, attempt=attempt, records=tuple(sorted([*kept, *missing], key=_in_order)))
        raise Throttled(f"Others keep writing the regions of {job}.")

    def run(self, job: str) -> Run | None:
        """How a job's regions stand; see `ports.image.Runs`."""
        run, rows = self._read(job)
        return None if run is None or "attempt" not in run else _run_of(job, run, rows)

    def stop(self, job: str, attempt: int) -> None:
        """Ask this attempt's workers to leave off; see `ports.image.Runs`."""
        self.table.commit([self._updating(job, attempt, "SET #stopped = :one ADD #version :one")])

    def begin(self, claim: Claim, now: datetime, *, dead_before: datetime) -> RegionRecord | None:
        """Take a region for a worker; see `ports.image.Runs`."""
        run, row = self._pair(claim)
        if run is None or row is None or not _goes_on(run, claim):
            return None
        record = _record_of(row, claim.attempt)
        after = claims.taken(record, claim, now, dead_before=dead_before, unsettled=_unsettled(run))
        if after is None or not self._replace(claim, row, after):
            return None
        if _goes_on(self.table.get(_key(claim.job, RUN)), claim):
            return after
        # It was stopped, or followed by another attempt, in this moment: as if nobody had begun.
        self._replace(claim, self._row(claim, after, _number(row, "version") + 1), record)
        return None

    def beat(self, claim: Claim, now: datetime, *, tiles_done: int) -> bool:
        """Say that the worker lives; see `ports.image.Runs`."""
        run = self._changed(claim, lambda record: claims.beaten(record, now, tiles_done=tiles_done))
        return _goes_on(run, claim)

    def finish(self, claim: Claim, now: datetime, *, features: int) -> int | None:
        """The region is done; see `ports.image.Runs`."""
        run = self._changed(claim, lambda record: claims.finished(record, now, features=features))
        return None if run is None else _unsettled(run)

    def leave(self, claim: Claim, now: datetime, *, reason: str, final: bool) -> int | None:
        """Give a region back; see `ports.image.Runs`."""
        run = self._changed(claim, lambda record: claims.left(record, now, reason=reason, final=final))
        return None if run is None else _unsettled(run)

    def forget(self, job: str) -> None:
        """Remove all records of a job that has ended; see `ports.image.Runs`.

        A row of no attempt stays until it expires, so that a late call lays nothing out again.
        """
        run, rows = self._read(job)
        if run is None:
            return
        self.table.put(keyed(_key(job, RUN), forgotten=1, expires=self._expires()))
        gone = [self.table.deleting((row["pk"]["S"], row["sk"]["S"])) for row in rows]
        for part in _parts(gone):
            self.table.commit(part)

    def _laid(
        self,
        job: str,
        attempt: int,
        run: Row | None,
        kept: Sequence[RegionRecord],
        missing: Sequence[RegionRecord],
    ) -> bool:
        """Write what is missing, last the row that makes it a run of this attempt; False where others wrote meanwhile.

        Before that row nobody can begin, so that those who lay the same out at once can each write a part.
        """
        nobody = Claim(job=job, attempt=attempt, number=MERGE, worker="")
        puts = [self.table.putting(self._row(nobody, record, 1), ABSENT) for record in missing]
        version = 0 if run is None else _number(run, "version")
        last = self.table.putting(
            keyed(
                _key(job, RUN),
                attempt=attempt,
                unsettled=claims.unsettled([*kept, *missing]),
                version=version + 1,
                expires=self._expires(),
            ),
            Guard("version", version) if run is not None else ABSENT,
        )
        return not any(self.table.commit(part) for part in _parts([*puts, last]))

    def _read(self, job: str) -> tuple[Row | None, list[Row]]:
        """The job's run, and its regions in no order."""
        rows = list(self.table.every(_partition(job)))
        run = next((row for row in rows if row["sk"]["S"] == RUN), None)
        return run, [row for row in rows if row is not run]

    def _pair(self, claim: Claim) -> tuple[Row | None, Row | None]:
        """The run and the region that a claim is about."""
        places = RUN, _place(claim.number)
        rows = {row["sk"]["S"]: row for row in self.table.get_all([_key(claim.job, place) for place in places])}
        return rows.get(places[0]), rows.get(places[1])

    def _changed(self, claim: Claim, change: Callable[[RegionRecord], RegionRecord]) -> Row | None:
        """Change the record that is the claim's; the run as it stands then, None where it is not the claim's."""
        for _ in range(_MEETINGS):
            run, row = self._pair(claim)
            if run is None or row is None or not _is_of(run, claim) or not _is_of(row, claim):
                return None
            record = _record_of(row, claim.attempt)
            if not claims.owns(claim, record):
                return None
            after = change(record)
            if after.state not in claims.SETTLED or claim.number == MERGE:
                if self._replace(claim, row, after):
                    return run
            elif self._settle(claim, row, after):
                return self.table.get(_key(claim.job, RUN)) or run
        raise Throttled(f"Others keep writing region {claim.number} of {claim.job}.")

    def _replace(self, claim: Claim, row: Row, record: RegionRecord) -> bool:
        version = _number(row, "version")
        return self.table.replace(self._row(claim, record, version + 1), Guard("version", version))

    def _settle(self, claim: Claim, row: Row, record: RegionRecord) -> bool:
        """Write a region's end, and count it, at once."""
        version = _number(row, "version")
        put = self.table.putting(self._row(claim, record, version + 1), Guard("version", version))
        count = self._updating(claim.job, claim.attempt, "ADD #unsettled :less, #version :one")
        return not self.table.commit([put, count])

    def _updating(self, job: str, attempt: int, expression: str) -> Action:
        """Part of a transaction: change the run where this attempt works."""
        names = {
            f"#{name}": name for name in ("attempt", "stopped", "unsettled", "version") if f"#{name}" in expression
        }
        values = {":one": {"N": "1"}, ":less": {"N": "-1"}, ":attempt": {"N": str(attempt)}}
        return {
            "Update": {
                "TableName": self.table.name,
                "Key": keyed(_key(job, RUN)),
                "UpdateExpression": expression,
                "ConditionExpression": "#attempt = :attempt",
                "ExpressionAttributeNames": names | {"#attempt": "attempt"},
                "ExpressionAttributeValues": {
                    name: value for name, value in values.items() if name in expression or name == ":attempt"
                },
            }
        }

    def _row(self, claim: Claim, record: RegionRecord, version: int) -> Row:
        return keyed(
            _key(claim.job, _place(record.region.number)),
            attempt=claim.attempt,
            version=version,
            region=json.dumps(document(record, sparse=True), separators=(",", ":")),
            expires=self._expires(),
        )

    def _expires(self) -> int:
        return int((self.clock.now() + KEPT).timestamp())


def _partition(job: str) -> str:
    return f"image#{job}"


def _key(job: str, place: str) -> Key:
    return (_partition(job), place)


def _place(number: int) -> str:
    return "region#merge" if number == MERGE else f"region#{number:05d}"


def _number(row: Row, attribute: str) -> int:
    return int(row[attribute]["N"])


def _unsettled(run: Row) -> int:
    """Regions that are neither done nor failed; none of a run that is forgotten."""
    return _number(run, "unsettled") if "unsettled" in run else 0


def _is_of(row: Row, claim: Claim) -> bool:
    return "attempt" in row and _number(row, "attempt") == claim.attempt


def _goes_on(run: Row | None, claim: Claim) -> bool:
    """Whether the claim's attempt works, and is not to leave off."""
    return run is not None and _is_of(run, claim) and "stopped" not in run


def _record_of(row: Row, attempt: int) -> RegionRecord:
    """The record for this attempt."""
    record = value_of(RegionRecord, json.loads(row["region"]["S"]))
    return record if _number(row, "attempt") == attempt else claims.afresh(record)


def _run_of(job: str, run: Row, rows: Sequence[Row]) -> Run:
    if "attempt" not in run:
        return Run(job=job, attempt=0, stopped=True)
    attempt = _number(run, "attempt")
    records = sorted((_record_of(row, attempt) for row in rows), key=_in_order)
    return Run(job=job, attempt=attempt, stopped="stopped" in run, records=tuple(records))


def _in_order(record: RegionRecord) -> tuple[bool, int]:
    """By number, the merging last."""
    return record.region.number == MERGE, record.region.number


def _parts(actions: Sequence[Action]) -> Iterator[Sequence[Action]]:
    """As many as one transaction takes, in order."""
    return (actions[first : first + MOST_ACTIONS] for first in range(0, len(actions), MOST_ACTIONS))
