"""Views of exports and imports."""

from __future__ import annotations

from datetime import datetime

from trainmaster.domain.jobs.job import Job
from trainmaster.domain.policy.document import settings_document
from trainmaster.domain.release import EXPORT_VERSION, VERSION
from trainmaster.domain.requests.elastic.size_change import SizeBounds
from trainmaster.handlers.models import export as models
from trainmaster.handlers.views.pools import pool_asked, pool_setting
from trainmaster.ports.store import Request
from trainmaster.service.restoring.export import (
    ExportedJob,
    ExportPage,
    Import,
    ImportReport,
    exported_pools,
)


def export_view(page: ExportPage, queue: str, now: datetime) -> models.ExportPage:
    """Return a page of an export."""
    return models.ExportPage(
        trainmaster_export=EXPORT_VERSION,
        release=VERSION,
        queue=queue,
        at=now,
        settings=settings_document(page.settings.policy),
        pools=[pool_setting(pool) for pool in exported_pools(page.settings)],
        jobs=[_job(job, request) for job, request in page.jobs],
        skipped=list(page.skipped),
        next_cursor=page.cursor,
    )


def _job(job: Job, request: Request) -> models.ExportedJob:
    return models.ExportedJob(
        request=dict(request),
        priority=job.priority,
        entry_time=job.entry_time,
        submitted_by=job.submitted_by,
        held_by=job.held_by,
        after=list(job.after),
        min_instances=None if job.elastic is None else job.elastic.min_instances,
        max_instances=None if job.elastic is None else job.elastic.max_instances,
    )


def import_asked(request: models.ImportRequest) -> Import:
    """Return the import that a request describes."""
    return Import(
        jobs=[_exported(each) for each in request.jobs],
        settings=None if request.settings is None else request.settings.document,
        pools=None if request.pools is None else [pool_asked(each) for each in request.pools],
        parents=frozenset(request.parents),
    )


def _exported(each: models.JobToImport) -> ExportedJob:
    return ExportedJob(
        each.request,
        each.priority,
        each.entry_time,
        each.submitted_by,
        each.held_by,
        tuple(each.after),
        SizeBounds(each.min_instances, each.max_instances),
    )


def import_view(report: ImportReport) -> models.ImportReport:
    """Return the result of an import as the API shows it."""
    return models.ImportReport(
        jobs=[
            models.ImportedJob(job_name=each.name, outcome=each.outcome, message=each.message) for each in report.jobs
        ],
        settings_change=report.settings_change,
        pools_change=report.pools_change,
        done=report.done,
    )
