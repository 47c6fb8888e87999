"""The store: jobs, requests, settings and what a pass reads, kept in one place."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

from trainmaster.domain.access.audit import AuditEntry
from trainmaster.domain.access.audit_listing import AuditFilter, AuditPage
from trainmaster.domain.capacity.catalogue import Catalogue
from trainmaster.domain.capacity.external import ExternalJob
from trainmaster.domain.capacity.pool_history import PoolEvent
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.capacity.warm_pools import WarmPool
from trainmaster.domain.events.callback import Callback
from trainmaster.domain.events.types import Entry, OutboxRow
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.listing import Filter
from trainmaster.domain.plan import Cursors, Snapshot
from trainmaster.domain.policy.settings import Policy
from trainmaster.domain.records import Records
from trainmaster.domain.restore import Restore
from trainmaster.domain.shares.thresholds import Reached

Request = Mapping[str, Any]
"""A CreateTrainingJob request as JSON values."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a listing; `cursor` names the next page, None on the last one."""

    jobs: tuple[Job, ...]
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """The pools and the policy in force.

    Attributes:
        pools: by name.
        policy: the settings in force.
        version: to name when changing them; a change that names another version conflicts.
        deployed: the deployment's own policy, in force until another is set.
        catalogue: the known instance types.
        history: changes that the manager made to its own pools, oldest first; empty unless requested.
    """

    pools: Mapping[str, Pool]
    policy: Policy
    version: int
    deployed: Policy = field(default_factory=Policy)
    catalogue: Catalogue = field(default_factory=Catalogue)
    history: tuple[PoolEvent, ...] = ()


SETTLED_AFTER = timedelta(seconds=5)
"""Time after a change in which reads may not have it yet: they are eventually consistent."""


@dataclass(frozen=True, slots=True)
class Changes:
    """The state of the queue as a token.

    Attributes:
        token: another one after each change that listings show.
        at: the time of the newest change; None if there is none.
    """

    token: str
    at: datetime | None

    def settled(self, now: datetime) -> bool:
        """Return whether whatever is read from now on contains the newest change."""
        return self.at is None or abs(now - self.at) >= SETTLED_AFTER


@dataclass(frozen=True, slots=True)
class Pause:
    """The pause of the manager.

    Attributes:
        reason: in words, for people.
        by: who paused it, "" if unknown.
        at: when.
    """

    reason: str
    by: str
    at: datetime


class CatalogueStore(Protocol):
    """Keeps the catalogue of instance types; snapshots and settings include it."""

    def save_catalogue(self, catalogue: Catalogue) -> None:
        """Replace the stored catalogue."""
        ...


