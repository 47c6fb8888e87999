"""Export settings, pools and waiting jobs, page by page, and import them into a queue.

An import first checks all that it is given and changes nothing if any job cannot be imported. Repeating it changes
nothing, since a job of the same request is left as it is.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from trainmaster.domain.access.caller import Caller, principal_of
from trainmaster.domain.access.ceilings import priority_problem
from trainmaster.domain.access.rules import Action
from trainmaster.domain.capacity.units import Kind, Pool
from trainmaster.domain.compat import StrEnum
from trainmaster.domain.errors import InvalidRequest, JobNotFound, Refused, UnreadableRow
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import WAITING, Change, Job, JobState
from trainmaster.domain.jobs.listing import Cursor, Filter
from trainmaster.domain.requests.elastic.size_change import SAME_BOUNDS, SizeBounds
from trainmaster.domain.requests.fields import shown
from trainmaster.domain.text import one_line
from trainmaster.ports.store import QueueSettings, Request
from trainmaster.service import dependencies
from trainmaster.service.admission.build_job import digest_of
from trainmaster.service.admission.policy import AdmissionPolicy
from trainmaster.service.admission.size_bounds import with_bounds
from trainmaster.service.capacity.pools import replace_all
from trainmaster.service.change import ApiContext
from trainmaster.service.wake import wake

log = logging.getLogger(__name__)
MAX_PAGE_CHARACTERS = 2_000_000
"""Characters of requests after which a page ends; a response of Lambda has at most 6 MB (Lambda developer guide)."""
_STATES = WAITING | {JobState.HELD}


@dataclass(frozen=True, slots=True)
class ExportPage:
    """One page of an export.

    Attributes:
        settings: the settings in force.
        jobs: waiting jobs in queue order, then held ones, each with its whole request.
        skipped: names of the other jobs: of other kinds than training, or with damaged requests.
        cursor: names the next page; None on the last one.
    """

    settings: QueueSettings
    jobs: tuple[tuple[Job, Request], ...]
    skipped: tuple[str, ...]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class ExportedJob:
    """A job of an export; `after` has only parents that had not ended.

    The other members are those of `Job`, and `bounds` those of its size if it is elastic.
    """

    request: Request
    priority: int
    entry_time: datetime
    submitted_by: str | None = None
    held_by: str | None = None
    after: tuple[str, ...] = ()
    bounds: SizeBounds = SAME_BOUNDS


@dataclass(frozen=True, slots=True)
class Import:
    """A part of an export, to be imported.

    Attributes:
        settings: a document of settings; None leaves them.
        pools: the pools that people have set; None leaves them.
        parents: jobs in other parts of the export that jobs of this one run after.
    """

    jobs: Sequence[ExportedJob] = ()
    settings: Mapping[str, Any] | None = None
    pools: Sequence[Pool] | None = None
    parents: Collection[str] = ()


class ImportOutcome(StrEnum):
    """Outcome of a job's import.

    new: it is stored, or would be.
    unchanged: the queue has it already.
    conflict: the queue has another job of its name.
    refused: it does not pass the checks of a submission.
    """

    NEW = "new"
    UNCHANGED = "unchanged"
    CONFLICT = "conflict"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class ImportedJob:
    """The outcome of one job; `message` says why it cannot be imported, "" if it can."""

    name: str
    outcome: ImportOutcome
    message: str = ""


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The result of an import.

    Attributes:
        settings_change: whether the settings differ from those in force before.
        pools_change: whether the pools do.
        done: False for a dry run, and if a job could not be imported. Nothing was changed then, unless the name of a
            job was taken meanwhile, or belonged to a purged job.
    """

    jobs: tuple[ImportedJob, ...]
    settings_change: bool
    pools_change: bool
    done: bool


def export_page(
    context: ApiContext, caller: Caller, limit: int, cursor: str | None, *, characters: int = MAX_PAGE_CHARACTERS
) -> ExportPage:
    """Return a page of the export, which ends after so many characters, and leave an audit entry of it.

    Raises `InvalidRequest` for a wrong cursor; `AccessDenied`.
    """
    context.require(caller, Action.ADMINISTER)
    page = context.store.list_jobs(Filter(states=_STATES), limit=limit, cursor=cursor)
    found, skipped, read = [], [], 0
    next_cursor = page.cursor
    for number, job in enumerate(page.jobs):
        if read > characters:
            next_cursor = Cursor.behind(page.jobs[number - 1]).text()
            break
        request = _request_of(context, job) if job.work is None else None
        if request is None:
            skipped.append(job.name)
            continue
        read += len(json.dumps(request))
        found.append((job, request))
    context.store.add_audit(context.recorder(caller).export([job.name for job, _ in found]))
    return ExportPage(context.store.settings(), tuple(found), tuple(skipped), next_cursor)


def _request_of(context: ApiContext, job: Job) -> Request | None:
    """Return the job's request; None, with a warning, if its rows are damaged: no other job stays out of the export."""
    try:
        return context.store.request_of(job.name)
    except (JobNotFound, UnreadableRow) as error:
        log.warning("a job is not exported", extra={"job": job.name, "cause": str(error)})
        return None


def exported_pools(settings: QueueSettings) -> list[Pool]:
    """Return the pools that people have set; the manager makes its own again."""
    return [pool for pool in settings.pools.values() if not pool.made_for and pool.kind is not Kind.SERVICE]


