"""The part of the API client that sweeps need; its method `sweep` begins them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from trainmaster.client.views.types import JobDetailView, JobView, SubmissionView


class QueueApi(Protocol):
    """Methods of `ApiClient`; all raise ApiError."""

    @property
    def session(self) -> Any:
        """The session that provides credentials and clients of AWS services."""

    @property
    def region(self) -> str:
        """The AWS Region of the queue."""

    def submit(self, request: Mapping[str, Any]) -> SubmissionView:
        """Submit a request to the queue."""

    def job(self, name: str) -> JobDetailView:
        """Return a job."""

    def all_jobs(
        self, state: Iterable[str] | None = None, *, prefix: str | None = None, kind: str | None = None
    ) -> Iterator[JobView]:
        """Iterate over jobs."""

    def cancel(self, name: str, reason: str | None = None) -> JobView:
        """Cancel or stop a job."""