class Store(CatalogueStore, Protocol):
    """The queue's durable state.

    Every verb may raise `Throttled`, `Unavailable` and `NotPermitted`, and `UnsupportedSchema` if a release that this
    one is not compatible with has written it.
    """

    def submit(
        self, job: Job, request: Request, *, audit: AuditEntry | None = None, callback: Callback | None = None
    ) -> Job:
        """Store a new job, its request, its lane entry, its audit entry and its callback in one transaction.

        Returns the stored job: the given one, or the job that already had this name (then nothing is written; compare
        `digest`). Raises `TooLarge`, and `NameTaken` if a purged job had the name.
        """
        ...

    def begin_pass(self) -> Snapshot:
        """Begin a pass: fence all earlier passes, then read a strongly consistent snapshot.

        Raises `Paused`: nothing has begun then.
        """
        ...

    def read_snapshot(self, *, depth: int = 0) -> Snapshot:
        """Read a snapshot without a fence, for answers and dry runs.

        Eventually consistent, except for `pass_number`, which is read last and strongly consistent.

        Args:
            depth: how many waiting jobs to read of each lane that has them, where a pass would read fewer.
        """
        ...

    def current_pass(self) -> int:
        """Return the number of the newest pass, 0 before the first; one small, strongly consistent read."""
        ...

    def changes(self) -> Changes:
        """Return the state as a token, for callers that only ask whether anything has changed; eventually consistent.

        It follows changes of callers and fenced changes at once, others with the next pass. A pass of a queue without
        active and waiting jobs that has found nothing to do leaves it.
        """
        ...

    def pause(self) -> Pause | None:
        """Return the pause of the manager, strongly consistent; None if it is not paused."""
        ...

    def set_pause(self, pause: Pause | None, *, audit: Sequence[AuditEntry] = ()) -> None:
        """Pause the manager and fence the running pass, with audit entries, in one transaction; None resumes it."""
        ...

    def restore(self) -> Restore | None:
        """Return the newest comparison with SageMaker that was asked for, strongly consistent; None if none was."""
        ...

    def save_restore(self, restore: Restore, *, audit: Sequence[AuditEntry] = ()) -> None:
        """Replace it, with audit entries, in one transaction."""
        ...

    def is_paused(self) -> bool:
        """Return whether the manager was paused when this store last saw it, at `begin_pass` for instance.

        It costs a read only if it was never seen, an eventually consistent one: an event may be handled in the moment
        after a pause, as in the one before. A pass never begins then.
        """
        ...

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
        """Commit changes of jobs in one transaction; return whether it was committed.

        Each job's version guards its change; a changed version makes the whole transaction fail, and False returned.

        Args:
            changes: at most 90 jobs, each before and after. A warm pool that a change leaves (`warm_pools.left_by`) is
                stored with it.
            fence: the pass that must still be the newest; None for a change that needs no fence.
            warm: warm pools to store.
            ended_warm: names of training jobs whose warm pools to delete.
            cursors: placement policies' cursors to store; None leaves them.
            audit: audit entries to add; at most 4.

        Raises `Fenced` if a later pass has begun.
        """
        ...

    def publish_thresholds(self, found: Sequence[Reached]) -> None:
        """Put the events of budget thresholds that were not told in this period, and note them, in one transaction."""
        ...

    def outbox(self, *, limit: int, after: str = "") -> tuple[OutboxRow, ...]:
        """Return the next rows of the outbox after a key, oldest first, strongly consistent; fewer if some are damaged.

        `submit`, `transition`, `set_settings` and `publish_thresholds` write them with their changes, as the
        deployment's publication says.
        """
        ...

    def settle_outbox(self, row: OutboxRow, left: Sequence[Entry]) -> None:
        """Keep only these entries of a row of the outbox; without any, delete it. It need not exist any more."""
        ...

    def callback(self, name: str) -> Callback | None:
        """Return the callback of a job, strongly consistent; None if it has none, or its end is delivered."""
        ...

    def callbacks_due(self, now: datetime) -> tuple[Callback, ...]:
        """Return the callbacks whose heartbeats are due, the earliest first; eventually consistent."""
        ...

    def replace_callback(self, before: Callback, after: Callback | None) -> bool:
        """Replace a callback, or delete it; return whether that was done. The version guards it."""
        ...

    def purge(self, job: Job, *, audit: Sequence[AuditEntry] = ()) -> bool:
        """Delete an ended job, its request and its history in one transaction; return whether that was done.

        Its name stays reserved: `submit` raises `NameTaken` for it. The job's version guards the deletion. Raises
        ValueError for a job that has not ended.
        """
        ...

    def ended_before(self, before: datetime, *, limit: int) -> tuple[Job, ...]:
        """Return the jobs that ended before a time, the earliest first; a job that has just ended may be missing."""
        ...

    def records(self) -> Records:
        """Return the statistics of ended attempts, as a snapshot has them; eventually consistent."""
        ...

    def find(self, name: str) -> Job | None:
        """Return the job of that name with its whole history, strongly consistent; None if there is none."""
        ...

    def find_active(self, names: Collection[str]) -> Mapping[str, Job]:
        """Return those of these jobs that are active, in one read of at most 100 jobs; eventually consistent.

        A job may be one of a moment ago, which `transition` notices by its version, and one that has just become active
        may be missing. Old lines of a long history may be missing, as in a snapshot. A job whose row cannot be read is
        left out.
        """
        ...

    def request_of(self, name: str) -> Request:
        """Return the job's request as submitted. Raises `JobNotFound`."""
        ...

    def requests_of(self, names: Collection[str]) -> Mapping[str, Request]:
        """Return the requests of at most 100 jobs, as far as one read has them: large or new ones may be left out."""
        ...

    def list_jobs(self, which: Filter, *, limit: int, cursor: str | None = None) -> Page:
        """Return a page of matching jobs: active, waiting in queue order, held, then ended ones, newest first.

        Raises `InvalidRequest` for an invalid cursor.
        """
        ...

    def parents_among(self, names: Collection[str]) -> frozenset[str]:
        """Return those of these jobs that held jobs may run after, strongly consistent, in at most one read.

        It leaves out only jobs that no job runs after.
        """
        ...

    def settings(self, *, catalogue: bool = True, history: bool = False) -> QueueSettings:
        """Return the settings in force; the catalogue and the history each cost another read."""
        ...

    def set_settings(
        self,
        *,
        pools: Sequence[Pool] | None = None,
        policy: Policy | None = None,
        version: int | None = None,
        events: Sequence[PoolEvent] = (),
        audit: Sequence[AuditEntry] = (),
    ) -> QueueSettings:
        """Replace the pools, the policy, or both, and return the settings then in force.

        Args:
            pools: all pools; None leaves them.
            policy: None leaves it.
            version: the version that must still be in force; None for any.
            events: appended to the history in the same transaction.
            audit: audit entries to add in the same transaction.

        Raises `VersionConflict` if another version is in force.
        """
        ...

    def add_audit(self, entry: AuditEntry) -> None:
        """Add the audit entry of a read; changes bring their own."""
        ...

    def list_audit(self, which: AuditFilter, *, limit: int, cursor: str | None = None) -> AuditPage:
        """Return a page of matching audit entries, newest first, strongly consistent; it may be short.

        Raises `InvalidRequest` for an invalid cursor, or for an empty time span.
        """
        ...

    def update_external_jobs(
        self, present: Mapping[str, ExternalJob], gone: Sequence[str] = ()
    ) -> Mapping[str, ExternalJob]:
        """Add and remove training jobs that are no active attempts; return all known ones by name."""
        ...
