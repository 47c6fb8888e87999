"""API models of exports and imports: settings, pools, and waiting jobs with their whole requests."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import AwareDatetime, Field

from trainmaster.domain.jobs.names import MAX_NAME
from trainmaster.domain.jobs.priorities import MAX_PRIORITY
from trainmaster.domain.policy.declaration import MAX_COUNT
from trainmaster.domain.release import EXPORT_VERSION
from trainmaster.handlers.models.base import RequestModel, ResponseModel
from trainmaster.handlers.models.pools import MAX_POOLS, PoolSetting
from trainmaster.handlers.models.settings import Settings
from trainmaster.service.restoring.export import ImportOutcome

MAX_IMPORTED = 100
_REQUEST = "The CreateTrainingJob request as submitted."
_HELD_BY = "Person who holds it; null if none does."
_BOUND = "Bound of its size if it is elastic; null for that of the request."
_AFTER = "Jobs that must end first and have not ended yet."
Name = Annotated[str, Field(max_length=MAX_NAME)]


class ExportedJob(ResponseModel):
    """Waiting or held job."""

    request: Annotated[dict[str, Any], Field(description=_REQUEST)]
    priority: int
    entry_time: datetime
    submitted_by: str | None
    held_by: Annotated[str | None, Field(description=_HELD_BY)]
    after: Annotated[list[str], Field(description=_AFTER)]
    min_instances: Annotated[int | None, Field(description=_BOUND)]
    max_instances: Annotated[int | None, Field(description=_BOUND)]


class ExportPage(ResponseModel):
    """Page of an export."""

    trainmaster_export: Annotated[int, Field(description="Version of this document.")]
    release: Annotated[str, Field(description="Version of the service.")]
    queue: str
    at: datetime
    settings: Annotated[dict[str, Any], Field(description="As `PUT /settings` takes them.")]
    pools: Annotated[list[dict[str, Any]], Field(description="Pools that people have set, as `PUT /pools` takes them.")]
    jobs: Annotated[list[ExportedJob], Field(description="Waiting jobs in queue order, then held ones.")]
    skipped: Annotated[list[str], Field(description="Jobs not exported: of other kinds, or with damaged requests.")]
    next_cursor: Annotated[str | None, Field(description="`cursor` of the next page; null on the last one.")]


class JobToImport(RequestModel):
    """Job of an export."""

    request: Annotated[dict[str, Any], Field(description=_REQUEST)]
    priority: Annotated[int, Field(ge=-MAX_PRIORITY, le=MAX_PRIORITY)]
    entry_time: Annotated[AwareDatetime, Field(strict=False)]
    submitted_by: Annotated[str | None, Field(max_length=2048)] = None
    held_by: Annotated[str | None, Field(max_length=2048, description=_HELD_BY)] = None
    after: Annotated[list[Name], Field(max_length=100, description=_AFTER)] = []  # noqa: RUF012 -- pydantic copies it
    min_instances: Annotated[int | None, Field(ge=1, le=MAX_COUNT, description=_BOUND)] = None
    max_instances: Annotated[int | None, Field(ge=1, le=MAX_COUNT, description=_BOUND)] = None


class ImportRequest(RequestModel):
    """Part of an export to import; settings and pools stay as they are if omitted."""

    trainmaster_export: Annotated[int, Field(ge=1, le=EXPORT_VERSION, description="Version of the export.")]
    settings: Settings | None = None
    pools: Annotated[list[PoolSetting] | None, Field(max_length=MAX_POOLS)] = None
    jobs: Annotated[list[JobToImport], Field(max_length=MAX_IMPORTED)] = []  # noqa: RUF012
    parents: Annotated[
        list[Name],
        Field(max_length=MAX_IMPORTED * 100, description="Jobs in other parts of the export that these run after."),
    ] = []  # noqa: RUF012
    dry_run: Annotated[bool, Field(description="Whether only to check it.")] = False


class ImportedJob(ResponseModel):
    """Outcome of one job."""

    job_name: str
    outcome: Annotated[
        ImportOutcome,
        Field(
            description=(
                "new: it is stored, or would be. unchanged: the queue has it already. conflict: the queue has another "
                "job of its name. refused: it does not pass the checks of a submission."
            )
        ),
    ]
    message: Annotated[str, Field(description="Why it cannot be imported; empty if it can.")]


class ImportReport(ResponseModel):
    """Result of an import."""

    jobs: list[ImportedJob]
    settings_change: Annotated[bool, Field(description="Whether the settings differ from those in force before.")]
    pools_change: Annotated[bool, Field(description="Whether the pools do.")]
    done: Annotated[bool, Field(description="False for a dry run, and if a job could not be imported.")]
