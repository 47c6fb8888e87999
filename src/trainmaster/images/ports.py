"""What image jobs need from outside, as Protocols in the words of the domain, with the errors of `domain.errors`.

They must not hold rules: what is remembered of an endpoint is for the callers of `amend` to say.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from trainmaster.images.domain.endpoint import Endpoint
from trainmaster.images.domain.refusal import Refusal
from trainmaster.images.domain.tiling import Region, Window
from trainmaster.images.domain.work import Claim, RegionRecord, Rest, Run

MAX_TRIES = 5
"""Who has been overtaken so often gives up: it is told again soon, and others have told theirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What an image's header says.

    Attributes:
        width, height: pixels.
        part: what of the image is asked for: its bounds, or those of the region of interest within them.
    """

    width: int
    height: int
    part: Window


class Headers(Protocol):
    """Images' headers, read from where the images are."""

    def read(self, url: str, *, role: str | None = None, interest: str | None = None) -> Header:
        """The header; only its bytes are read.

        Args:
            url: `s3://bucket/key` or `http(s)://...`.
            role: IAM role ARN under which it is read; None for our own.
            interest: region of interest as WKT, longitude and latitude. Without georeference it counts as none.

        Raises `InvalidRequest` for an image that cannot be read, and for an interest outside of it; `Throttled`,
        `Unavailable` where trying again may help.
        """
        ...


class Endpoints(Protocol):
    """SageMaker endpoints, as AWS describes them."""

    def describe(self, key: str, *, role: str | None = None) -> Endpoint:
        """How an endpoint is now, with its tags; `described_at` and `pressure` are left to the caller.

        Raises `InvalidRequest` where there is none of that name; `Throttled`, `Unavailable`, `NotPermitted`.
        """
        ...


class Concurrency(Protocol):
    """How many requests instances of SageMaker endpoints have at once, whoever makes them, as AWS measures it."""

    def least(
        self, asked: Collection[tuple[str, str]], now: datetime, *, role: str | None = None
    ) -> Mapping[tuple[str, str], float]:
        """Requests that each instance of these variants had at any time of the last minutes, at least.

        Those of which nothing is published are left out.

        Args:
            asked: keys of endpoints (`Endpoint.key`) with names of variants.
            now: UTC.
            role: IAM role ARN under which it is read; None for our own.

        Raises `Throttled`, `Unavailable`, `NotPermitted`.
        """
        ...


class KnownEndpoints(Protocol):
    """What the queue remembers of endpoints; snapshots bring along those that their jobs need."""

    def known(self, keys: Collection[str]) -> Mapping[str, Endpoint]:
        """Those that are remembered, by key, strongly consistent."""
        ...

    def remember(self, endpoint: Endpoint, before: Endpoint | None) -> bool:
        """Keep it in place of `before` (None: nothing); False where something else has been kept meanwhile."""
        ...


def amend(
    known: KnownEndpoints, key: str, change: Callable[[Endpoint | None], Endpoint | None], before: Endpoint | None
) -> None:
    """Remember what `change` makes of an endpoint; where others were faster, what it makes of what they have kept.

    Args:
        known: the memory.
        key: the endpoint's.
        change: what is to be remembered in place of that; the same, or None, where nothing is to be changed.
        before: what was read of it; None where nothing is remembered.

    Raises `Throttled`, `Unavailable`, `NotPermitted` where the memory does not answer.
    """
    for _ in range(MAX_TRIES):
        after = change(before)
        if after is None or after == before or known.remember(after, before):
            return
        before = known.known([key]).get(key)


class Refusals(Protocol):
    """Requests that came by the queue and were refused, remembered for a week so that people who ask are told."""

    def note(self, refusal: Refusal) -> None:
        """Remember it in place of an earlier one of that name; it makes no name taken.

        Raises `Throttled`, `Unavailable`, `NotPermitted`.
        """
        ...

    def of(self, job: str) -> Refusal | None:
        """The newest refusal of a request of that name; None where nothing is remembered. Raises as `note`."""
        ...


