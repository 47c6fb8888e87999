"""The regions of image jobs in memory, for tests, replays and the simulator; implements `images.ports.Runs`.

The contract suite holds it to the behavior of the DynamoDB implementation.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from trainmaster.images.domain import leases
from trainmaster.images.domain.concurrency import effective_concurrency, in_line, rest, window
from trainmaster.images.domain.tiling import Region
from trainmaster.images.domain.work import MERGE, Claim, RegionRecord, Rest, Run


@dataclass(slots=True)
class _MemoryRun:
    """A job's run. One whose records were removed is stopped."""

    attempt: int
    stopped: bool = False
    records: dict[int, RegionRecord] = field(default_factory=dict)
    line: tuple[int, ...] = ()
    concurrency: int | None = None
    narrowed: int | None = None

    def begin(self, attempt: int, records: dict[int, RegionRecord], concurrency: int | None) -> None:
        """Begin an attempt on the regions that are not done."""
        self.attempt, self.stopped, self.records = attempt, False, records
        self.line = in_line(records.values())
        self.concurrency, self.narrowed = effective_concurrency(concurrency, self.line), None


@dataclass(slots=True)
class MemoryRuns:
    """Runs by job, under one lock."""

    _runs: dict[str, _MemoryRun] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def create(self, job: str, attempt: int, regions: Sequence[Region], *, concurrency: int | None = None) -> Run:
        """Write the missing records; see `images.ports.Runs`."""
        with self._lock:
            kept = self._runs.get(job)
            if kept is None:
                kept = self._runs[job] = _MemoryRun(attempt)
                kept.begin(
                    attempt, {record.region.number: record for record in leases.initial_records(regions)}, concurrency
                )
            elif kept.records and attempt > kept.attempt:
                reset = {number: leases.reset(record) for number, record in kept.records.items()}
                kept.begin(attempt, reset, concurrency)
            return _run(job, kept)

    def run(self, job: str) -> Run | None:
        """Return the run of a job; see `images.ports.Runs`."""
        with self._lock:
            kept = self._runs.get(job)
            return _run(job, kept) if kept is not None and kept.records else None

    def stop(self, job: str, attempt: int) -> None:
        """Ask this attempt's workers to stop; see `images.ports.Runs`."""
        with self._lock:
            kept = self._runs.get(job)
            if kept is not None and kept.attempt == attempt:
                kept.stopped = True

    def widen(self, job: str, attempt: int, concurrency: int) -> None:
        """Raise the limit on the regions at work; see `images.ports.Runs`."""
        with self._lock:
            kept = self._runs.get(job)
            if kept is not None and kept.attempt == attempt:
                kept.concurrency = concurrency

    def narrow(self, job: str, attempt: int, narrowed: int | None) -> None:
        """Limit the regions at work; see `images.ports.Runs`."""
        with self._lock:
            kept = self._runs.get(job)
            if kept is not None and kept.attempt == attempt:
                kept.narrowed = narrowed

    def begin(self, claim: Claim, now: datetime, *, dead_before: datetime) -> RegionRecord | None:
        """Take a region for a worker; see `images.ports.Runs`."""
        with self._lock:
            kept, record = self._found(claim)
            if kept is None or record is None or kept.stopped:
                return None
            waits_for = leases.unsettled(kept.records.values())
            after = leases.taken(record, claim, now, dead_before=dead_before, unsettled=waits_for)
            if after is not None:
                kept.records[claim.number] = after
            return after

    def beat(self, claim: Claim, now: datetime, *, tiles_done: int) -> bool:
        """Record a heartbeat; see `images.ports.Runs`."""
        with self._lock:
            kept, record = self._found(claim)
            if kept is None or record is None or not leases.owns(claim, record):
                return False
            kept.records[claim.number] = leases.with_heartbeat(record, now, tiles_done=tiles_done)
            return not kept.stopped

    def finish(self, claim: Claim, now: datetime, *, features: int) -> Rest | None:
        """Record a region as done; see `images.ports.Runs`."""
        return self._changed(claim, lambda record: leases.finished(record, now, features=features))

    def leave(self, claim: Claim, now: datetime, *, reason: str, final: bool, pauses: int = 0) -> Rest | None:
        """Give a region back; see `images.ports.Runs`."""
        return self._changed(claim, lambda record: leases.left(record, now, reason=reason, final=final, pauses=pauses))

    def forget(self, job: str) -> None:
        """Remove all records of a job that has ended; see `images.ports.Runs`."""
        with self._lock:
            if job in self._runs:
                self._runs[job] = _MemoryRun(self._runs[job].attempt, stopped=True)

    def _changed(self, claim: Claim, change: Callable[[RegionRecord], RegionRecord]) -> Rest | None:
        """Change the claim's record; return the rest, or None if the claim is lost."""
        with self._lock:
            kept, record = self._found(claim)
            if kept is None or record is None or not leases.owns(claim, record):
                return None
            before = leases.unsettled(kept.records.values())
            kept.records[claim.number] = change(record)
            after = leases.unsettled(kept.records.values())
            width = window(kept.concurrency, kept.narrowed)
            return Rest(left=after) if claim.number == MERGE else rest(kept.line, width, before, after)

    def _found(self, claim: Claim) -> tuple[_MemoryRun | None, RegionRecord | None]:
        """Return the run of the claim's attempt, and the claim's record."""
        kept = self._runs.get(claim.job)
        if kept is None or kept.attempt != claim.attempt:
            return None, None
        return kept, kept.records.get(claim.number)


def _run(job: str, kept: _MemoryRun) -> Run:
    ordered = sorted(kept.records.items(), key=lambda item: (item[0] == MERGE, item[0]))
    return Run(
        job=job,
        attempt=kept.attempt,
        stopped=kept.stopped,
        records=tuple(record for _, record in ordered),
        line=kept.line,
        concurrency=kept.concurrency,
        narrowed=kept.narrowed,
    )
