"""Reads from the API what a replay of the last days needs: settings, pools and jobs, as the caller may see them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from trainmaster.client.api.errors import Forbidden, NotFound, Refused
from trainmaster.client.kinds import TRAINING
from trainmaster.domain.compat import parse_iso

if TYPE_CHECKING:
    from trainmaster.client.api.client import ApiClient

DAYS: Final = 7.0
MAX_DAYS: Final = 28.0
MAX_JOBS: Final = 2_000
"""Jobs of one replay, at most: each is read with a request of its own."""
_PAGE: Final = 100
_VIEW: Final = (
    *("jobName", "jobState", "priority", "share", "entryTime", "preemptible", "expectedEnd", "endedAt", "submittedBy"),
    *("failureReason", "attempts", "earlierAttempts", "history"),
)
_DETAILS: Final = (
    *("AlgorithmSpecification", "ResourceConfig", "StoppingCondition", "CheckpointConfig", "EnableManagedSpotTraining"),
    *("RetryStrategy", "Tags"),
)
"""Members of requests that the queue decides by; environments, hyperparameters and data are left where they are."""
Progress = Callable[[int, int], None]
"""Called with the number of jobs that have been read, and that of all."""


@dataclass(slots=True)
class Period:
    """Reads the last days of a queue.

    Args:
        api: the client; its credentials decide which jobs it may see.
        now: the end of the period, UTC.
        days: its length.
        max_jobs: jobs to read, at most; of a longer list the oldest ended jobs are left out.
    """

    api: ApiClient
    now: datetime
    days: float = DAYS
    max_jobs: int = MAX_JOBS
    _left_out: dict[str, int] = field(default_factory=dict)
    _since: datetime = field(init=False)

    def __post_init__(self) -> None:
        if not 0 < self.days <= MAX_DAYS:
            raise Refused(
                f"A replay covers more than 0 and at most {MAX_DAYS:g} days.", type="InvalidRequest", field="days"
            )
        self._since = self.now - timedelta(days=self.days)

    def document(self, draft: Mapping[str, Any], on_progress: Progress = lambda _done, _all: None) -> dict[str, Any]:
        """Return the document that the replay reads. Raises ApiError, Refused, and what `on_progress` raises."""
        settings = self._get("/settings")
        pools = self._get("/pools")["pools"]
        names = list(self._names())
        jobs = []
        for number, name in enumerate(names):
            on_progress(number, len(names))
            jobs.append(self._job(name))
        return {
            "at": self.now.isoformat(),
            "since": self._since.isoformat(),
            "settings": settings,
            "draft": dict(draft),
            "pools": pools,
            "jobs": [job for job in jobs if job is not None],
            "leftOut": dict(self._left_out),
        }

    def _names(self) -> Iterator[str]:
        """Yield the names of the jobs to replay: those that have not ended, then the ended ones, newest first."""
        count = 0
        for job in self._listed():
            if job["endedAt"] is not None and parse_iso(job["endedAt"]) < self._since:
                return
            if job["kind"] != TRAINING:
                self._leave_out("otherKinds")
            elif (job["reason"] or {}).get("type") == "Held":
                self._leave_out("held")
            elif count == self.max_jobs:
                self._end_early(job)
                return
            else:
                count += 1
                yield job["jobName"]

    def _end_early(self, job: Mapping[str, Any]) -> None:
        """Shorten the period to the ended jobs that are read, so that it has all of its jobs. Raises Refused."""
        if job["endedAt"] is None:
            message = (
                f"More than {self.max_jobs:,} jobs have not ended, and a replay has at most {self.max_jobs:,} jobs."
            )
            raise Refused(message, type="TooManyJobs")
        self._leave_out("beyondLimit")
        self._since = max(parse_iso(job["endedAt"]), self._since)

    def _listed(self) -> Iterator[Mapping[str, Any]]:
        cursor: str | None = None
        while True:
            page = self._get("/jobs", limit=_PAGE, cursor=cursor)
            yield from page["jobs"]
            cursor = page["nextCursor"]
            if cursor is None:
                return

    def _job(self, name: str) -> dict[str, Any] | None:
        """Return the job as far as a replay needs it; None if the caller may not see it, or it is gone."""
        try:
            found = self._get(f"/jobs/{quote(name, safe='')}")
        except (Forbidden, NotFound) as error:
            self._leave_out("notVisible" if isinstance(error, Forbidden) else "gone")
            return None
        details = {key: value for key, value in found["jobDetails"].items() if key in _DETAILS}
        return {key: found[key] for key in _VIEW} | {"jobDetails": details}

    def _leave_out(self, reason: str) -> None:
        self._left_out[reason] = self._left_out.get(reason, 0) + 1

    def _get(self, path: str, **query: object) -> Any:
        return self.api.call("GET", path, query=query)
