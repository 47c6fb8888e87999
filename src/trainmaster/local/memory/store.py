"""The store in memory, for tests and replays. It passes the contract suite of `ports.Store`."""

from __future__ import annotations

import heapq
import json
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import islice, takewhile

from trainmaster.domain.access.audit import AuditEntry
from trainmaster.domain.access.audit_listing import (
    AuditFilter,
    AuditPage,
    AuditPlace,
    audit_page,
    check_listing,
    read_cursor,
)
from trainmaster.domain.capacity.catalogue import Catalogue
from trainmaster.domain.capacity.external import ExternalJob, external_units
from trainmaster.domain.capacity.pool_history import MAX_EVENTS, PoolEvent
from trainmaster.domain.capacity.read_limits import ReadLimits, first_of
from trainmaster.domain.capacity.rotation import CutLane, Rotation
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.capacity.warm_pools import WarmPool, left_by
from trainmaster.domain.document import Document
from trainmaster.domain.errors import Fenced, JobNotFound, Paused, VersionConflict
from trainmaster.domain.events.callback import Callback, earliest_due
from trainmaster.domain.events.publication import Publication
from trainmaster.domain.events.types import Entry, OutboxRow
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.listing import (
    Cursor,
    Filter,
    HeldPlace,
    Part,
    QueuePlace,
    page_of,
    parts_from,
)
from trainmaster.domain.paging import check_limit
from trainmaster.domain.plan import Cursors, Snapshot
from trainmaster.domain.policy.document import differences, policy_of
from trainmaster.domain.policy.settings import Policy
from trainmaster.domain.records import Records, booked
from trainmaster.domain.restore import Restore
from trainmaster.domain.shares.charging import books
from trainmaster.domain.shares.thresholds import Reached, told_after
from trainmaster.domain.store_limits import MAX_REQUEST_BYTES, check_changes, check_purge, check_request, purged_name
from trainmaster.domain.times import NEVER
from trainmaster.local.memory.sorted_keys import SortedKeys
from trainmaster.local.memory.table import MemoryTable
from trainmaster.ports.kinds import Discover, NoDiscovery
from trainmaster.ports.store import Changes, Page, Pause, QueueSettings, Request


