"""Changes of a region's record as workers take it, send heartbeats, finish it and give it back.

All functions are pure; the store (`images.ports.Runs`) guards that nothing changes in between.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from trainmaster.domain.text import MAX_REASON_LENGTH
from trainmaster.images.domain.tiling import Region, Window
from trainmaster.images.domain.work import MERGE, Claim, RegionRecord, RegionState

MERGE_STEP = Region(number=MERGE, window=Window(0, 0, 0, 0), tiles=0)
"""The last step, as a region without pixels."""
SETTLED = frozenset({RegionState.DONE, RegionState.FAILED})
MAX_PAUSES = 28
"""Pauses in a row, without a tile done between, after which a throttled region has failed.

They add up to six hours: longer than endpoints take to scale out or to be updated (minutes, at most an hour), and than
most service events of a Region. After that the request is in the dead-letter queue with the reason.
"""
_FIRST_PAUSE, _MAX_PAUSE_LENGTH = timedelta(seconds=30), timedelta(seconds=900)
"""The maximum is SQS's (SendMessage, `DelaySeconds`)."""
_TOLERANCE = timedelta(seconds=5)
"""Assumed maximum difference of two workers' clocks."""


def initial_records(regions: Iterable[Region]) -> tuple[RegionRecord, ...]:
    """Return the records of a run that begins: its regions and the merging."""
    return tuple(RegionRecord(region=region) for region in (*regions, MERGE_STEP))


def reset(record: RegionRecord) -> RegionRecord:
    """Return the record for another attempt: completed regions stay completed, all others are pending again."""
    if record.state is RegionState.DONE:
        return record
    return replace(record, state=RegionState.PENDING, tries=0, worker="", beat_at=None, reason="", pauses=0)


def unsettled(records: Iterable[RegionRecord]) -> int:
    """Return the number of regions that are neither done nor failed, without the merging."""
    return sum(record.region.number != MERGE and record.state not in SETTLED for record in records)


def is_dead(record: RegionRecord, dead_before: datetime) -> bool:
    """Return whether a worker has the region and has been silent for too long."""
    return record.state is RegionState.RUNNING and (record.beat_at is None or record.beat_at <= dead_before)


def pause(pauses: int) -> timedelta:
    """Return the pause of a region after so many throttled tries in a row; it doubles each time, up to a limit."""
    # Five doublings exceed the limit; a larger exponent from a stored row might overflow.
    return min(_FIRST_PAUSE * 2 ** min(pauses - 1, 5), _MAX_PAUSE_LENGTH) if pauses else timedelta(0)


def due(record: RegionRecord) -> datetime | None:
    """Return the time from which the region may be taken again; None if it was never taken."""
    return None if record.beat_at is None else record.beat_at + pause(record.pauses)


def taken(
    record: RegionRecord, claim: Claim, now: datetime, *, dead_before: datetime, unsettled: int
) -> RegionRecord | None:
    """Return the record after a worker takes it, or None if it cannot.

    Args:
        record: current.
        claim: of the worker.
        now: UTC.
        dead_before: a worker that was silent since then has lost the region.
        unsettled: regions for which the merging still waits.
    """
    if not (_is_open(record, now) or is_dead(record, dead_before)):
        return None
    if record.region.number == MERGE and unsettled:
        return None
    return replace(record, state=RegionState.RUNNING, worker=claim.worker, beat_at=now, tries=record.tries + 1)


def owns(claim: Claim, record: RegionRecord) -> bool:
    """Return whether the record belongs to the claim's worker."""
    return record.state is RegionState.RUNNING and record.worker == claim.worker


def with_heartbeat(record: RegionRecord, now: datetime, *, tiles_done: int) -> RegionRecord:
    """Return the record after a heartbeat."""
    return replace(record, beat_at=now, tiles_done=tiles_done)


def finished(record: RegionRecord, now: datetime, *, features: int) -> RegionRecord:
    """Return the record of a completed region."""
    done = replace(record, state=RegionState.DONE, features=features, tiles_done=record.region.tiles)
    return replace(done, worker="", beat_at=now, reason="", pauses=0)


def left(record: RegionRecord, now: datetime, *, reason: str, final: bool, pauses: int = 0) -> RegionRecord:
    """Return the record of a region that is given back.

    A try does not count if the worker only ran out of time (no reason) or was throttled (`pauses`). A reason stays
    until the region is done, so that the failure of a worker that dies at the next try reports it.
    """
    state = RegionState.FAILED if final else RegionState.PENDING
    tries = record.tries if (reason and not pauses) or final else record.tries - 1
    told = (reason or record.reason)[:MAX_REASON_LENGTH]
    return replace(record, state=state, tries=tries, worker="", beat_at=now, reason=told, pauses=pauses)


def _is_open(record: RegionRecord, now: datetime) -> bool:
    """Return whether the region is pending and not paused: a duplicate message does not end a pause."""
    until = due(record) if record.pauses else None
    pauses = until is not None and now < until - _TOLERANCE
    return record.state is RegionState.PENDING and not pauses
