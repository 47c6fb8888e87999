"""Format of the rows of an image job's run.

A job's rows are one partition: `run` has the attempt, its line of regions, the limit on regions at work, whether it is
stopped, and the number of unsettled regions; each region, and the merging, has a row of its own. If a run has few
regions, `run` has them too, and each gets its row when a worker first begins it. `created` is in all these rows and
distinguishes them from rows that an earlier run of the same name has left.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from trainmaster.adapters.dynamodb.rows import Key, Row
from trainmaster.domain.document import document, value_of
from trainmaster.images.domain import leases
from trainmaster.images.domain.concurrency import Line, effective_concurrency, in_line, rest, window
from trainmaster.images.domain.tiling import Region, Window
from trainmaster.images.domain.work import MERGE, Claim, RegionRecord, Rest, Run

RUN = "run"
"""Sort key of the row about all regions."""
MAX_REGIONS_IN_RUN = 20
"""Regions up to which `run` has them itself: it then stays below a kilobyte, so that each of its writes is one unit."""


def partition(job: str) -> str:
    """Return the partition of a job's run."""
    return f"image#{job}"


def key_of(job: str, place: str) -> Key:
    """Return the key of the row at this place of a job's run."""
    return (partition(job), place)


def place_of(number: int) -> str:
    """Return the sort key of a region, or of the merging; it sorts by number below 100,000."""
    return "region#merge" if number == MERGE else f"region#{number:05d}"


def number_in(row: Row, attribute: str) -> int:
    """Return the number in an attribute that the row has."""
    return int(row[attribute]["N"])


def unsettled_in(run: Row) -> int:
    """Return the regions that are neither done nor failed; 0 for a run whose records were removed."""
    return number_in(run, "unsettled") if "unsettled" in run else 0


def is_of(row: Row, claim: Claim) -> bool:
    """Return whether a row belongs to the claim's attempt."""
    return "attempt" in row and number_in(row, "attempt") == claim.attempt


def is_current(run: Row | None, claim: Claim) -> bool:
    """Return whether the claim's attempt is current and not stopped."""
    return run is not None and is_of(run, claim) and "stopped" not in run


def record_of(row: Row, attempt: int) -> RegionRecord:
    """Return the row's record for this attempt."""
    record = value_of(RegionRecord, json.loads(row["region"]["S"]))
    return record if number_in(row, "attempt") == attempt else leases.reset(record)


def records_of(run: Row | None, rows: Iterable[Row], attempt: int) -> dict[int, RegionRecord]:
    """Return the records of a run for this attempt, by number; those without a row are pending, if `run` has them."""
    pending = {record.region.number: record for record in _pending_in(run)}
    begun = (record_of(row, attempt) for row in rows if run is None or _is_of_run(row, run))
    return pending | {record.region.number: record for record in begun}


def region_row(run: Row, row: Row | None, number: int) -> Row | None:
    """Return the row of a run's region, as it would be if no worker has begun it; None without such a region.

    Its version is 0 if there is no row yet; a row that an earlier run left behind is to be replaced.

    Args:
        run: row of the run.
        row: stored row of the region.
        number: of the region.
    """
    if "regions" not in run or (row is not None and _is_of_run(row, run)):
        return row
    record = next((each for each in _pending_in(run) if each.region.number == number), None)
    if record is None:
        return None
    text = json.dumps(document(record, sparse=True), separators=(",", ":"))
    version = 0 if row is None else number_in(row, "version")
    return {"attempt": run["attempt"], "version": {"N": str(version)}, "region": {"S": text}, "created": run["created"]}


def regions_text(records: Iterable[RegionRecord]) -> str:
    """Return the regions of these records, without the merging, as a JSON list of lists."""
    regions = (record.region for record in records if record.region.number != MERGE)
    values = [[each.number, *_sides(each.window), each.tiles] for each in regions]
    return json.dumps(values, separators=(",", ":"))


def _sides(window: Window) -> tuple[int, int, int, int]:
    return window.column, window.row, window.width, window.height


def _pending_in(run: Row | None) -> tuple[RegionRecord, ...]:
    """Return the records of all regions that the run's row has, and of the merging, as if none had been begun."""
    if run is None or "regions" not in run:
        return ()
    values = json.loads(run["regions"]["S"])
    regions = (Region(number=number, window=Window(*sides), tiles=tiles) for number, *sides, tiles in values)
    return leases.initial_records(regions)


def _is_of_run(row: Row, run: Row) -> bool:
    return row.get("created") == run.get("created")


def initial_run(job: str, attempt: int, records: Iterable[RegionRecord], concurrency: int | None) -> Run:
    """Return the run of an attempt as it begins."""
    ordered = tuple(sorted(records, key=_in_order))
    line = in_line(ordered)
    return Run(
        job=job, attempt=attempt, records=ordered, line=line, concurrency=effective_concurrency(concurrency, line)
    )


def fit_in_run(records: Sequence[RegionRecord]) -> bool:
    """Return whether the row of a new run has these regions itself."""
    return len(records) <= MAX_REGIONS_IN_RUN + 1


def matching_rows(rows: Sequence[Row], attempt: int, records: Sequence[RegionRecord]) -> list[Row]:
    """Return the rows, of a job without a run, that equal the records to write, if these have rows of their own.

    Without a run no worker can have begun a region, so all other rows are leftovers.
    """
    if fit_in_run(records):
        return []
    wanted = {record.region.number: record for record in records}
    found = ((row, record_of(row, attempt)) for row in rows if "created" not in row)
    return [row for row, record in found if record == wanted.get(record.region.number)]


def run_of_rows(job: str, run: Row, rows: Sequence[Row]) -> Run:
    """Return the run of these rows; without records if they were removed."""
    if "attempt" not in run:
        return Run(job=job, attempt=0, stopped=True)
    attempt = number_in(run, "attempt")
    records = tuple(sorted(records_of(run, rows, attempt).values(), key=_in_order))
    return Run(
        job=job,
        attempt=attempt,
        stopped="stopped" in run,
        records=records,
        line=_read_line(run["line"]["S"]),
        concurrency=_number_or_none(run, "concurrency"),
        narrowed=_number_or_none(run, "narrowed"),
    )


def rest_of(claim: Claim, runs: tuple[Row, Row] | None) -> Rest | None:
    """Return the rest by the run before and after an end; another attempt dispatches its own regions."""
    if runs is None:
        return None
    before, after = runs
    if claim.number == MERGE or not is_of(after, claim):
        return Rest(left=unsettled_in(after))
    # The limit after the end: a later change of it has counted this end, or reads it.
    width = window(_number_or_none(after, "concurrency"), _number_or_none(after, "narrowed"))
    return rest(_read_line(before["line"]["S"]), width, unsettled_in(before), unsettled_in(after))


def _number_or_none(row: Row, attribute: str) -> int | None:
    return number_in(row, attribute) if attribute in row else None


def line_text(line: Line) -> str:
    """Return ascending numbers as spans: `3,8-29`."""
    spans: list[list[int]] = []
    for number in line:
        if spans and number == spans[-1][-1] + 1:
            spans[-1][1:] = [number]
        else:
            spans.append([number])
    return ",".join("-".join(map(str, span)) for span in spans)


def _read_line(text: str) -> Line:
    spans = ([int(number) for number in span.split("-")] for span in text.split(",") if span)
    return tuple(number for span in spans for number in range(span[0], span[-1] + 1))


def _in_order(record: RegionRecord) -> tuple[bool, int]:
    """Return the sort key: by number, the merging last."""
    return record.region.number == MERGE, record.region.number
