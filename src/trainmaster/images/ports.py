"""Ports of image jobs as Protocols in the words of the domain; their errors are those of `domain.errors`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from trainmaster.images.domain.endpoint import Endpoint
from trainmaster.images.domain.refusal import Refusal
from trainmaster.images.domain.tiling import Region, Window
from trainmaster.images.domain.work import Claim, RegionRecord, Rest, Run

MAX_TRIES = 5
"""Conflicts after which an amendment is dropped: the next tick repeats it, and others have stored theirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The header of an image.

    Attributes:
        width, height: pixels.
        part: the requested part of the image: its bounds, or those of the region of interest within them.
    """

    width: int
    height: int
    part: Window


class Headers(Protocol):
    """Headers of images, read from the images' stores."""

    def read(self, url: str, *, role: str | None = None, interest: str | None = None, submitter: str = "") -> Header:
        """Return the header; only its bytes are read.

        Args:
            url: `s3://bucket/key` or `http(s)://...`.
            role: IAM role ARN under which it is read; None for the queue's own role.
            interest: region of interest as WKT, longitude and latitude. Without georeference it counts as none.
            submitter: the principal that submitted the job; "" if unknown.

        Raises `InvalidRequest` for an image that cannot be read, and for an interest outside of it; `Throttled`,
        `Unavailable` where trying again may help.
        """
        ...


class Endpoints(Protocol):
    """SageMaker endpoints, as AWS describes them."""

    def describe(self, key: str, *, role: str | None = None) -> Endpoint:
        """Return an endpoint with its tags; the caller sets `described_at` and `pressure`.

        Raises `InvalidRequest` if there is none of that name; `Throttled`, `Unavailable`, `NotPermitted`.
        """
        ...


class Concurrency(Protocol):
    """Concurrent requests per instance of SageMaker endpoints, from any caller, as AWS measures them."""

    def min_requests(
        self, asked: Collection[tuple[str, str]], now: datetime, *, role: str | None = None
    ) -> Mapping[tuple[str, str], float]:
        """Return the minimum of concurrent requests per instance of these variants over the last minutes.

        Variants without published metrics are left out.

        Args:
            asked: keys of endpoints (`Endpoint.key`) with names of variants.
            now: UTC.
            role: IAM role ARN under which it is read; None for the queue's own role.

        Raises `Throttled`, `Unavailable`, `NotPermitted`.
        """
        ...


class KnownEndpoints(Protocol):
    """Endpoints as stored by the queue; snapshots include those that their jobs need."""

    def known(self, keys: Collection[str]) -> Mapping[str, Endpoint]:
        """Return the stored endpoints by key, strongly consistent."""
        ...

    def remember(self, endpoint: Endpoint, before: Endpoint | None) -> bool:
        """Store an endpoint in place of `before` (None: no entry); return False if another is stored by now."""
        ...


def amend(
    known: KnownEndpoints, key: str, change: Callable[[Endpoint | None], Endpoint | None], before: Endpoint | None
) -> None:
    """Store the endpoint that `change` returns; after a conflict, apply `change` to the newer entry.

    Args:
        known: the store.
        key: the endpoint's.
        change: returns the new entry for a stored one; the same, or None, changes nothing.
        before: the entry as last read; None without one.

    Raises `Throttled`, `Unavailable`, `NotPermitted` if the store fails.
    """
    for _ in range(MAX_TRIES):
        after = change(before)
        if after is None or after == before or known.remember(after, before):
            return
        before = known.known([key]).get(key)


class Refusals(Protocol):
    """Refused requests from SQS, kept for a week, so that reading the job tells why."""

    def note(self, refusal: Refusal) -> None:
        """Store a refusal in place of an earlier one of that name; the name stays available.

        Raises `Throttled`, `Unavailable`, `NotPermitted`.
        """
        ...

    def of(self, job: str) -> Refusal | None:
        """Return the newest refusal of a request of that name; None without one. Raises as `note`."""
        ...


