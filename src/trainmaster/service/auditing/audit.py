"""Audit entries of the commands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from trainmaster.domain.access.audit import AuditAction, AuditEntry, changed_values, short
from trainmaster.domain.access.caller import Caller
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.document import document
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.policy.document import settings_document
from trainmaster.domain.policy.settings import Policy
from trainmaster.ports.store import Pause, QueueSettings

DEFAULT_RETENTION = timedelta(days=400)


@dataclass(frozen=True, slots=True)
class Recorder:
    """Makes the entries of one caller's change.

    Attributes:
        at: the time of the change.
        retention: how long its entries are kept.
    """

    caller: Caller
    at: datetime
    retention: timedelta = DEFAULT_RETENTION

    def submission(self, job: Job) -> AuditEntry:
        """Return the entry of a new job; the request itself is stored with the job."""
        return self._entry(AuditAction.SUBMIT, job.name, {}, _identity(job))

    def imported(self, job: Job) -> AuditEntry:
        """Return the entry of a job that the caller imported for its submitter."""
        after = _identity(job) | {"submittedBy": job.submitted_by}
        return self._entry(AuditAction.IMPORT, job.name, {}, {name: each for name, each in after.items() if each})

    def adopted(self, job: Job) -> AuditEntry:
        """Return the entry of a job that was made for its training job when the caller restored the table."""
        return self._entry(AuditAction.ADOPT, job.name, {}, _identity(job))

    def purge(self, job: Job) -> AuditEntry:
        """Return the entry of a deleted job."""
        return self._entry(AuditAction.PURGE, job.name, _identity(job), {})

    def of_job(self, before: Job, after: Job, action: AuditAction | None = None) -> tuple[AuditEntry, ...]:
        """Return the entries of a change of a job: one of this action, or one for each part that changed."""
        if action is not None:
            return (self._entry(action, after.name, *changed_values(_job_values(before), _job_values(after))),)
        was, now = _job_values(before), _job_values(after)
        entries = []
        if before.priority != after.priority:
            values = ({"priority": was.pop("priority")}, {"priority": now.pop("priority")})
            entries.append(self._entry(AuditAction.PRIORITY, after.name, *values))
        if before.elastic is not None and after.elastic is not None and before.elastic != after.elastic:
            bounds = [
                {"minInstances": each.min_instances, "maxInstances": each.max_instances}
                for each in (before.elastic, after.elastic)
            ]
            entries.append(self._entry(AuditAction.SIZE_BOUNDS, after.name, *changed_values(*bounds)))
        if was != now:
            kind = AuditAction.HOLD if after.held_by and not before.held_by else AuditAction.RELEASE
            entries.append(self._entry(kind, after.name, *changed_values(was, now)))
        return tuple(entries)

    def of_settings(
        self, before: QueueSettings, pools: Sequence[Pool] | None, policy: Policy | None
    ) -> tuple[AuditEntry, ...]:
        """Return the entries of a change of the pools, the policy, or both; None leaves them."""
        entries = []
        if pools is not None:
            values = changed_values(_pools_document(before.pools.values()), _pools_document(pools))
            entries.append(self._entry(AuditAction.POOLS, "", *values))
        if policy is not None:
            values = changed_values(settings_document(before.policy), settings_document(policy))
            entries.append(self._entry(AuditAction.SETTINGS, "", *values))
        return tuple(entries)

    def of_pause(self, before: Pause | None, after: Pause | None) -> AuditEntry:
        """Return the entry of a pause, or of its end."""
        values = changed_values(*(({} if each is None else document(each)) for each in (before, after)))
        return self._entry(AuditAction.RESUME if after is None else AuditAction.PAUSE, "", *values)

    def restore(self, *, adopt: bool) -> AuditEntry:
        """Return the entry of a request to compare the table with SageMaker; adoptions have entries of their own."""
        return self._entry(AuditAction.RESTORE, "", {}, {"adopt": adopt})

    def export(self, names: Sequence[str]) -> AuditEntry:
        """Return the entry of a page of an export, with the first and the last of the jobs whose requests it has."""
        ends = {"first": names[0], "last": names[-1]} if names else {}
        return self._entry(AuditAction.EXPORT, "", {}, {"jobs": len(names), **ends})

    def _entry(self, action: AuditAction, job: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> AuditEntry:
        return AuditEntry(
            at=self.at,
            action=action,
            principal=short(self.caller.principal),
            arn=short(self.caller.arn or ""),
            source_ip=short(self.caller.source_ip),
            user_agent=short(self.caller.user_agent),
            request_id=short(self.caller.request_id),
            job=job,
            before=before,
            after=after,
            expires=self.at + self.retention,
        )


def _identity(job: Job) -> dict[str, Any]:
    values = _job_values(job) | {"share": job.share, "digest": job.digest}
    return {name: each for name, each in values.items() if each}


def _job_values(job: Job) -> dict[str, Any]:
    attempt = job.attempt
    return {
        "state": job.state.value,
        "priority": job.priority,
        "heldBy": job.held_by,
        "stopRequested": job.stop_requested,
        "units": dict(job.units),
        "resizing": None if attempt is None or attempt.resizing is None else attempt.resizing.after,
    }


def _pools_document(pools: Iterable[Pool]) -> dict[str, Any]:
    return {"pools": {pool.name: document(pool, sparse=True) for pool in pools}}
