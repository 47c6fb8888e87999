"""What becomes of a region's record as workers take it, say that they live, finish it and give it back.

Pure: whoever keeps the records (`ports.image.Runs`) sees to it that nothing happened in between. It must not know where
they are kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from trainmaster.domain.image.cutting import Region, Window
from trainmaster.domain.image.work import MERGE, Claim, RegionRecord, RegionState

MERGING = Region(number=MERGE, window=Window(0, 0, 0, 0), tiles=0)
"""The last step, as a region of nothing."""
LONGEST_REASON = 1024
"""Characters that are kept of why a region failed."""
SETTLED = frozenset({RegionState.DONE, RegionState.FAILED})


def laid_out(regions: Iterable[Region]) -> tuple[RegionRecord, ...]:
    """The records of a run that begins: those of its regions, and the merging."""
    return tuple(RegionRecord(region=region) for region in (*regions, MERGING))


def afresh(record: RegionRecord) -> RegionRecord:
    """The record for another attempt: what is done stays done, all else is to be tried anew."""
    if record.state is RegionState.DONE:
        return record
    return replace(record, state=RegionState.PENDING, tries=0, worker="", beat_at=None, reason="")


def unsettled(records: Iterable[RegionRecord]) -> int:
    """How many regions are neither done nor failed; the merging is none."""
    return sum(record.region.number != MERGE and record.state not in SETTLED for record in records)


def is_dead(record: RegionRecord, dead_before: datetime) -> bool:
    """Whether somebody is at it who has been silent for too long."""
    return record.state is RegionState.RUNNING and (record.beat_at is None or record.beat_at <= dead_before)


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
    if not (record.state is RegionState.PENDING or is_dead(record, dead_before)):
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
    return replace(done, worker="", beat_at=now, reason="")


def left(record: RegionRecord, now: datetime, *, reason: str, final: bool) -> RegionRecord:
    """The record of what is given back; a worker that only ran out of time gives no reason, and its try is not counted.

    A reason stays until the region is done, so that it can be told of a worker that died at the next try.
    """
    state = RegionState.FAILED if final else RegionState.PENDING
    tries = record.tries if reason or final else record.tries - 1
    told = (reason or record.reason)[:LONGEST_REASON]
    return replace(record, state=state, tries=tries, worker="", beat_at=now, reason=told)
