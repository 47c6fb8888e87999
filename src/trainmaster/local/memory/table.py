"""The data of in-memory stores. `MemoryStore` checks conditions and fences."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from trainmaster.domain.access.audit import AuditEntry
from trainmaster.domain.access.audit_listing import AuditPlace
from trainmaster.domain.capacity.catalogue import Catalogue
from trainmaster.domain.capacity.external import ExternalJob
from trainmaster.domain.capacity.pool_history import PoolEvent
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.capacity.warm_pools import WarmPool
from trainmaster.domain.document import Document
from trainmaster.domain.events.callback import Callback
from trainmaster.domain.events.types import Entry, row_order
from trainmaster.domain.jobs.job import ACTIVE, ENDED, WAITING, Job
from trainmaster.domain.jobs.listing import EndedPlace, HeldPlace, QueuePlace, ended_place, held_place
from trainmaster.domain.plan import Cursors
from trainmaster.domain.records import Records
from trainmaster.domain.restore import Restore
from trainmaster.local.memory.sorted_keys import SortedKeys
from trainmaster.ports.store import Pause


@dataclass(slots=True)
class MemoryTable:
    """Data that several stores share, like a table: plain values under one lock."""

    jobs: dict[str, Job] = field(default_factory=dict)
    requests: dict[str, str] = field(default_factory=dict)
    active: set[str] = field(default_factory=set)
    lanes: dict[str, SortedKeys[QueuePlace]] = field(default_factory=dict)
    held: SortedKeys[HeldPlace] = field(default_factory=SortedKeys)
    children: dict[str, SortedKeys[str]] = field(default_factory=dict)
    ended: SortedKeys[EndedPlace] = field(default_factory=SortedKeys)
    external: dict[str, ExternalJob] = field(default_factory=dict)
    warm: dict[str, WarmPool] = field(default_factory=dict)
    pools: Mapping[str, Pool] | None = None
    policy: Document | None = None
    version: int | None = None
    parameter: str = ""
    records: Records = field(default_factory=Records)
    catalogue: Catalogue = field(default_factory=Catalogue)
    cursors: Cursors = field(default_factory=Cursors)
    pool_events: tuple[PoolEvent, ...] = ()
    purged: set[str] = field(default_factory=set)
    audit: dict[AuditPlace, AuditEntry] = field(default_factory=dict)
    audit_order: SortedKeys[AuditPlace] = field(default_factory=SortedKeys)
    outbox: dict[str, tuple[Entry, ...]] = field(default_factory=dict)
    outbox_rows: int = 0
    callbacks: dict[str, Callback] = field(default_factory=dict)
    passes: int = 0
    pause: Pause | None = None
    restore: Restore | None = None
    lock: threading.RLock = field(default_factory=threading.RLock)

    def put_job(self, job: Job) -> None:
        """Store the job, and index it by its state."""
        self.jobs[job.name] = job
        if job.state in ACTIVE:
            self.active.add(job.name)
        elif job.state in WAITING:
            self.lanes.setdefault(job.lane, SortedKeys()).add(job.order)
        elif job.state in ENDED:
            self.ended.add(ended_place(job))
        else:
            self.held.add(held_place(job))
            for parent in job.after:
                self.children.setdefault(parent, SortedKeys()).add(job.name)

    def put_warm_pools(self, pools: Iterable[WarmPool]) -> None:
        """Store the current state of these warm pools."""
        self.warm.update({pool.training_job_name: pool for pool in pools})

    def purge_job(self, job: Job) -> None:
        """Delete an ended job and its request; its name stays reserved."""
        self.remove_job(job)
        del self.jobs[job.name], self.requests[job.name]
        self.purged.add(job.name)

    def add_audit_entries(self, entries: Iterable[AuditEntry]) -> None:
        """Add audit entries; none is ever replaced."""
        for entry in entries:
            place = (entry.at, f"{len(self.audit):09d}")
            self.audit[place] = entry
            self.audit_order.add(place)

    def add_outbox_entries(self, entries: Iterable[Entry]) -> None:
        """Add the entries of one commit to the outbox."""
        if kept := tuple(entries):
            self.outbox_rows += 1
            self.outbox[f"{row_order(kept)}#{self.outbox_rows:09d}"] = kept

    def remove_job(self, job: Job) -> None:
        """Remove the job from the index of its state."""
        if job.state in ACTIVE:
            self.active.remove(job.name)
        elif job.state in WAITING:
            lane = self.lanes[job.lane]
            lane.remove(job.order)
            if not lane:
                del self.lanes[job.lane]
        elif job.state in ENDED:
            self.ended.remove(ended_place(job))
        else:
            self.held.remove(held_place(job))
            for parent in job.after:
                self.children[parent].remove(job.name)
                if not self.children[parent]:
                    del self.children[parent]
