"""Refreshes the stored endpoints of running and waiting image jobs with each tick, beside the passes.

An endpoint that does not serve, or is being changed, is described with every tick, so that its jobs start soon after it
does, and use what it has become. A pass reads the stored endpoints and never waits for SageMaker. If SageMaker does not
answer, the last description holds.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from trainmaster.domain.compat import UTC
from trainmaster.domain.errors import InvalidRequest, ServiceError
from trainmaster.domain.jobs.job import Job
from trainmaster.images.domain.endpoint import DELETED, Endpoint, Limits, is_steady, is_url, never_described
from trainmaster.images.domain.endpoint_set import needed
from trainmaster.images.ports import Endpoints, KnownEndpoints, amend
from trainmaster.images.service.external_load import ExternalLoadMonitor
from trainmaster.ports.runtime import Clock

log = logging.getLogger(__name__)

MAX_ASKED = 10
"""Endpoints described in one tick; the others follow, in the order of their last attempt."""
_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Refresher:
    """Describes endpoints that are not fresh.

    Args:
        known: the stored endpoints.
        endpoints: SageMaker.
        clock: the time.
        limits: the age up to which a description is fresh.
        external_load: measures endpoints' other callers; None to leave them out.
    """

    known: KnownEndpoints
    endpoints: Endpoints
    clock: Clock
    limits: Limits
    external_load: ExternalLoadMonitor | None = None

    def refresh(self, jobs: Iterable[Job]) -> tuple[str, ...]:
        """Describe the endpoints of these jobs that are not fresh, and measure the other callers of all.

        Returns the keys of those that could not be described, or whose metrics could not be read.

        Raises `Throttled`, `Unavailable`, `NotPermitted` if the store fails.
        """
        given = tuple(jobs)
        keys = [key for key in needed(given) if not is_url(key)]
        remembered = self.known.known(keys)
        now = self.clock.now()
        stale = [key for key in keys if not is_fresh(remembered.get(key), self.limits, now)]
        stale.sort(key=lambda key: (_tried(remembered.get(key)), key))
        failed = {key: None for key in stale[:MAX_ASKED] if not self._ask(key, remembered.get(key))}
        others = () if self.external_load is None else self.external_load.look(given)
        return tuple(failed | dict.fromkeys(others))

    def _ask(self, key: str, before: Endpoint | None) -> bool:
        """Describe an endpoint, and store the answer, or the attempt; return whether SageMaker has it."""
        seen, missing = None, False
        try:
            seen = self.endpoints.describe(key, role=(before or never_described(key)).role)
        except (ServiceError, InvalidRequest) as error:
            missing = isinstance(error, InvalidRequest)
            log.warning("an endpoint cannot be described", extra={"endpoint": key, "cause": str(error)})
        amend(self.known, key, lambda known: described(key, seen, known, self.clock.now(), missing=missing), before)
        return seen is not None


def described(
    key: str, seen: Endpoint | None, before: Endpoint | None, now: datetime, *, missing: bool = False
) -> Endpoint:
    """Return the entry to store for an endpoint after an attempt to describe it.

    Args:
        key: its key.
        seen: SageMaker's description; None without one.
        before: the stored entry.
        now: UTC.
        missing: whether SageMaker has no such endpoint. One that it described before counts as deleted: its jobs wait
            until it is there again.
    """
    known = before or never_described(key)
    if seen is None:
        status = DELETED if missing and known.described_at is not None else known.status
        return replace(known, tried_at=now, status=status)
    tags = known if seen.tags_unread else seen
    return replace(
        seen,
        described_at=now,
        tried_at=now,
        role=seen.role or known.role,
        pressure=known.pressure,
        others=known.others,
        instance_concurrency=tags.instance_concurrency,
        target=tags.target,
        tile_workers=tags.tile_workers,
    )


def is_fresh(endpoint: Endpoint | None, limits: Limits, now: datetime) -> bool:
    """Return whether the description is recent enough."""
    if endpoint is None or endpoint.described_at is None or not is_steady(endpoint):
        return False
    return endpoint.http or (now - endpoint.described_at).total_seconds() < limits.fresh_for


def _tried(endpoint: Endpoint | None) -> datetime:
    return (endpoint.tried_at if endpoint is not None else None) or _NEVER