class MemoryStore:
    """The state of the queue in memory, under one lock.

    Args:
        default_pools: pools of the deployment's `Pools` parameter.
        parameter: that parameter as text; pools set by users are valid until it changes.
        policy: settings of the deployment, used until users change them.
        table: the data; several stores may share one table.
        discover: returns the discovery of the pools of services, for each snapshot.
        publication: decides what goes into the outbox.
        now: returns the present, UTC.
    """

    def __init__(  # noqa: PLR0913 -- parts of a deployment
        self,
        *,
        default_pools: Mapping[str, Pool],
        now: Callable[[], datetime],
        parameter: str = "",
        policy: Policy | None = None,
        table: MemoryTable | None = None,
        discover: Discover = NoDiscovery,
        publication: Publication | None = None,
    ) -> None:
        self._publication, self._now, self._rotation = publication or Publication(), now, Rotation(now)
        self._discover = discover
        self._default_pools = dict(default_pools)
        self._parameter = parameter
        self._policy = policy or Policy()
        self._table = table or MemoryTable()
        self._lock = self._table.lock
        self._parsed: tuple[Document | None, Policy] = (None, self._policy)

    def submit(
        self, job: Job, request: Request, *, audit: AuditEntry | None = None, callback: Callback | None = None
    ) -> Job:
        """Store a new job and its request in one step; see `ports.Store`."""
        text = json.dumps(request)
        if len(text) > MAX_REQUEST_BYTES:
            check_request(request, len(zlib.compress(text.encode())))
        with self._lock:
            if job.name in self._table.purged:
                raise purged_name(job.name)
            if job.name not in self._table.jobs:
                self._table.requests[job.name] = text
                self._table.put_job(job)
                self._table.add_audit_entries([audit] if audit else [])
                self._table.callbacks |= {job.name: callback} if callback else {}
                self._table.add_outbox_entries(self._publication.of_jobs([(None, job)]))
            return self._table.jobs[job.name]

    def begin_pass(self) -> Snapshot:
        """Fence all earlier passes, then read; see `ports.Store`."""
        with self._lock:
            if self._table.pause is not None:
                raise Paused(f"The manager is paused: {self._table.pause.reason}.")
            self._table.passes += 1
            return self._read(sparing=True)

    def read_snapshot(self, *, depth: int = 0) -> Snapshot:
        """Read the same snapshot without a fence; see `ports.Store`."""
        return self._read(sparing=False, depth=depth)

    def current_pass(self) -> int:
        """Return the number of the pass that began last; see `ports.Store`."""
        with self._lock:
            return self._table.passes

    def changes(self) -> Changes:
        """Return the state as a token; see `ports.Store`."""
        with self._lock:
            table = self._table
            jobs = (sum(job.version for job in table.jobs.values()), len(table.jobs), len(table.audit))
            others = (table.version, sorted(table.external), sorted(table.warm), table.catalogue.learned_at)
            newest = max(table.audit, default=None)
            token = zlib.crc32(repr((jobs, others)).encode())
            return Changes(f"{token:08x}", None if newest is None else newest[0])

    def pause(self) -> Pause | None:
        """Return the pause of the manager; see `ports.Store`."""
        with self._lock:
            return self._table.pause

    def set_pause(self, pause: Pause | None, *, audit: Sequence[AuditEntry] = ()) -> None:
        """Pause or resume the manager; see `ports.Store`."""
        with self._lock:
            self._table.pause = pause
            self._table.passes += pause is not None
            self._table.add_audit_entries(audit)

    def restore(self) -> Restore | None:
        """Return the newest comparison that was asked for; see `ports.Store`."""
        with self._lock:
            return self._table.restore

    def save_restore(self, restore: Restore, *, audit: Sequence[AuditEntry] = ()) -> None:
        """Replace it; see `ports.Store`."""
        with self._lock:
            self._table.restore = restore
            self._table.add_audit_entries(audit)

    def is_paused(self) -> bool:
        """Return whether the manager is paused; see `ports.Store`."""
        return self.pause() is not None

    def held_units(self, pool: str) -> int:
        """Return the units of a pool that active jobs hold."""
        with self._lock:
            return sum(self._table.jobs[name].units.get(pool, 0) for name in self._table.active)

    def _read(self, *, sparing: bool, depth: int = 0) -> Snapshot:
        with self._lock:
            table = self._table
            settings = self.settings()
            active = tuple(table.jobs[name] for name in sorted(table.active))
            external = external_units(table.external, settings.pools)
            asking = (table.jobs[lane.first(1)[0][2]] for lane in table.lanes.values())
            pools = {**settings.pools, **self._discover().of((*active, *asking))}
            heads: list[QueuePlace] = []
            cut: list[CutLane] = []
            records, policy, catalogue = table.records, settings.policy, table.catalogue
            limits = ReadLimits.of(
                pools, active, external, catalogue, now=self._now(), policy=policy, refusals=records.refusals
            )
            wanted = partial(limits.for_pass, order=settings.policy.order) if sparing else limits.for_query
            for lane, places in table.lanes.items():
                found, more = self._head(places, first_of(lane, sparing=sparing), wanted, limits, depth)
                heads += found
                if more:
                    cut.append(CutLane(lane, table.jobs[found[0][2]], table.jobs[found[-1][2]]))
            in_turn = self._rotation.next_jobs(limits, cut, self._read_on) if sparing else ()
            heads += [job.order for job in in_turn]
            return Snapshot(
                pass_number=table.passes,
                pools=pools,
                active=active,
                waiting=tuple([table.jobs[name] for _, _, name in sorted(heads)]),
                cut_lanes=frozenset(lane.key for lane in cut),
                in_turn=frozenset(job.name for job in in_turn),
                external=external,
                external_jobs=dict(table.external),
                warm=tuple(pool for _, pool in sorted(table.warm.items())),
                policy=settings.policy,
                records=table.records,
                catalogue=table.catalogue,
                cursors=table.cursors,
            )

    def _head(
        self,
        places: SortedKeys[QueuePlace],
        least: int,
        wanted: Callable[[Job], int],
        limits: ReadLimits,
        depth: int,
    ) -> tuple[list[QueuePlace], bool]:
        """Return the places of a lane that are read, and whether it has more."""
        if len(places) <= least:
            return places.first(least), False
        jobs = self._table.jobs
        head = jobs[places.first(1)[0][2]]
        size = max(wanted(head), depth)
        first = places.first(size)
        if len(places) > size and limits.may_pass_over((jobs[name] for _, _, name in first), size):
            found, more = limits.heads((jobs[name] for _, _, name in places.after()), size)
            return [job.order for job in found], more
        return places.first(size), len(places) > size

    def _read_on(self, lane: str, behind: Job) -> Iterator[Job]:
        return (self._table.jobs[name] for _, _, name in self._table.lanes[lane].after(behind.order))

    def next_read_on(self, since: datetime) -> datetime | None:
        """Return when a pass reads on behind the heads of lanes; None if all jobs there were read since then."""
        return self._rotation.next_read(since)

    def transition(  # noqa: PLR0913 -- parts of one transaction
        self,
        changes: Sequence[tuple[Job, Job]],
        *,
        fence: int | None = None,
        warm: Sequence[WarmPool] = (),
        ended_warm: Sequence[str] = (),
        cursors: Cursors | None = None,
        audit: Sequence[AuditEntry] = (),
    ) -> bool:
        """Commit changes, all or none; see `ports.Store`."""
        check_changes(changes)
        with self._lock:
            if (changes or warm or ended_warm or cursors is not None) and fence not in (
                None,
                self._table.passes or None,
            ):
                raise Fenced(f"a newer pass has fenced pass {fence}")
            stored = [self._table.jobs.get(before.name) for before, _ in changes]
            for (before, _), now in zip(changes, stored, strict=True):
                if now is None or now.version != before.version:
                    return False
            for (before, after), now in zip(changes, self._jobs(before.name for before, _ in changes), strict=True):
                self._table.remove_job(now)
                self._table.put_job(after)
                self._table.put_warm_pools(filter(None, [left_by(before, after)]))
                self._record_usage(before, after)
            self._table.put_warm_pools(warm)
            for name in ended_warm:
                self._table.warm.pop(name, None)
            self._table.cursors = cursors or self._table.cursors
            self._table.add_audit_entries(audit)
            self._table.add_outbox_entries(self._publication.of_jobs(changes))
            return True

    def _record_usage(self, before: Job, after: Job) -> None:
        """Add the usage of a job that this change ends to the records."""
        if books(before, after):
            settings, past = self.settings(), self._table.records
            self._table.records = booked(past, before, after, settings.policy, settings.pools)

    def publish_thresholds(self, found: Sequence[Reached]) -> None:
        """Put the events of those that are new; see `ports.Store`."""
        with self._lock:
            past = self._table.records
            if entries := self._publication.of_thresholds(found, past.told):
                self._table.records = replace(past, told=told_after(past.told, found))
                self._table.add_outbox_entries(entries)

    def outbox(self, *, limit: int, after: str = "") -> tuple[OutboxRow, ...]:
        """Return the next rows of the outbox; see `ports.Store`."""
        with self._lock:
            keys = islice((key for key in sorted(self._table.outbox) if key > after), limit)
            return tuple(OutboxRow(key, self._table.outbox[key]) for key in keys)

    def settle_outbox(self, row: OutboxRow, left: Sequence[Entry]) -> None:
        """Keep only these entries of a row; see `ports.Store`."""
        with self._lock:
            self._table.outbox.pop(row.key, None)
            if left:
                self._table.outbox[row.key] = tuple(left)

    def callback(self, name: str) -> Callback | None:
        """Return the callback of a job; see `ports.Store`."""
        with self._lock:
            return self._table.callbacks.get(name)

    def callbacks_due(self, now: datetime) -> tuple[Callback, ...]:
        """Return the callbacks whose heartbeats are due; see `ports.Store`."""
        with self._lock:
            return earliest_due(self._table.callbacks.values(), now)

    def replace_callback(self, before: Callback, after: Callback | None) -> bool:
        """Replace a callback, or delete it; see `ports.Store`."""
        with self._lock:
            stored = self._table.callbacks.get(before.job)
            if stored is None or stored.version != before.version:
                return False
            self._table.callbacks.pop(before.job)
            self._table.callbacks |= {after.job: after} if after else {}
            return True

    def purge(self, job: Job, *, audit: Sequence[AuditEntry] = ()) -> bool:
        """Delete an ended job; see `ports.Store`."""
        check_purge(job)
        with self._lock:
            stored = self._table.jobs.get(job.name)
            if stored is None or stored.version != job.version:
                return False
            self._table.purge_job(stored)
            self._table.add_audit_entries(audit)
            return True

    def ended_before(self, before: datetime, *, limit: int) -> tuple[Job, ...]:
        """Return the jobs that ended first; see `ports.Store`."""
        with self._lock:
            places = takewhile(lambda place: place[0] < before, self._table.ended.after())
            return tuple(self._jobs(name for _, name in islice(places, limit)))

    def records(self) -> Records:
        """Return the statistics of ended attempts; see `ports.Store`."""
        with self._lock:
            return self._table.records

    def find(self, name: str) -> Job | None:
        """Return the job of that name; see `ports.Store`."""
        with self._lock:
            return self._table.jobs.get(name)

    def find_active(self, names: Collection[str]) -> Mapping[str, Job]:
        """Return those of these jobs that are active; see `ports.Store`."""
        with self._lock:
            return {name: self._table.jobs[name] for name in names if name in self._table.active}

    def requests_of(self, names: Collection[str]) -> Mapping[str, Request]:
        """Return the requests of these jobs; see `ports.Store`."""
        with self._lock:
            return {name: json.loads(self._table.requests[name]) for name in names if name in self._table.requests}

    def request_of(self, name: str) -> Request:
        """Return the request as submitted; see `ports.Store`."""
        with self._lock:
            if name not in self._table.requests:
                raise JobNotFound(f"There is no job named {name}.", field="jobName")
            request: Request = json.loads(self._table.requests[name])
            return request

    def list_jobs(self, which: Filter, *, limit: int, cursor: str | None = None) -> Page:
        """Return a page of jobs; see `ports.Store`."""
        check_limit(limit)
        start = Cursor.read(cursor)
        with self._lock:
            return Page(*page_of(self._jobs_after(which, start), which, limit))

    def parents_among(self, names: Collection[str]) -> frozenset[str]:
        """Return those that others run after; see `ports.Store`."""
        with self._lock:
            return frozenset(name for name in names if self._table.children.get(name))

    def settings(self, *, catalogue: bool = True, history: bool = False) -> QueueSettings:
        """Return the current settings; see `ports.Store`."""
        with self._lock:
            table, known = self._table, self._table.catalogue if catalogue else Catalogue()
            events = table.pool_events if history else ()
            policy = self._current_policy()
            if table.pools is None or table.version is None or table.parameter != self._parameter:
                version = 0 if table.version is None else table.version + 1
                return QueueSettings(self._default_pools, policy, version, self._policy, known, events)
            return QueueSettings(table.pools, policy, table.version, self._policy, known, events)

    def _current_policy(self) -> Policy:
        """Return the policy in force; parsing its document takes longer than a pass of a short queue."""
        document = self._table.policy
        if document is not self._parsed[0]:
            self._parsed = (document, self._policy if document is None else policy_of(document, self._policy))
        return self._parsed[1]

    def save_catalogue(self, catalogue: Catalogue) -> None:
        """Replace the attributes of instance types; see `ports.CatalogueStore`."""
        with self._lock:
            self._table.catalogue = catalogue

    def set_settings(
        self,
        *,
        pools: Sequence[Pool] | None = None,
        policy: Policy | None = None,
        version: int | None = None,
        events: Sequence[PoolEvent] = (),
        audit: Sequence[AuditEntry] = (),
    ) -> QueueSettings:
        """Replace the pools, the policy, or both; see `ports.Store`."""
        with self._lock:
            now, table = self.settings(), self._table
            if version not in (None, now.version):
                raise VersionConflict(
                    f"The settings now have version {now.version}.", field="version", hint="Read them again first."
                )
            table.pools = now.pools if pools is None else {pool.name: pool for pool in pools}
            table.policy = table.policy if policy is None else differences(policy, self._policy)
            table.version, table.parameter = now.version + 1, self._parameter
            table.pool_events = (*table.pool_events, *events)[-MAX_EVENTS:]
            table.add_audit_entries(audit)
            table.add_outbox_entries(self._publication.of_settings(table.version, events, audit))
            return self.settings()

    def add_audit(self, entry: AuditEntry) -> None:
        """Add the audit entry of a read; see `ports.Store`."""
        with self._lock:
            self._table.add_audit_entries([entry])

    def list_audit(self, which: AuditFilter, *, limit: int, cursor: str | None = None) -> AuditPage:
        """Return a page of audit entries; see `ports.Store`."""
        check_listing(limit, which)
        start = read_cursor(cursor)
        with self._lock:
            return audit_page(self._audit_before(which, start), which, limit)

    def update_external_jobs(
        self, present: Mapping[str, ExternalJob], gone: Sequence[str] = ()
    ) -> Mapping[str, ExternalJob]:
        """Add and remove external training jobs; see `ports.Store`."""
        with self._lock:
            for name in gone:
                self._table.external.pop(name, None)
            self._table.external.update(present)
            return dict(self._table.external)

    def _audit_before(self, which: AuditFilter, start: AuditPlace | None) -> Iterator[tuple[AuditPlace, AuditEntry]]:
        """Yield the entries before a place, newest first."""
        top = (which.until, "") if start is None else min((which.until, ""), start)
        places = takewhile(lambda place: place[0] >= which.since, self._table.audit_order.before(top))
        return ((place, self._table.audit[place]) for place in places)

    def _jobs(self, names: Iterable[str]) -> Iterator[Job]:
        return (self._table.jobs[name] for name in names)

    def _jobs_after(self, which: Filter, start: Cursor) -> Iterator[Job]:
        """Yield the jobs after a position, in the order of the listing."""
        table = self._table
        for part in parts_from(start.part, which.within):
            place = start if start.part is part else Cursor(part)
            if part is Part.ACTIVE:
                active = sorted(self._jobs(table.active), key=lambda job: job.order)
                yield from (job for job in active if place.queue is None or job.order > place.queue)
            elif part is Part.WAITING:
                shown = [lane for lane in table.lanes.values() if self._may_match(lane, which)]
                yield from self._jobs(order[2] for order in heapq.merge(*(lane.after(place.queue) for lane in shown)))
            elif part is Part.HELD:
                yield from self._jobs(self._held_names(which, place.held))
            else:
                yield from self._jobs(name for _, name in table.ended.before(place.ended))

    def _held_names(self, which: Filter, start: HeldPlace | None) -> Iterator[str]:
        """Yield names of held jobs after a position, in order, as far as the filter may match them."""
        if which.parent is not None:
            return self._table.children.get(which.parent, SortedKeys()).after(start[1] if start else None)
        due = which.due or NEVER
        return (name for _, name in takewhile(lambda place: place[0] <= due, self._table.held.after(start)))

    def _may_match(self, lane: SortedKeys[QueuePlace], which: Filter) -> bool:
        return which.reaches(self._table.jobs[next(lane.after())[2]])
