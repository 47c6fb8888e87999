"""The Store on one DynamoDB table: each state of a job has its place (docs/adr/0001-a-job-is-one-row.md).

docs/reference/table.md describes the rows. No verb uses Scan.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from trainmaster.adapters.dynamodb.access.audit import audit_actions, list_audit
from trainmaster.adapters.dynamodb.access.purging import is_purged, purge
from trainmaster.adapters.dynamodb.catalogue import (
    CATALOGUE,
    CURSORS,
    catalogue_of,
    catalogue_row,
    cursors_of,
    cursors_row,
)
from trainmaster.adapters.dynamodb.control.changes import CHANGES, marks, read_changes
from trainmaster.adapters.dynamodb.control.pause import PAUSED, pause_of, pause_text
from trainmaster.adapters.dynamodb.control.restore import RESTORE, restore_of, restore_row
from trainmaster.adapters.dynamodb.events.callbacks import (
    callback_actions,
    read_callback,
    read_due,
    replace_callback,
)
from trainmaster.adapters.dynamodb.events.outbox import outbox_actions, read_outbox, settle_outbox
from trainmaster.adapters.dynamodb.finding import find
from trainmaster.adapters.dynamodb.lanes.heads import ForEach, KnownLanes, Lane, read_heads, resize_heads, rest_of_lane
from trainmaster.adapters.dynamodb.lanes.passed_over import PassedOver
from trainmaster.adapters.dynamodb.listing import list_jobs, parents_among
from trainmaster.adapters.dynamodb.reading import KnownJobs, ReadJobs, read, read_or, readable, readable_jobs
from trainmaster.adapters.dynamodb.records import RECORDS, booking_actions, records_of, threshold_actions
from trainmaster.adapters.dynamodb.requests import read_request, read_requests, request_rows
from trainmaster.adapters.dynamodb.rows import (
    ACTIVE_ROWS,
    CONTROL,
    EXTERNAL_ROWS,
    STATE,
    WARM_ROWS,
    Key,
    Row,
    after_rows,
    external_of,
    external_row,
    job_key,
    keyed,
    lane_end,
    moment,
    row_of,
    span,
    waiting_key,
    warm_key,
    warm_of,
    warm_row,
)
from trainmaster.adapters.dynamodb.settings import EVENTS, SETTINGS, Deployed, history_actions, history_of
from trainmaster.adapters.dynamodb.table import ABSENT, MAX_ACTIONS, Action, Guard, Table
from trainmaster.adapters.dynamodb.transitions import transition_actions
from trainmaster.domain.access.audit import AuditEntry
from trainmaster.domain.access.audit_listing import AuditFilter, AuditPage
from trainmaster.domain.capacity.catalogue import Catalogue
from trainmaster.domain.capacity.external import ExternalJob, Origin, external_units
from trainmaster.domain.capacity.pool_history import PoolEvent
from trainmaster.domain.capacity.read_limits import ReadLimits, first_guess, first_of
from trainmaster.domain.capacity.rotation import MAX_READ, CutLane, Rotation
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.capacity.warm_pools import WarmPool
from trainmaster.domain.errors import Fenced, Paused, Throttled, Unavailable
from trainmaster.domain.events.callback import Callback
from trainmaster.domain.events.publication import Publication
from trainmaster.domain.events.types import Entry, OutboxRow
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.listing import Filter
from trainmaster.domain.plan import Cursors, Snapshot
from trainmaster.domain.policy.settings import Policy
from trainmaster.domain.records import Records
from trainmaster.domain.restore import Restore
from trainmaster.domain.shares.charging import books
from trainmaster.domain.shares.thresholds import Reached
from trainmaster.domain.store_limits import check_changes, purged_name
from trainmaster.ports.kinds import Discover, NoDiscovery
from trainmaster.ports.store import Changes, Page, Pause, QueueSettings, Request

_ROUNDS = 10
_MAX_SPILLING = 18
"""Changes in one transition, at most, for which there is room to archive old history: five writes each."""


class DynamoStore:
    """The queue's memory in DynamoDB.

    Args:
        table: the table, with its client and its pauses. The client's own retries cover throttling, 5xx and lost
            answers.
        default_pools: the pools of the deployment's `Pools` parameter.
        parameter: that parameter as text. Pools set through the API hold until a deployment changes it.
        policy: the deployment's settings, until others are set.
        now: returns the present, UTC.
        discover: makes the discovery of services' pools for each snapshot.
        publication: what goes into the outbox.
        for_each: reads parts of a long queue, one after the other by default.

    Every verb raises `Throttled`, `Unavailable` and `NotPermitted` beyond the port's errors.
    """

    def __init__(  # noqa: PLR0913 -- parts of a deployment
        self,
        table: Table,
        *,
        default_pools: Mapping[str, Pool],
        parameter: str,
        policy: Policy | None = None,
        discover: Discover = NoDiscovery,
        publication: Publication | None = None,
        now: Callable[[], datetime],
        for_each: ForEach = map,
    ) -> None:
        self._table, self._discover, self._now = table, discover, now
        self._read_heads = partial(read_heads, table, for_each=for_each)
        self._publication = publication or Publication()
        # Whether there are changes that the token does not follow yet: another store may have left some.
        self._unmarked = True
        self._deployed = Deployed(dict(default_pools), parameter, policy or Policy())
        self._paused: bool | None = None
        self._known = KnownJobs()
        self._known_lanes = KnownLanes()
        self._passed_over, self._rotation = PassedOver(table, now), Rotation(now)

    def submit(
        self, job: Job, request: Request, *, audit: AuditEntry | None = None, callback: Callback | None = None
    ) -> Job:
        """Store a new job, all or nothing; see `ports.Store`."""
        identity, *pieces = request_rows(job, request)
        table = self._table
        others = [row_of(job), *pieces, *(keyed(key) for key in sorted(after_rows(job)))]
        writes = [table.put_action(identity, ABSENT), *map(table.put_action, others)]
        writes += audit_actions(table, [audit] if audit else [])
        writes += callback_actions(table, callback)
        writes += outbox_actions(table, self._publication.of_jobs([(None, job)]))
        if not table.commit(writes):
            return job
        stored = find(table, job.name)
        if stored is None and is_purged(table.get(job_key(job.name))):
            raise purged_name(job.name)
        if stored is None:
            raise Unavailable(f"job {job.name} exists, but cannot be read")
        return stored

    def begin_pass(self) -> Snapshot:
        """Fence all earlier passes, then read; see `ports.Store`. A lost answer may skip a number."""
        for _ in range(_ROUNDS):
            row, also = (marks(self._now()), [CHANGES]) if self._unmarked else (keyed(CONTROL), [])
            number = self._table.increment(row, "pass", *also, unless=PAUSED)
            if number is not None:
                self._paused = False
                snapshot = self._read(number, deciding=True)
                self._unmarked = bool(snapshot.active or snapshot.waiting)
                return snapshot
            # A newer schema is refused as the row is read, and again before the next event.
            self._paused = None
            if (pause := self.pause()) is not None:
                raise Paused(f"The manager is paused: {pause.reason}.")
        raise Throttled("other callers keep pausing and resuming the manager")

    def read_snapshot(self, *, depth: int = 0) -> Snapshot:
        """Return a snapshot without a fence; see `ports.Store`.

        It costs half as much, because only the pass number needs strong consistency: a caller that writes, then reads
        number n, knows that pass n + 1 sees the write.
        """
        snapshot = self._read(0, deciding=False, depth=depth)
        return replace(snapshot, pass_number=self.current_pass())

    def current_pass(self) -> int:
        """Return the number of the pass that began last; see `ports.Store`."""
        control = self._table.get(CONTROL)
        return read(control, lambda row: int(row["pass"]["N"])) if control and "pass" in control else 0

    def changes(self) -> Changes:
        """Return the state as a token; see `ports.Store`."""
        return read_changes(self._table, self._deployed.parameter, self._now())

    def pause(self) -> Pause | None:
        """Return the pause of the manager; see `ports.Store`."""
        return self._pause(self._table.get(CONTROL))

    def _pause(self, control: Row | None) -> Pause | None:
        self._paused = control is not None and PAUSED in control
        return pause_of(control[PAUSED]) if control is not None and self._paused else None

    def set_pause(self, pause: Pause | None, *, audit: Sequence[AuditEntry] = ()) -> None:
        """Pause or resume the manager; see `ports.Store`."""
        # Raises UnsupportedSchema, before the row would get an older version.
        self.pause()
        table = self._table
        if pause is None:
            action = table.update_action(keyed(CONTROL), remove=[PAUSED])
        else:
            action = table.update_action(keyed(CONTROL, **{PAUSED: pause_text(pause)}), add={"pass": 1})
        table.commit([action, *audit_actions(table, audit)])

    def restore(self) -> Restore | None:
        """Return the newest comparison that was asked for; see `ports.Store`."""
        row = self._table.get(RESTORE)
        # One that cannot be read is logged, and as good as none: the next one replaces it.
        return read_or(row, restore_of, None)

    def save_restore(self, restore: Restore, *, audit: Sequence[AuditEntry] = ()) -> None:
        """Replace it; see `ports.Store`."""
        table = self._table
        table.commit([table.update_action(restore_row(restore)), *audit_actions(table, audit)])

    def is_paused(self) -> bool:
        """Return whether the manager was paused when last seen; see `ports.Store`."""
        if self._paused is None:
            self._pause(self._table.get(CONTROL, consistent=False))
        return bool(self._paused)

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
        """Commit changes, all or none; see `ports.Store`. Raises `ValueError` beyond 100 writes."""
        check_changes(changes)
        may_spill = len(changes) <= _MAX_SPILLING
        writes = [
            write for change in changes for write in transition_actions(self._table, *change, may_spill=may_spill)
        ]
        writes += [self._table.update_action(warm_row(pool)) for pool in warm]
        writes += [self._table.delete_action(warm_key(name)) for name in ended_warm]
        writes += [self._table.update_action(cursors_row(cursors))] if cursors is not None else []
        writes += audit_actions(self._table, audit)
        writes += outbox_actions(self._table, self._publication.of_jobs(changes))
        self._unmarked |= fence is None
        if fence is None and len(writes) == len(changes) == 1 and not books(*changes[0]):
            return self._table.replace(writes[0]["Put"]["Item"], Guard("version", changes[0][0].version))
        for round_ in range(_ROUNDS):
            bookings = booking_actions(self._table, self._deployed, changes, consistent=round_ > 0)
            won = self._commit(fence, writes, bookings)
            if won is not None:
                return won
        raise Throttled("other writers keep booking ended attempts")

    def _commit(self, fence: int | None, writes: Sequence[Action], bookings: Sequence[Action]) -> bool | None:
        """Return True if the changes won, False if not, None if only others' bookings came between."""
        # It costs what the check alone would cost.
        fences = (
            []
            if fence is None
            else [self._table.update_action(marks(self._now()), add={CHANGES: 1}, guard=Guard("pass", fence))]
        )
        actions = [*fences, *writes, *bookings]
        if len(actions) > MAX_ACTIONS:
            raise ValueError(f"these changes need more than {MAX_ACTIONS} writes")
        failed = self._table.commit(actions) if writes else frozenset[int]()
        if fences and 0 in failed:
            raise Fenced(f"a newer pass has fenced pass {fence}")
        return None if failed and min(failed) >= len(fences) + len(writes) else not failed

    def publish_thresholds(self, found: Sequence[Reached]) -> None:
        """Put the events of those that are new; see `ports.Store`."""
        for _ in range(_ROUNDS):
            actions = threshold_actions(self._table, found, self._publication)
            if not actions or not self._table.commit(actions):
                return
        raise Throttled("other writers keep booking ended attempts")

    def outbox(self, *, limit: int, after: str = "") -> tuple[OutboxRow, ...]:
        """Return the next rows of the outbox; see `ports.Store`."""
        return read_outbox(self._table, limit, after)

    def settle_outbox(self, row: OutboxRow, left: Sequence[Entry]) -> None:
        """Keep only these entries of a row; see `ports.Store`."""
        settle_outbox(self._table, row, left)

    def callback(self, name: str) -> Callback | None:
        """Return the callback of a job; see `ports.Store`."""
        return read_callback(self._table, name)

    def callbacks_due(self, now: datetime) -> tuple[Callback, ...]:
        """Return the callbacks whose heartbeats are due; see `ports.Store`."""
        return read_due(self._table, now)

    def replace_callback(self, before: Callback, after: Callback | None) -> bool:
        """Replace a callback, or delete it; see `ports.Store`."""
        return replace_callback(self._table, before, after)

    def purge(self, job: Job, *, audit: Sequence[AuditEntry] = ()) -> bool:
        """Delete an ended job; see `ports.Store`."""
        self._unmarked = True
        return purge(self._table, job, audit_actions(self._table, audit))

    def ended_before(self, before: datetime, *, limit: int) -> tuple[Job, ...]:
        """Return the jobs that ended first; see `ports.Store`. Eventually consistent."""
        rows, _ = self._table.query_ended(before=moment(before), limit=limit, newest_first=False)
        return tuple(readable_jobs(rows))

    def records(self) -> Records:
        """Return the statistics of ended attempts; see `ports.Store`."""
        return records_of(self._table.get(RECORDS, consistent=False))

    def find(self, name: str) -> Job | None:
        """Return the job of that name; see `ports.Store`."""
        return find(self._table, name)

    def find_active(self, names: Collection[str]) -> Mapping[str, Job]:
        """Return those that are active; see `ports.Store`."""
        keys = [(STATE, ACTIVE_ROWS + name) for name in names]
        rows = self._table.batch_get(keys, consistent=False) if keys else []
        return {job.name: job for job in readable_jobs(rows)}

    def request_of(self, name: str) -> Request:
        """Return the request as submitted; see `ports.Store`."""
        return read_request(self._table, name)

    def requests_of(self, names: Collection[str]) -> Mapping[str, Request]:
        """Return requests that one read has; see `ports.Store`."""
        return read_requests(self._table, names)

    def list_jobs(self, which: Filter, *, limit: int, cursor: str | None = None) -> Page:
        """Return a page of jobs; see `ports.Store`. A job that has just ended may be missing for a moment."""
        return list_jobs(self._table, which, limit, cursor)

    def parents_among(self, names: Collection[str]) -> frozenset[str]:
        """Return those that others may run after; see `ports.Store`."""
        return parents_among(self._table, names)

    def settings(self, *, catalogue: bool = True, history: bool = False) -> QueueSettings:
        """Return the settings in force; see `ports.Store`."""
        if not (catalogue or history):
            return self._deployed.in_force(self._table.get(SETTINGS))
        keys = [SETTINGS, *([CATALOGUE] if catalogue else []), *([EVENTS] if history else [])]
        rows = {_key(row): row for row in self._table.batch_get(keys)}
        return replace(
            self._deployed.in_force(rows.get(SETTINGS)),
            catalogue=catalogue_of(rows.get(CATALOGUE)),
            history=history_of(rows.get(EVENTS)),
        )

    def save_catalogue(self, catalogue: Catalogue) -> None:
        """Replace the learned catalogue; see `ports.CatalogueStore`."""
        self._unmarked = True
        self._table.update(catalogue_row(catalogue))

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
        self._unmarked = True

        def others(made: int) -> list[Action]:
            entries = self._publication.of_settings(made, events, audit)
            return [
                *history_actions(self._table, events),
                *audit_actions(self._table, audit),
                *outbox_actions(self._table, entries),
            ]

        changed = self._deployed.change(self._table, pools, policy, version, others)
        return replace(changed, catalogue=catalogue_of(self._table.get(CATALOGUE)))

    def add_audit(self, entry: AuditEntry) -> None:
        """Add the audit entry of a read; see `ports.Store`."""
        self._table.commit(audit_actions(self._table, [entry]))

    def list_audit(self, which: AuditFilter, *, limit: int, cursor: str | None = None) -> AuditPage:
        """Return a page of audit entries; see `ports.Store`."""
        return list_audit(self._table, which, limit, cursor)

    def update_external_jobs(
        self, present: Mapping[str, ExternalJob], gone: Sequence[str] = ()
    ) -> Mapping[str, ExternalJob]:
        """Add and remove external training jobs; see `ports.Store`. Unchanged ones are not written."""
        known = dict(readable(self._table.all_rows(STATE, **span(EXTERNAL_ROWS)), external_of))
        for name in known.keys() & set(gone) - present.keys():
            self._unmarked = True
            self._table.delete((STATE, EXTERNAL_ROWS + name))
            del known[name]
        for name, job in present.items():
            if known.get(name) != job:
                self._unmarked = True
                removed = ("origin",) if job.origin is Origin.OUTSIDE else ()
                self._table.update(external_row(name, job), remove=removed)
                known[name] = job
        return known

    def _read(self, pass_number: int, *, deciding: bool, depth: int = 0) -> Snapshot:
        """Return a snapshot; to decide upon it, read strongly consistent and no more of each lane than a pass needs.

        `depth`: how many jobs to read of each lane otherwise, where that is more.
        """
        rows = {_key(row): row for row in self._table.all_rows(STATE, consistent=deciding)}
        settings = self._deployed.in_force(rows.get(SETTINGS))
        unreadable: list[str] = []
        report = unreadable.append
        external_jobs = dict(readable(_beginning(rows, EXTERNAL_ROWS), external_of, report))
        external = external_units(external_jobs, settings.pools)
        catalogue = catalogue_of(rows.get(CATALOGUE))
        jobs_of = self._known.reader(report)
        active = list(jobs_of(_beginning(rows, ACTIVE_ROWS)))
        services = self._discover()
        pools = {**settings.pools, **services.of(active)}
        guess = first_guess(pools, active, external, settings.policy.order) if deciding else first_of
        lanes = self._read_heads(guess, self._known_lanes, consistent=deciding, jobs_of=jobs_of)
        first = {lane.key: lane.jobs[0] for lane in lanes}
        # All jobs of a lane need the same pools, which its key names.
        asking = [job for job in first.values() if job.work is not None]
        pools = {**settings.pools, **services.of([*active, *asking])}
        records = records_of(rows.get(RECORDS))
        limits = ReadLimits.of(
            pools, active, external, catalogue, now=self._now(), policy=settings.policy, refusals=records.refusals
        )
        wanted = partial(limits.for_pass, order=settings.policy.order) if deciding else limits.for_query
        lanes = self._resized(lanes, lambda head: max(wanted(head), depth), jobs_of, deciding=deciding)
        lanes = self._passed_over.read_past(lanes, limits, consistent=deciding, jobs_of=jobs_of)
        in_turn = self._read_on(lanes, limits, jobs_of) if deciding else []
        waiting = [*(job for lane in lanes for job in lane.jobs), *in_turn]
        return Snapshot(
            pass_number=pass_number,
            pools=pools,
            active=tuple(_newest(active, waiting)),
            waiting=tuple(sorted(_newest(waiting, active), key=lambda job: job.order)),
            cut_lanes=frozenset(first[lane.key].lane for lane in lanes if lane.cut),
            in_turn=frozenset(job.name for job in in_turn),
            external=external,
            external_jobs=external_jobs,
            warm=tuple(readable(_beginning(rows, WARM_ROWS), warm_of, report)),
            policy=settings.policy,
            records=records,
            catalogue=catalogue,
            cursors=cursors_of(rows.get(CURSORS)),
            unreadable=tuple(unreadable),
        )

    def _resized(
        self, lanes: Sequence[Lane], wanted: Callable[[Job], int], jobs_of: ReadJobs, *, deciding: bool
    ) -> list[Lane]:
        """Return the lanes with as many jobs as `wanted` says for the first of each; the next read knows them."""
        found = resize_heads(
            self._table,
            lanes,
            lambda lane: first_of(lane, sparing=deciding),
            lambda lane: wanted(lane.jobs[0]),
            consistent=deciding,
            jobs_of=jobs_of,
        )
        self._known_lanes = KnownLanes.of(found)
        return found

    def _read_on(self, lanes: Iterable[Lane], limits: ReadLimits, jobs_of: ReadJobs) -> list[Job]:
        """Return the jobs behind the heads of cut lanes whose turn it is (`Rotation`)."""

        def read_on(key: str, behind: Job) -> Iterator[Job]:
            return rest_of_lane(self._table, waiting_key(key, behind.order), lane_end(key), MAX_READ, jobs_of=jobs_of)

        cut = (CutLane(lane.key, lane.jobs[0], lane.jobs[-1]) for lane in lanes if lane.cut)
        return self._rotation.next_jobs(limits, cut, read_on)


def _key(row: Row) -> Key:
    return (row["pk"]["S"], row["sk"]["S"])


def _beginning(rows: Mapping[Key, Row], prefix: str) -> list[Row]:
    return [row for (_, sort_key), row in rows.items() if sort_key.startswith(prefix)]


def _newest(jobs: Iterable[Job], others: Iterable[Job]) -> list[Job]:
    """Return the jobs that the other list does not have in a newer version: one may move between two reads."""
    versions = {job.name: job.version for job in others}
    return [job for job in jobs if job.version > versions.get(job.name, -1)]
