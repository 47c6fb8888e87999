"""Views of audit entries."""

from __future__ import annotations

from trainmaster.domain.access.audit import AuditEntry
from trainmaster.domain.access.audit_listing import AuditPage
from trainmaster.handlers.models import audit as audit_models


def audit_page_view(page: AuditPage) -> audit_models.AuditPage:
    """Return the view of a page."""
    return audit_models.AuditPage(entries=[_entry_view(entry) for entry in page.entries], next_cursor=page.cursor)


def _entry_view(entry: AuditEntry) -> audit_models.AuditEntry:
    return audit_models.AuditEntry(
        at=entry.at,
        action=entry.action,
        principal=entry.principal or None,
        arn=entry.arn or None,
        source_ip=entry.source_ip or None,
        user_agent=entry.user_agent or None,
        request_id=entry.request_id or None,
        job=entry.job or None,
        before=dict(entry.before),
        after=dict(entry.after),
    )
