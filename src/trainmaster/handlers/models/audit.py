"""API models of audit entries."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from trainmaster.domain.access.audit import AuditAction
from trainmaster.handlers.models.base import ResponseModel


class AuditEntry(ResponseModel):
    """A recorded change or export: who made it, from where, and what it changed."""

    at: datetime
    action: AuditAction
    principal: Annotated[str | None, Field(description="Role or user, without the name of the session.")]
    arn: Annotated[str | None, Field(description="The caller's ARN.")]
    source_ip: str | None
    user_agent: str | None
    request_id: Annotated[str | None, Field(description="API Gateway's id of the request.")]
    job: Annotated[str | None, Field(description="The changed job; null for an entry that concerns no single job.")]
    before: Annotated[dict[str, Any], Field(description="The changed values before, by path.")]
    after: Annotated[dict[str, Any], Field(description="The changed values after, by path.")]


class AuditPage(ResponseModel):
    """One page of audit entries, newest first."""

    entries: list[AuditEntry]
    next_cursor: Annotated[str | None, Field(description="`cursor` of the next page; null on the last one.")]
