"""Reads the training jobs of an account as a trace: ListTrainingJobs, then DescribeTrainingJob.

A job counts its instances times their accelerators; jobs without accelerators are omitted. The share is the name of the
job's role, which in most accounts belongs to one team: DescribeTrainingJob returns no tags, and ListTags for each job
would double the time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from trainmaster.domain.capacity.instances import accelerators_of
from trainmaster.domain.jobs.names import STAMP
from trainmaster.local.replay.trace.trace import DEFAULT_SHARE, BadTrace, TraceJob

if TYPE_CHECKING:
    from mypy_boto3_sagemaker import SageMakerClient

PAGE = 100
"""Maximum of `MaxResults` (ListTrainingJobs, API reference)."""
PAUSE_SECONDS = 0.5
"""Between two list calls: an account may make two per second, and other clients need them too."""
MAX_TRIES = 8
MAX_PAUSE_SECONDS = 30.0
ENDED = frozenset({"Completed", "Failed", "Stopped"})
_THROTTLED = re.compile(r"Throttl|TooManyRequests|RequestLimitExceeded|SlowDown")
_ACCELERATED = re.compile(r"ml\.(p|g|trn|inf)\d")

Description = Mapping[str, Any]
Progress = Callable[[str, int, int | None], None]
"""Called with the step, the number done, and the total or None if it is unknown."""


@dataclass(slots=True)
class Account:
    """The training jobs of one account and Region.

    Args:
        client: a boto3 SageMaker client; needs `sagemaker:ListTrainingJobs` and `sagemaker:DescribeTrainingJob`.
        sleep: waits that many seconds.
        on_progress: called with the progress.
    """

    client: SageMakerClient
    sleep: Callable[[float], None]
    on_progress: Progress = field(default=lambda _what, _done, _total: None)

    def history(self, since: datetime) -> list[TraceJob]:
        """Return the ended jobs that were created after that time and have run, in order of creation.

        Raises `BadTrace` if there is none, and botocore's errors.
        """
        names = list(self._names(since))
        found: list[Description] = []
        for number, name in enumerate(names):
            self.on_progress("reading jobs", number, len(names))
            found.append(self._call_with_retries(self.client.describe_training_job, TrainingJobName=name))
        jobs = trace_of(found)
        if not jobs:
            raise BadTrace(f"no training job on accelerators has run and ended since {since:%Y-%m-%d}")
        return jobs

    def _names(self, since: datetime) -> Iterator[str]:
        """Yield the names of ended jobs, page by page, oldest first."""
        request: dict[str, Any] = {
            "CreationTimeAfter": since,
            "MaxResults": PAGE,
            "SortBy": "CreationTime",
            "SortOrder": "Ascending",
        }
        count = 0
        while True:
            page: Description = self._call_with_retries(self.client.list_training_jobs, **request)
            names = [each["TrainingJobName"] for each in page["TrainingJobSummaries"] if _ended(each)]
            count += len(names)
            self.on_progress("listing jobs", count, None)
            yield from names
            if not page.get("NextToken"):
                return
            request["NextToken"] = page["NextToken"]
            self.sleep(PAUSE_SECONDS)

    def _call_with_retries(self, call: Callable[..., Any], **members: Any) -> Any:
        """Call, and retry with exponential backoff while AWS throttles."""
        for attempt in range(MAX_TRIES):
            try:
                return call(**members)
            except ClientError as error:
                if attempt + 1 == MAX_TRIES or not _THROTTLED.search(error.response["Error"]["Code"]):
                    raise
                self.sleep(min(2.0**attempt, MAX_PAUSE_SECONDS))
        raise AssertionError("the last attempt returns or raises")


def trace_of(descriptions: Iterable[Description]) -> list[TraceJob]:
    """Return the jobs of DescribeTrainingJob responses in order of creation; attempts of a queue job are one job."""
    rows = [row for row in map(_row, descriptions) if row is not None]
    merged: dict[str, _Row] = {}
    for row in sorted(rows, key=lambda row: (row.created, row.name)):
        name = row.name.partition(STAMP)[0]
        earlier = merged.get(name)
        merged[name] = row if earlier is None else earlier.merge(row)
    first = min((row.created for row in rows), default=None)
    return [row.job(name, first) for name, row in merged.items() if first is not None]


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    created: datetime
    seconds: float
    gpus: int
    share: str
    max_runtime: float | None

    def merge(self, later: _Row) -> _Row:
        """Return the job with the time of a later attempt added."""
        seconds, gpus = self.seconds + later.seconds, max(self.gpus, later.gpus)
        return _Row(self.name, self.created, seconds, gpus, self.share, self.max_runtime)

    def job(self, name: str, first: datetime) -> TraceJob:
        submit = (self.created - first).total_seconds()
        return TraceJob(name, submit, self.seconds, self.gpus, self.share, self.max_runtime)


def _row(description: Description) -> _Row | None:
    """Convert a response to a job; None for a job that never ran, has not ended, or has no accelerators."""
    gpus = _gpus(description.get("ResourceConfig") or {})
    if not (
        _ended(description) and gpus and description.get("TrainingStartTime") and description.get("TrainingEndTime")
    ):
        return None
    span = description["TrainingEndTime"] - description["TrainingStartTime"]
    return _Row(
        name=description["TrainingJobName"],
        created=description["CreationTime"],
        # Not `BillableTimeInSeconds`, from which spot training subtracts the discount.
        seconds=float(description.get("TrainingTimeInSeconds") or span.total_seconds()),
        gpus=gpus,
        share=str(description.get("RoleArn") or "").rpartition("/")[2] or DEFAULT_SHARE,
        max_runtime=(description.get("StoppingCondition") or {}).get("MaxRuntimeInSeconds"),
    )


def _ended(description: Description) -> bool:
    return description["TrainingJobStatus"] in ENDED


def _gpus(config: Description) -> int:
    """Count the accelerators of all instances; with preferences, those of the selected type."""
    if chosen := config.get("SelectedInstanceType"):
        return _of(chosen, config.get("SelectedInstanceCount") or config.get("InstanceCount") or 1)
    groups = config.get("InstanceGroups") or [config]
    return sum(_of(group.get("InstanceType") or "", group.get("InstanceCount") or 0) for group in groups)


def _of(instance_type: str, count: int) -> int:
    return accelerators_of(instance_type) * count if _ACCELERATED.match(instance_type) else 0
