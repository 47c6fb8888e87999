"""Lists training jobs as one entry per job: those of the queue beside those that only SageMaker has.

An entry of SageMaker's stays as it is, unless it is an attempt of a job that the queue describes itself: one that
waits, starts, is being preempted, had several attempts, or ended without any.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trainmaster.client.kinds import is_training_job
from trainmaster.client.lists.merging import Entry, Order, Page, Place, merge
from trainmaster.client.sdk.describe import arn_of, last_change, status_of, times_of
from trainmaster.client.sdk.response_codec import BotoResponse, make_response, request_of, rewrite_request
from trainmaster.client.views.states import ENDED, WAITING
from trainmaster.domain.jobs.names import STAMP, attempt_name, member_name

if TYPE_CHECKING:
    from botocore.awsrequest import AWSResponse
    from botocore.model import OperationModel

    from trainmaster.client.api.client import ApiClient
    from trainmaster.client.views.types import JobDetailView, JobView

MAX_ENDED = 1000
"""Maximum of ended jobs that one listing asks the queue for, newest first; of older ones, SageMaker's entries stay."""
DEFAULT_SIZE = 10
_PAGE_SIZE = 100
_SNAPSHOT_SECONDS = 60.0
_UNSETTLED = WAITING | {"starting", "preempting"}
_ACTIVE = ("starting", "running", "preempting", "resizing", *sorted(WAITING))
_IN_PROGRESS = ("InProgress", "Stopping")


@dataclass
class QueueJobs:
    """The queue's training jobs, kept for a minute while the pages of one listing are read."""

    api: ApiClient
    clock: Callable[[], float] = time.monotonic
    _last: tuple[float, object, list[JobView]] | None = None
    _arns: dict[str, str] = field(default_factory=dict)

    def read(self, status: str | None, since: float | None, *, again: bool) -> list[JobView]:
        """Return active and waiting jobs, and ended ones if the status allows. Raises ApiError.

        `since` leaves out jobs that ended before; `again` takes the jobs that are kept.
        """
        key = (status in _IN_PROGRESS, since)
        if again and self._last and self._last[1] == key and self.clock() - self._last[0] < _SNAPSHOT_SECONDS:
            return self._last[2]
        jobs = list(self._pages(_ACTIVE))
        if status not in _IN_PROGRESS:
            jobs += self._ended(since)
        self._last = (self.clock(), key, [job for job in jobs if is_training_job(job)])
        return self._last[2]

    def arn_of(self, job: JobView, region: str) -> str:
        """Return a job's ARN; the account and the partition are those of any job's role. Raises ApiError."""
        if region not in self._arns:
            detail = self.api.job(job["jobName"])
            self._arns[region] = arn_of(detail["jobDetails"], region).removesuffix(detail["jobName"])
        return self._arns[region] + job["jobName"]

    def _ended(self, since: float | None) -> Iterator[JobView]:
        for count, job in enumerate(self._pages(sorted(ENDED))):
            if count == MAX_ENDED or (since is not None and last_change(job) <= since):
                return  # they come in the order of their ends
            yield job

    def _pages(self, states: Any) -> Iterator[JobView]:
        cursor: str | None = None
        while True:
            page = self.api.jobs(states, limit=_PAGE_SIZE, cursor=cursor)
            yield from page["jobs"]
            cursor = page["nextCursor"]
            if cursor is None:
                return


def describes_itself(job: JobView) -> bool:
    """Return whether the queue's view of a job replaces SageMaker's entries of its attempts."""
    return job["jobState"] in _UNSETTLED or job["trainingJobName"] != job["jobName"]


@dataclass(frozen=True, slots=True)
class Owners:
    """Finds the job of the queue that a training job of SageMaker's is an attempt of."""

    jobs: Mapping[str, JobView]

    def owner_of(self, name: str) -> JobView | None:
        """Return the job of an attempt, or of a member of one; None for other training jobs."""
        stem, stamp, rest = name.partition(STAMP)
        if not stamp or stem in self.jobs:
            return self.jobs.get(stem)
        number, _, member = rest.partition("-m")
        if not (number.isdigit() and (member.isdigit() or "-m" not in rest)):
            return None
        return next((job for job in self.jobs.values() if _has_name(job["jobName"], name, number, member)), None)

    def shown(self, name: str) -> bool:
        """Return whether SageMaker's entry of this name stays."""
        job = self.owner_of(name)
        return job is None or (name == job["jobName"] and not describes_itself(job))


def _has_name(job_name: str, name: str, number: str, member: str) -> bool:
    """Return whether a job has an attempt or member of this name; names that are cut tell it by a hash."""
    if member:
        return member_name(job_name, int(number), int(member)) == name
    return attempt_name(job_name, int(number)) == name


def summary_of(job: JobView, arn: str) -> Entry:
    """Return an entry of ListTrainingJobs, with times in epoch seconds."""
    status, secondary = status_of(job)
    times = times_of(job)
    times.pop("TrainingStartTime", None)
    return {
        "TrainingJobName": job["jobName"],
        "TrainingJobArn": arn,
        "TrainingJobStatus": status,
        "SecondaryStatus": secondary,
        "LastModifiedTime": last_change(job),
        **times,
    }


