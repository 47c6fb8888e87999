"""ListTrainingJobs: filter, order, pages.

`StatusEquals` applies after the page is cut, so a page may be short or empty and still have a next one
(ListTrainingJobs, SageMaker API reference).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from trainmaster.local.simulator.service.job import TrainingJob
from trainmaster.local.simulator.wire.errors import invalid
from trainmaster.local.simulator.wire.views import summary

DEFAULT_RESULTS = 10
SortKey = tuple[str | float, float, str]


def list_jobs(jobs: Iterable[TrainingJob], request: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """Return the response. Raises `ApiError` for an invalid token."""
    sort_by = request.get("SortBy", "CreationTime")
    down = _descending(sort_by, request.get("SortOrder"))
    after = _decode_token(request["NextToken"]) if request.get("NextToken") else None
    keyed = [(_sort_key(job, sort_by), job) for job in jobs if _matches(job, request)]
    keyed.sort(key=lambda each: each[0], reverse=down)
    if after is not None:
        keyed = [each for each in keyed if (each[0] < after if down else each[0] > after)]
    size = request.get("MaxResults", DEFAULT_RESULTS)
    return _page(keyed[: size + 1], size, request.get("StatusEquals"), now)


def _page(keyed: list[tuple[SortKey, TrainingJob]], size: int, status: str | None, now: datetime) -> dict[str, Any]:
    page = keyed[:size]
    shown = [summary(job, now) for _, job in page if status in (None, job.status)]
    answer: dict[str, Any] = {"TrainingJobSummaries": shown}
    if len(keyed) > size:
        answer["NextToken"] = _encode_token(page[-1][0])
    return answer


def _descending(sort_by: str, order: str | None) -> bool:
    """Return True for descending order: the default for creation times on the operation's page, unlike in the model."""
    return order == "Descending" if order else sort_by == "CreationTime"


def _sort_key(job: TrainingJob, sort_by: str) -> SortKey:
    created = job.created.timestamp()
    keys: dict[str, str | float] = {"Name": job.name, "Status": job.status, "CreationTime": created}
    return keys[sort_by], created, job.name


def _matches(job: TrainingJob, request: Mapping[str, Any]) -> bool:
    return (
        _between(job.created, request.get("CreationTimeAfter"), request.get("CreationTimeBefore"))
        and _between(job.last_modified, request.get("LastModifiedTimeAfter"), request.get("LastModifiedTimeBefore"))
        and request.get("NameContains", "") in job.name
        and request.get("WarmPoolStatusEquals") in (None, job.warm_pool)
        and request.get("TrainingPlanArnEquals") in (None, _plan(job))
    )


def _plan(job: TrainingJob) -> str | None:
    plan: str | None = job.request.get("ResourceConfig", {}).get("TrainingPlanArn")
    return plan


def _between(time: datetime, after: datetime | None, before: datetime | None) -> bool:
    return (after is None or time > after) and (before is None or time < before)


def _encode_token(place: SortKey) -> str:
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode()


def _decode_token(token: str) -> SortKey:
    try:
        first, created, name = json.loads(base64.urlsafe_b64decode(token))
    except ValueError as error:
        raise invalid("Invalid NextToken") from error
    return first, created, name
