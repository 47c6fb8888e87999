"""What becomes of a region's record as workers take it, say that they live, finish it and give it back.

Pure: whoever keeps the records (`ports.image.Runs`) sees to it that nothing happened in between. It must not know where
they are kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from trainmaster.domain.text import MAX_REASON_LENGTH
from trainmaster.images.domain.tiling import Region, Window
from trainmaster.images.domain.work import MERGE, Claim, RegionRecord, RegionState

MERGING = Region(number=MERGE, window=Window(0, 0, 0, 0), tiles=0)
"""The last step, as a region of nothing."""
SETTLED = frozenset({RegionState.DONE, RegionState.FAILED})
MAX_PAUSES = 28
"""Pauses in a row, without a tile done between, after which a region that is told to slow down has failed.

They add up to six hours: longer than endpoints take to scale out or to be updated (minutes, at most an hour), and than
most troubles of a Region. Who comes back after that finds a dead letter with the reason, not a job that waits for ever.
"""
_FIRST_PAUSE, _MAX_PAUSE_LENGTH = timedelta(seconds=30), timedelta(seconds=900)
"""The longest is what SQS can keep a message back for (SendMessage, `DelaySeconds`)."""
_TOLERANCE = timedelta(seconds=5)
"""How far two workers' clocks may differ."""


def laid_out(regions: Iterable[Region]) -> tuple[RegionRecord, ...]:
    """The records of a run that begins: those of its regions, and the merging."""
    return tuple(RegionRecord(region=region) for region in (*regions, MERGING))


def afresh(record: RegionRecord) -> RegionRecord:
    """The record for another attempt: what is done stays done, all else is to be tried anew."""
    if record.state is RegionState.DONE:
        return record
    return replace(record, state=RegionState.PENDING, tries=0, worker="", beat_at=None, reason="", pauses=0)


def unsettled(records: Iterable[RegionRecord]) -> int:
    """How many regions are neither done nor failed; the merging is none."""
    return sum(record.region.number != MERGE and record.state not in SETTLED for record in records)


def is_dead(record: RegionRecord, dead_before: datetime) -> bool:
    """Whether somebody is at it who has been silent for too long."""
    return record.state is RegionState.RUNNING and (record.beat_at is None or record.beat_at <= dead_before)


def pause(pauses: int) -> timedelta:
    """How long a region pauses that was told to slow down so often in a row; twice as long each time, up to a limit."""
    # Doubling five times has passed the longest; powers of what a row could say might be too large.
    return min(_FIRST_PAUSE * 2 ** min(pauses - 1, 5), _MAX_PAUSE_LENGTH) if pauses else timedelta(0)


def due(record: RegionRecord) -> datetime | None:
    """From when on somebody may be at it again; None where nobody ever was."""
    return None if record.beat_at is None else record.beat_at + pause(record.pauses)


def taken(
    record: RegionRecord, claim: Claim, now: datetime, *, dead_before: datetime, unsettled: int
) -> RegionRecord | None:
    """The record that a worker has taken, of an attempt that works; None where it may not be taken.

    Args:
        record: as it stands.
        claim: whose it is to be.
        now: UTC.
        dead_before: whoever was silent since then has lost it.
        unsettled: regions that the merging still waits for.
    """
    if not (_is_open(record, now) or is_dead(record, dead_before)):
        return None
    if record.region.number == MERGE and unsettled:
        return None
    return replace(record, state=RegionState.RUNNING, worker=claim.worker, beat_at=now, tries=record.tries + 1)


def owns(claim: Claim, record: RegionRecord) -> bool:
    """Whether the record is that worker's."""
    return record.state is RegionState.RUNNING and record.worker == claim.worker


def beaten(record: RegionRecord, now: datetime, *, tiles_done: int) -> RegionRecord:
    """The record of a worker that lives."""
    return replace(record, beat_at=now, tiles_done=tiles_done)


def finished(record: RegionRecord, now: datetime, *, features: int) -> RegionRecord:
    """The record of what is done."""
    done = replace(record, state=RegionState.DONE, features=features, tiles_done=record.region.tiles)
    return replace(done, worker="", beat_at=now, reason="", pauses=0)


def left(record: RegionRecord, now: datetime, *, reason: str, final: bool, pauses: int = 0) -> RegionRecord:
    """The record of what is given back.

    The try of a worker that only ran out of time, which gives no reason, is not counted, nor that of one that was told
    to slow down, which pauses. A reason stays until the region is done, so that it can be told of a worker that died at
    the next try.
    """
    state = RegionState.FAILED if final else RegionState.PENDING
    tries = record.tries if (reason and not pauses) or final else record.tries - 1
    told = (reason or record.reason)[:MAX_REASON_LENGTH]
    return replace(record, state=state, tries=tries, worker="", beat_at=now, reason=told, pauses=pauses)


def _is_open(record: RegionRecord, now: datetime) -> bool:
    """Whether nobody is at it, and it does not pause: a message that comes twice cuts no pause short."""
    until = due(record) if record.pauses else None
    pauses = until is not None and now < until - _TOLERANCE
    return record.state is RegionState.PENDING and not pauses
