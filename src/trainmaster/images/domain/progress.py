"""The state of a run as a whole, and the regions to dispatch next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from trainmaster.domain.jobs.observation import Observation, Status
from trainmaster.images.domain.concurrency import called, window
from trainmaster.images.domain.leases import SETTLED, due, is_dead, unsettled
from trainmaster.images.domain.work import MERGE, ImageWork, RegionRecord, RegionState, Run, RunProgress, run_of

DEAD_AFTER = timedelta(seconds=120)
"""Silence after which a worker counts as dead, for the manager and for other workers; heartbeats are several times as
frequent."""
AT_WORK, STARTING = "Training", "Starting"
"""`SecondaryStatus` of a training job whose instances run, and of one whose instances start."""


def observed(run: Run, work: ImageWork, dead_before: datetime) -> Observation:
    """Return the observation of a run.

    Args:
        run: current.
        work: its job's.
        dead_before: a worker that was silent since then does not count as running.
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
    """Return whether a worker has begun any region under this attempt; earlier attempts do not count."""
    here = {*run.line, MERGE}
    return any(each.region.number in here and (each.tries or each.beat_at is not None) for each in run.records)


def progress(regions: Iterable[RegionRecord], workers: int) -> RunProgress:
    """Return the progress of regions, each of which makes at most `workers` requests at once."""
    records = tuple(regions)
    open_ = [record.region.tiles for record in records if record.state not in SETTLED]
    return RunProgress(
        done=sum(record.state is RegionState.DONE for record in records),
        failed=sum(record.state is RegionState.FAILED for record in records),
        left=sum(min(workers, tiles) for tiles in open_),
        tiles_done=sum(record.tiles_done for record in records),
    )


def dispatchable(run: Run) -> tuple[int, ...]:
    """Return the pending regions that may be at work; the merging once no region is left."""
    return tuple(record.region.number for record in _open(run) if record.state is RegionState.PENDING)


def exhausted(run: Run, dead_before: datetime, attempts: int) -> tuple[int, ...]:
    """Return the regions whose worker has died and which have no tries left."""
    return tuple(
        record.region.number for record in _open(run) if is_dead(record, dead_before) and record.tries >= attempts
    )


def silent(run: Run, now: datetime, since: datetime, dead_after: timedelta, attempts: int) -> tuple[int, ...]:
    """Return the regions to dispatch again for lack of a heartbeat: after 2, 4, 8 and so on minutes of silence.

    These are the regions of dead workers, and regions that no worker has begun. If all were dispatched at once, the
    latter wait in the workers' queue while others are at work; under a limit each counts from its own dispatch, so that
    a lost message is noticed soon. The interval grows because that queue keeps its messages while no worker runs.
    Paused regions are not silent.

    Args:
        run: current.
        now: UTC.
        since: beginning of the attempt.
        dead_after: maximum silence of a worker.
        attempts: tries of a region; one whose workers died more often is not dispatched again.
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
    """Return the time of each region's dispatch under a limit: each that ends dispatches the next."""
    width = window(run.concurrency, run.narrowed)
    if width is None:
        return {}
    members = set(run.line)
    settled = (each for each in run.records if each.region.number in members and each.state in SETTLED)
    ends = sorted(each.beat_at or since for each in settled)
    return dict(zip(called(run), [since] * width + ends, strict=False))


def _open(run: Run) -> Sequence[RegionRecord]:
    """Return the records that are neither done nor failed and may be begun."""
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