class Runs(Protocol):
    """The regions of image jobs, one record each, and who works on them.

    Everything is guarded by what was read: a message that comes twice, a worker that was thought dead and a stop that
    comes late never make two workers finish one region.
    """

    def lay_out(self, job: str, attempt: int, regions: Sequence[Region], *, abreast: int | None = None) -> Run:
        """Write the regions, and the merging, that are not there yet; from now on this attempt works on them.

        Those that are done stay done; failed ones are tried anew; nothing is stopped any more. The same attempt again
        changes nothing, nor does one before it. Of a job that was forgotten, nothing is laid out: then there are no
        records.

        Args:
            job: its name.
            attempt: its number.
            regions: all that the job has.
            abreast: most of them at work at once, from 1; None for all. Whoever ends with one is told the next.
        """
        ...

    def run(self, job: str) -> Run | None:
        """How a job's regions stand, strongly consistent; None where none were laid out."""
        ...

    def stop(self, job: str, attempt: int) -> None:
        """Ask this attempt's workers to leave off; nothing where another attempt works already."""
        ...

    def narrow(self, job: str, attempt: int, narrowed: int | None) -> None:
        """Have only so many regions of this attempt at work at once, from 1, though it began with more; None: as then.

        Those that are at work are not stopped. Nothing where another attempt works already.
        """
        ...

    def begin(self, claim: Claim, now: datetime, *, dead_before: datetime) -> RegionRecord | None:
        """Take a region for a worker: one that is pending, or whose worker has been silent since `dead_before`.

        None where it is done or failed, somebody is at it, it pauses (`claims.pause`), the attempt is not the one that
        works, or it is stopped.
        The merging is taken only once all regions are done or failed.
        """
        ...

    def beat(self, claim: Claim, now: datetime, *, tiles_done: int) -> bool:
        """Say that the worker lives; False where the region is not its own any more, or is to be left off."""
        ...

    def finish(self, claim: Claim, now: datetime, *, features: int) -> Rest | None:
        """The region is done: what is left, and what is to be dispatched now.

        None where it was not this worker's any more. Of two that end at once each may be told both that are next.
        """
        ...

    def leave(self, claim: Claim, now: datetime, *, reason: str, final: bool, pauses: int = 0) -> Rest | None:
        """Give a region back, to be tried again, or as failed for good where `final`; answers as `finish` does.

        Without a reason the worker only ran out of time, and with `pauses` it was told to slow down, so often in a row:
        then its try is not counted.
        """
        ...

    def forget(self, job: str) -> None:
        """Have no records of a job that has ended, for ever."""
        ...


class RegionQueue(Protocol):
    """How workers learn of regions."""

    def dispatch(self, job: str, attempt: int, numbers: Sequence[int], *, after: float = 0.0) -> None:
        """Have each of these worked on, `after` so many seconds; telling twice is harmless.

        Raises `Throttled`, `Unavailable`.
        """
        ...


CALLER, REASON, FIELD = "Caller", "Reason", "Field"
"""Message attributes of requests: who asks for it, why it was set aside, and the path of the member at fault."""


class ImageIntake(Protocol):
    """Where requests wait to be read, and where those go that cannot be."""

    def send(self, body: str, *, caller: str | None = None) -> None:
        """Have a request taken in, for this caller (an IAM ARN, message attribute `CALLER`).

        Raises `TooLarge`, `Throttled`, `Unavailable`, `NotPermitted`.
        """
        ...

    def set_aside(self, body: str, reason: str, *, attributes: Mapping[str, str] | None = None) -> None:
        """Put a request where people find it, in the form in which it came.

        Args:
            body: the request.
            reason: why it cannot be taken in or done, message attribute `REASON`.
            attributes: further message attributes, such as `FIELD`.

        Raises `Throttled`, `Unavailable`, `NotPermitted`.
        """
        ...
