"""Lists audit entries."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from trainmaster.domain.access.audit import AuditAction
from trainmaster.domain.access.audit_listing import AuditFilter, AuditPage
from trainmaster.domain.access.caller import Caller
from trainmaster.domain.access.rules import Action
from trainmaster.service.change import ApiContext

_SKEW = timedelta(minutes=5)
"""Clocks of two functions may differ by this much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditQuery:
    """The entries that a caller asks for; None leaves a bound or a filter open."""

    limit: int
    cursor: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    job: str | None = None
    who: str | None = None
    action: AuditAction | None = None


def list_audit(context: ApiContext, caller: Caller, query: AuditQuery) -> AuditPage:
    """Return a page of audit entries, newest first; none is older than their retention.

    Raises `InvalidRequest` for an invalid cursor, or for an empty time span; `AccessDenied`.
    """
    context.require(caller, Action.READ_AUDIT)
    now = context.clock.now()
    oldest, newest = now - context.audit_retention, now + _SKEW
    since = oldest if query.since is None else max(query.since, oldest)
    until = newest if query.until is None else min(query.until, newest)
    which = AuditFilter(since=since, until=until, job=query.job, who=query.who, action=query.action)
    return context.store.list_audit(which, limit=query.limit, cursor=query.cursor)