def matches(entry: Entry, request: Mapping[str, Any]) -> bool:
    """Return whether an entry matches the filters of a ListTrainingJobs request that an entry decides."""
    created, modified = entry["CreationTime"], entry["LastModifiedTime"]
    return (
        request.get("NameContains", "") in entry["TrainingJobName"]
        and request.get("StatusEquals") in (None, entry["TrainingJobStatus"])
        and _between(created, request.get("CreationTimeAfter"), request.get("CreationTimeBefore"))
        and _between(modified, request.get("LastModifiedTimeAfter"), request.get("LastModifiedTimeBefore"))
    )


def plan_arn_of(job: JobDetailView) -> str | None:
    """Return the training plan that a job's request names."""
    plan: str | None = job["jobDetails"].get("ResourceConfig", {}).get("TrainingPlanArn")
    return plan


def order_of(request: Mapping[str, Any]) -> Order:
    """Return the order of a listing; without one, the newest job is the first (the operation's page)."""
    sort_by = request.get("SortBy", "CreationTime")
    member = {"Name": "TrainingJobName", "Status": "TrainingJobStatus"}.get(sort_by, "CreationTime")
    given = request.get("SortOrder")
    descending = given == "Descending" if given else sort_by == "CreationTime"
    return Order(lambda entry: entry.get(member), lambda entry: str(entry["TrainingJobName"]), descending)


def since_of(request: Mapping[str, Any]) -> float | None:
    """Return the time before which no job of a listing can have ended."""
    times = [request.get(member) for member in ("CreationTimeAfter", "LastModifiedTimeAfter")]
    return max((float(time) for time in times if time is not None), default=None)


class Listing:
    """Answers ListTrainingJobs: SageMaker's page is changed after the call, and the queue's rest needs no call."""

    def __init__(self, jobs: QueueJobs) -> None:
        self._jobs = jobs

    def before(
        self, model: OperationModel, params: dict[str, Any], region: str
    ) -> tuple[BotoResponse | None, Callable[[AWSResponse, dict[str, Any]], BotoResponse | None] | None]:
        """Return the response, or what changes SageMaker's; neither if it stays as it is. Raises ApiError."""
        request = request_of(params)
        place = Place.decode(request.get("NextToken"))
        if place is None:
            return None, None
        jobs = self._jobs.read(request.get("StatusEquals"), since_of(request), again=place != Place())
        order = order_of(request)
        own = order.sort(self._parsed(model, self._own(jobs, request, region)), place.own)
        if place.ended:
            return self._page(model, ([], None), own, place, request), None
        rewrite_request(params, NextToken=place.token)
        owners = Owners({job["jobName"]: job for job in jobs})

        def merged(http: AWSResponse, parsed: dict[str, Any]) -> BotoResponse | None:
            if http.status_code >= 300:
                return None
            page = [entry for each in parsed["TrainingJobSummaries"] if (entry := _shown(each, owners, request))]
            return self._page(model, (page, parsed.get("NextToken")), own, place, request)

        return None, merged

    @staticmethod
    def _page(
        model: OperationModel, page: Page, own: list[Entry], place: Place, request: Mapping[str, Any]
    ) -> BotoResponse:
        size = request.get("MaxResults", DEFAULT_SIZE)
        entries, following_place = merge(page, own, place, order_of(request), size)
        response, parsed = make_response(model, {"TrainingJobSummaries": []})
        parsed["TrainingJobSummaries"] = entries
        if following_place is not None:
            parsed["NextToken"] = following_place.encode()
        return response, parsed

    def _own(self, jobs: list[JobView], request: Mapping[str, Any], region: str) -> Iterator[Entry]:
        """Yield the entries of the queue's own that match; none of them has a warm pool."""
        if request.get("WarmPoolStatusEquals"):
            return
        plan = request.get("TrainingPlanArnEquals")
        for job in filter(describes_itself, jobs):
            entry = summary_of(job, "")
            if not matches(entry, request):
                continue
            if plan is not None and plan_arn_of(self._jobs.api.job(job["jobName"])) != plan:
                continue
            entry["TrainingJobArn"] = self._jobs.arn_of(job, region)
            yield entry | ({"TrainingPlanArn": plan} if plan else {})

    @staticmethod
    def _parsed(model: OperationModel, entries: Iterator[Entry]) -> list[Entry]:
        """Return the entries as botocore parses them, with their times as such."""
        parsed: list[Entry] = make_response(model, {"TrainingJobSummaries": list(entries)})[1]["TrainingJobSummaries"]
        return parsed


def _shown(entry: Entry, owners: Owners, request: Mapping[str, Any]) -> Entry | None:
    """Return SageMaker's entry as it is shown; None for an attempt of a job that the queue describes itself.

    Only SageMaker knows warm pools: if they are asked for, a newest attempt's entry has the job's name.
    """
    name = entry["TrainingJobName"]
    if not request.get("WarmPoolStatusEquals"):
        return entry if owners.shown(name) else None
    job = owners.owner_of(name)
    if job is None:
        return entry
    return entry | {"TrainingJobName": job["jobName"]} if name == job["trainingJobName"] else None


def _between(moment: float, after: float | None, before: float | None) -> bool:
    return (after is None or moment > after) and (before is None or moment < before)