class Runs(Protocol):
    """The regions of image jobs, one record each, and the workers that have them.

    Every change is conditional on the record that was read: duplicate messages, workers wrongly taken for dead and late
    stops never make two workers finish one region.
    """

    def create(self, job: str, attempt: int, regions: Sequence[Region], *, concurrency: int | None = None) -> Run:
        """Write the missing records of the regions and the merging; from now on this attempt works on them.

        Completed regions stay completed; failed ones are pending again; the run is not stopped any more. Repeating the
        same attempt changes nothing, nor does an earlier one. For a job whose records were removed, nothing is written
        and the run has no records.

        Args:
            job: its name.
            attempt: its number.
            regions: all regions of the job.
            concurrency: maximum of them at work at once, from 1; None for all. Each end returns the next to dispatch.
        """
        ...

    def run(self, job: str) -> Run | None:
        """Return the run of a job, strongly consistent; None if it has no records."""
        ...

    def stop(self, job: str, attempt: int) -> None:
        """Ask this attempt's workers to stop; do nothing if another attempt has begun."""
        ...

    def widen(self, job: str, attempt: int, concurrency: int) -> None:
        """Raise the limit on the regions of this attempt at work; nothing happens if another attempt has begun."""
        ...

    def narrow(self, job: str, attempt: int, narrowed: int | None) -> None:
        """Limit the regions of this attempt at work, from 1, below its own limit; None restores that.

        Running regions continue. Nothing happens if another attempt has begun.
        """
        ...

    def begin(self, claim: Claim, now: datetime, *, dead_before: datetime) -> RegionRecord | None:
        """Take a region for a worker: a pending one, or one whose worker has been silent since `dead_before`.

        Return None if it is settled, paused (`leases.pause`) or another worker's, if another attempt has begun, or if
        the run is stopped. The merging can be taken only once all regions are done or failed.
        """
        ...

    def beat(self, claim: Claim, now: datetime, *, tiles_done: int) -> bool:
        """Record a heartbeat; return False if the worker has lost the region, or has to stop."""
        ...

    def finish(self, claim: Claim, now: datetime, *, features: int) -> Rest | None:
        """Record a region as done; return the remaining regions and those to dispatch now.

        Return None if the worker had lost it. Two regions that end at once may each return both successors.
        """
        ...

    def leave(self, claim: Claim, now: datetime, *, reason: str, final: bool, pauses: int = 0) -> Rest | None:
        """Give a region back, to be tried again, or as failed if `final`; return as `finish` does.

        The try does not count without a reason (the worker ran out of time) or with `pauses`, the number of throttled
        tries in a row.
        """
        ...

    def forget(self, job: str) -> None:
        """Remove all records of a job that has ended; they cannot be created again."""
        ...


class Submissions(Protocol):
    """The way of accepted requests to the manager, which stores their jobs."""

    def send(self, submission: Mapping[str, Any], identifier: str) -> None:
        """Send a submission as JSON values; a second one with the same identifier soon after may be dropped.

        Raises `TooLarge`, `Throttled`, `Unavailable`, `NotPermitted`.
        """
        ...


class RegionQueue(Protocol):
    """The messages by which workers receive regions."""

    def dispatch(self, job: str, attempt: int, numbers: Sequence[int], *, after: float = 0.0) -> None:
        """Send a message for each of these regions, delayed by `after` seconds; duplicates are harmless.

        Raises `Throttled`, `Unavailable`.
        """
        ...


CALLER, REASON, FIELD = "Caller", "Reason", "Field"
"""Message attributes of requests: the caller, the reason for its rejection, and the path of the invalid field."""


class ImageIntake(Protocol):
    """The queue of requests for image jobs, and its dead-letter queue."""

    def send(self, body: str, *, caller: str | None = None) -> None:
        """Send a request to the intake for this caller (an IAM ARN, message attribute `CALLER`).

        Raises `TooLarge`, `Throttled`, `Unavailable`, `NotPermitted`.
        """
        ...

    def set_aside(self, body: str, reason: str, *, attributes: Mapping[str, str] | None = None) -> None:
        """Send a request to the dead-letter queue unchanged.

        Args:
            body: the request.
            reason: why it was rejected or its job failed, message attribute `REASON`.
            attributes: further message attributes, such as `FIELD`.

        Raises `Throttled`, `Unavailable`, `NotPermitted`.
        """
        ...
