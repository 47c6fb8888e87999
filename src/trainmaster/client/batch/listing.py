"""Lists jobs as ListServiceJobs does: by status, or by one filter; the newest first, in pages."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from trainmaster.client.api.errors import Refused
from trainmaster.client.batch.answers import STATES, milliseconds, name_of, status_of
from trainmaster.client.batch.names import batch_name_of, stem_in, stem_of
from trainmaster.client.kinds import is_training_job
from trainmaster.client.lists.training_jobs import MAX_ENDED
from trainmaster.client.views.states import ENDED

if TYPE_CHECKING:
    from trainmaster.client.batch.jobs import PolledJobs
    from trainmaster.client.views.types import JobView

TOKEN_PREFIX = "tm."  # noqa: S105 -- of a token of pages
_DEFAULT_STATUS = "RUNNING"
_MAX_RESULTS = 100
_SHARES = frozenset({"SHARE_IDENTIFIER", "QUOTA_SHARE_NAME"})
_TIMES: dict[str, Callable[[int, int], bool]] = {
    "BEFORE_CREATED_AT": lambda created, bound: created < bound,
    "AFTER_CREATED_AT": lambda created, bound: created > bound,
}
_Matches = Callable[["JobView"], bool]


@dataclass(frozen=True, slots=True)
class Selection:
    """The jobs that a request selects: those of one status, or of any if it is None, that match.

    Attributes:
        status: the status.
        matches: whether a job of that status is selected.
        prefix: beginning of their names, if it is known.
    """

    status: str | None
    matches: _Matches
    prefix: str | None = None


class ServiceJobs:
    """Lists the queue's jobs; methods raise ApiError."""

    def __init__(self, jobs: PolledJobs) -> None:
        self._jobs = jobs

    def page(self, request: Mapping[str, Any], share: str | None) -> tuple[list[JobView], str | None]:
        """Return the jobs of a page, and the token of the next one; of a queue that stands for a share, its jobs."""
        selection = self._selection(request)
        found = [job for job in self._read(selection) if share in (None, job["share"]) and selection.matches(job)]
        found.sort(key=_age, reverse=True)
        after = _decode(request.get("nextToken"))
        rest = [job for job in found if after is None or _age(job) < after]
        size = min(request.get("maxResults") or _MAX_RESULTS, _MAX_RESULTS)
        page = rest[:size]
        return page, _encode(page[-1]) if len(rest) > size else None

    def name_of(self, job: JobView) -> str:
        """Return the job's name at Batch; only a name that was altered takes a request, once."""
        name = batch_name_of(job["jobName"])
        if name is not None:
            return name
        detail = self._jobs.find(job["jobName"])
        return name_of(detail) if detail is not None else job["jobName"]

    def _selection(self, request: Mapping[str, Any]) -> Selection:
        """Return what a request selects. Raises Refused."""
        filters = request.get("filters") or [{"name": None}]
        if len(filters) > 1:
            raise Refused("Only one filter can be used at a time.", field="filters")
        kind, values = filters[0].get("name", ""), filters[0].get("values") or [""]
        if kind is None or kind in _SHARES:
            status = request.get("jobStatus") or _DEFAULT_STATUS
            if status not in STATES:
                raise Refused(f"There is no status {status}.", field="jobStatus", hint=f"One of {', '.join(STATES)}.")
            return Selection(status, lambda job: kind is None or job["share"] in values)
        if kind in _TIMES:
            bound = _bound(kind, values[0])
            return Selection(None, lambda job: _TIMES[kind](milliseconds(job["entryTime"]), bound))
        if kind != "JOB_NAME":
            hint = f"The filters are JOB_NAME, {', '.join(sorted(_SHARES))}, {', '.join(sorted(_TIMES))}."
            raise Refused(f"There is no filter {kind}.", field="filters", hint=hint)
        stem = stem_of(values[0].removesuffix("*")) if values[0] != "*" else None
        return Selection(None, lambda job: self._has_name(job, values[0]), stem)

    def _has_name(self, job: JobView, wanted: str) -> bool:
        """Return whether the job has this name; case does not count, and an asterisk ends a prefix (Batch API)."""
        prefix, is_prefix = wanted.removesuffix("*").lower(), wanted.endswith("*")
        if batch_name_of(job["jobName"]) is None and not _may_have(stem_in(job["jobName"]), prefix):
            return False
        name = self.name_of(job).lower()
        return name.startswith(prefix) if is_prefix else name == prefix

    def _read(self, selection: Selection) -> Iterator[JobView]:
        states = frozenset(STATES[selection.status]) if selection.status else None
        active = self._jobs.active() if states is None or states - ENDED else []
        yield from (job for job in active if selection.status in (None, status_of(job)))
        ended = ENDED if states is None else states & ENDED
        if not ended:
            return
        found = list(self._ended(ended, selection.prefix))
        if not found and selection.prefix:  # the API's prefixes are exact, Batch's are not
            found = list(self._ended(ended, None))
        yield from found

    def _ended(self, states: frozenset[Any], prefix: str | None) -> Iterator[JobView]:
        jobs = self._jobs.api.all_jobs(sorted(states), prefix=prefix)
        return (job for job in islice(jobs, MAX_ENDED) if is_training_job(job))


def _may_have(stem: str, prefix: str) -> bool:
    """Return whether a job with this stem may have a name that begins so: it shares the beginning of its stem."""
    wanted = stem_of(prefix).lower() if prefix else ""
    return stem.lower().startswith(wanted)


def _bound(kind: str, value: str) -> int:
    if not value.isdigit():
        raise Refused(f"{kind} takes a time in epoch milliseconds.", field="filters")
    return int(value)


def _age(job: JobView) -> tuple[int, str]:
    return milliseconds(job["entryTime"]), job["jobName"]


def _encode(last: JobView) -> str:
    return TOKEN_PREFIX + base64.urlsafe_b64encode(json.dumps(_age(last)).encode()).decode()


def _decode(token: str | None) -> tuple[int, str] | None:
    """Return the place of a token. Raises Refused."""
    if token is None:
        return None
    try:
        created, name = json.loads(base64.urlsafe_b64decode(token.removeprefix(TOKEN_PREFIX)))
        return int(created), str(name)
    except (ValueError, TypeError) as error:
        raise Refused("The nextToken is not one of this operation.", field="nextToken") from error