def import_part(
    context: ApiContext, caller: Caller, admission: AdmissionPolicy, part: Import, *, dry_run: bool
) -> ImportReport:
    """Import a part of an export, or with `dry_run` only check it.

    Raises `InvalidRequest`, `PoolInUse` for settings and pools that are refused; `AccessDenied`.
    """
    context.require(caller, Action.ADMINISTER)
    stored = context.store.settings()
    changed = replace_all(context, caller, part.pools, part.settings, dry_run=True)
    importer = _Importer(context, caller, admission, changed, context.clock.now())
    checked = list(importer.checked(part))
    results = tuple(result for result, _, _ in checked)
    settings_change, pools_change = changed.policy != stored.policy, changed.pools != stored.pools
    if dry_run or not _fit(results):
        return ImportReport(results, settings_change, pools_change, done=False)
    if settings_change or pools_change:
        replace_all(context, caller, part.pools, part.settings, dry_run=False)
    results = tuple(importer.stored(*each) for each in checked)
    wake(context.store, context.publisher)
    return ImportReport(results, settings_change, pools_change, done=_fit(results))


def _fit(results: Iterable[ImportedJob]) -> bool:
    return all(result.outcome in (ImportOutcome.NEW, ImportOutcome.UNCHANGED) for result in results)


@dataclass(slots=True)
class _Importer:
    """Checks and stores the jobs of one part.

    Attributes:
        settings: those that will be in force.
        seen: digests of the part's jobs so far, by name.
    """

    context: ApiContext
    caller: Caller
    admission: AdmissionPolicy
    settings: QueueSettings
    now: datetime
    seen: dict[str, str] = field(default_factory=dict)

    def checked(self, part: Import) -> Iterator[tuple[ImportedJob, ExportedJob, Job | None]]:
        """Yield the outcome of each job, and the job to store if it is new."""
        names = {_name(each) for each in part.jobs} | set(part.parents)
        for each in part.jobs:
            yield self._checked(each, names)

    def stored(self, result: ImportedJob, exported: ExportedJob, job: Job | None) -> ImportedJob:
        """Store a new job; return the outcome, which another caller's submission may have changed."""
        if job is None:
            return result
        entry = self.context.recorder(self.caller).imported(job)
        try:
            stored = self.context.store.submit(job, exported.request, audit=entry)
        except Refused as error:
            return replace(result, outcome=ImportOutcome.CONFLICT, message=error.message)
        if stored.digest != job.digest:
            return _conflict(job.name)
        dependencies.apply_parent_ends(self.context.store, stored, self.now)
        return result

    def _checked(self, each: ExportedJob, names: Collection[str]) -> tuple[ImportedJob, ExportedJob, Job | None]:
        name, digest = _name(each), digest_of(each.request)
        there = self.context.store.find(name) if name else None
        known = self.seen.get(name) if there is None else there.digest
        if known is not None:
            same = ImportedJob(name, ImportOutcome.UNCHANGED)
            return (same if known == digest else _conflict(name)), each, None
        self.seen[name] = digest
        try:
            job = self._job(each, names)
        except Refused as error:
            where = "" if error.field is None else f" ({error.field})"
            return ImportedJob(name, ImportOutcome.REFUSED, f"{error.message}{where}"), each, None
        return ImportedJob(name, ImportOutcome.NEW), each, job

    def _job(self, each: ExportedJob, names: Collection[str]) -> Job:
        """Return the job to store. Raises what `AdmissionPolicy.admit` raises, and `InvalidRequest`."""
        settings, now = self.settings, self.now
        admitted = self.admission.admit(
            each.request, self.caller, settings.pools, now, settings.policy, catalogue=settings.catalogue
        ).job
        share = settings.policy.shares.get(admitted.share)
        problem = priority_problem(each.priority, "priority", self.context.access.ceilings, share)
        if problem is not None:
            raise problem.refusal()
        if each.submitted_by is not None and principal_of(each.submitted_by) != each.submitted_by:
            raise InvalidRequest(f"{shown(each.submitted_by)} is no role or user.", field="submittedBy")
        job = replace(
            admitted,
            priority=each.priority,
            entry_time=min(each.entry_time, now),
            submitted_by=each.submitted_by,
            after=tuple(self._parents(each, names)),
            history=(Change(now, None, JobState.PENDING, f"imported by {self.caller.name}"),),
        )
        if each.bounds != SAME_BOUNDS:
            resized = with_bounds(job, each.bounds, settings, now, self.caller.name)
            job = replace(resized, version=job.version, history=job.history)
        return _held(lifecycle.hold_if_needed(job, now), each.held_by)

    def _parents(self, each: ExportedJob, names: Collection[str]) -> Iterator[str]:
        for name in each.after:
            parent = None if name in names else self.context.store.find(name)
            if parent is None and name not in names:
                raise InvalidRequest(
                    f"It runs after {shown(name)}, which is neither in the export nor in the queue.", field="after"
                )
            if parent is None or parent.state is not JobState.COMPLETED:
                yield name


def _held(job: Job, held_by: str | None) -> Job:
    """Return a job about to be stored, held by a person if there is one."""
    if held_by is None:
        return job
    history = (replace(job.history[0], after=JobState.HELD),)
    return replace(job, state=JobState.HELD, held_by=one_line(held_by), history=history)


def _name(each: ExportedJob) -> str:
    name = each.request.get("TrainingJobName")
    return name if isinstance(name, str) else ""


def _conflict(name: str) -> ImportedJob:
    return ImportedJob(name, ImportOutcome.CONFLICT, f"The name {name} belongs to a job with another request.")
