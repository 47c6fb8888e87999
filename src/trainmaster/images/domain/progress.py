"""How far a run of regions has come: what is to be said of it as a whole, and which of its regions are dispatched next.

It must not read a clock, nor know where regions are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from trainmaster.domain.jobs.observation import Observation, Status
from trainmaster.images.domain.concurrency import called, window
from trainmaster.images.domain.leases import SETTLED, due, is_dead, unsettled
from trainmaster.images.domain.work import MERGE, ImageWork, RegionRecord, RegionState, Run, RunProgress, run_of

DEAD_AFTER = timedelta(seconds=120)
"""A worker that is silent for so long has died, for the manager and for other workers alike; workers say that they live
several times as often."""
AT_WORK, STARTING = "Training", "Starting"
"""`SecondaryStatus` of a training job whose instances are at work, and of one whose are not."""


def observed(run: Run, work: ImageWork, dead_before: datetime) -> Observation:
    """What there is to say of a run.

    Args:
        run: as it stands.
        work: its job's.
        dead_before: whoever has been silent since then is not at work.
    """
    regions, merging = run.records[:-1], run.records[-1]
    failed = [record for record in regions if record.state is RegionState.FAILED]
    status = _status(run, dead_before, failed=bool(failed))
    return Observation(
        training_job_name=run_of(run.job, run.attempt),
        job_name=run.job,
        status=status,
        secondary=(AT_WORK if begun(run) else STARTING) if status is Status.IN_PROGRESS else "",
        failure_reason=_reason(failed, len(regions), merging) if status is Status.FAILED else None,
        progress=progress(regions, work.workers),
    )


def begun(run: Run) -> bool:
    """Whether anybody has begun with anything under this attempt; what was done before it does not count."""
    here = {*run.line, MERGE}
    return any(each.region.number in here and (each.tries or each.beat_at is not None) for each in run.records)


def progress(regions: Iterable[RegionRecord], workers: int) -> RunProgress:
    """How far regions have come, each of which makes at most so many requests at once."""
    records = tuple(regions)
    open_ = [record.region.tiles for record in records if record.state not in SETTLED]
    return RunProgress(
        done=sum(record.state is RegionState.DONE for record in records),
        failed=sum(record.state is RegionState.FAILED for record in records),
        left=sum(min(workers, tiles) for tiles in open_),
        tiles_done=sum(record.tiles_done for record in records),
    )


def dispatchable(run: Run) -> tuple[int, ...]:
    """The regions that nobody is at and that may be at work; the merging once no region is left."""
    return tuple(record.region.number for record in _open(run) if record.state is RegionState.PENDING)


def exhausted(run: Run, dead_before: datetime, attempts: int) -> tuple[int, ...]:
    """The regions whose worker has died, and which have been tried often enough."""
    return tuple(
        record.region.number for record in _open(run) if is_dead(record, dead_before) and record.tries >= attempts
    )


def silent(run: Run, now: datetime, since: datetime, dead_after: timedelta, attempts: int) -> tuple[int, ...]:
    """The regions of which nothing is heard, to be dispatched again: after minutes 2, 4, 8 and so on of silence.

    Those that a dead worker has; and those that nobody has begun. Where all were dispatched at once these wait in the
    workers' queue as long as somebody is at work; where few are at a time, each counts from when it was called, so
    that none is missed for long whose message was never sent. Ever more seldom, for that queue keeps what it has while
    no worker comes. What pauses is not silent.

    Args:
        run: as it stands.
        now: UTC.
        since: when the attempt began.
        dead_after: how long a worker may be silent.
        attempts: tries of a region; one that a worker has died of more often is not tried again.
    """
    last = max([since, *(record.beat_at for record in run.records if record.beat_at is not None)])
    called_at = _called_at(run, since)
    lost = []
    for record in _open(run):
        if record.state is RegionState.RUNNING:
            quiet = now - (record.beat_at or since)
            again = record.tries < attempts
        else:
            quiet, again = now - max(called_at.get(record.region.number, last), due(record) or since), True
        if again and quiet >= dead_after and _is_power_of_two(int(quiet / timedelta(minutes=1))):
            lost.append(record.region.number)
    return tuple(lost)


def _called_at(run: Run, since: datetime) -> dict[int, datetime]:
    """When each region was called, where few are at work at a time: each that ends calls the next."""
    width = window(run.abreast, run.narrowed)
    if width is None:
        return {}
    members = set(run.line)
    settled = (each for each in run.records if each.region.number in members and each.state in SETTLED)
    ends = sorted(each.beat_at or since for each in settled)
    return dict(zip(called(run), [since] * width + ends, strict=False))


def _open(run: Run) -> Sequence[RegionRecord]:
    """What is neither done nor failed, and can be begun."""
    if unsettled(run.records):
        members = set(called(run))
        return [record for record in run.records if record.region.number in members and record.state not in SETTLED]
    return [record for record in run.records if record.state not in SETTLED]


def _status(run: Run, dead_before: datetime, *, failed: bool) -> Status:
    merging = run.records[-1]
    if merging.state in SETTLED:
        return Status.FAILED if failed or merging.state is RegionState.FAILED else Status.COMPLETED
    if not run.stopped:
        return Status.IN_PROGRESS
    alive = any(each.state is RegionState.RUNNING and not is_dead(each, dead_before) for each in run.records)
    return Status.STOPPING if alive else Status.STOPPED


def _reason(failed: Sequence[RegionRecord], count: int, merging: RegionRecord) -> str:
    if merging.state is RegionState.FAILED:
        return f"the regions' results could not be merged: {merging.reason or 'no reason was given'}"
    return f"{len(failed)} of {count} regions failed: {failed[0].reason or 'no reason was given'}"


def _is_power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0
