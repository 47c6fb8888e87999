"""Measures the requests of callers other than the queue's own jobs at endpoints, with each tick, beside the passes.

AWS's metrics count all callers. The queue's own part is not measured: all requests that its jobs held in those minutes
count as its own, so that its own load never counts as external.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from trainmaster.domain.errors import NotPermitted, ServiceError
from trainmaster.domain.jobs.job import Job
from trainmaster.images.domain.capacity import NO_OTHERS, with_ours, with_seen
from trainmaster.images.domain.endpoint import Endpoint, Others, is_endpoint_pool, is_url, pool_parts
from trainmaster.images.domain.endpoint_set import needed
from trainmaster.images.ports import Concurrency, KnownEndpoints, amend
from trainmaster.ports.runtime import Clock

log = logging.getLogger(__name__)

MAX_WATCHED = 100
"""Variants measured in one tick; of more, the first by name."""
MAX_ROLES = 5
"""Roles used in one tick, including the queue's own: each is a call. More take turns by the minute."""

_Place = tuple[str, str]
"""Key of an endpoint, and variant."""


@dataclass(frozen=True, slots=True)
class ExternalLoadMonitor:
    """Measures the other callers of endpoints.

    Args:
        known: the stored endpoints.
        concurrency: AWS's metrics.
        clock: the time.
    """

    known: KnownEndpoints
    concurrency: Concurrency
    clock: Clock

    def look(self, jobs: Iterable[Job]) -> tuple[str, ...]:
        """Store other callers' requests at the endpoints of these jobs; return the keys that could not be measured.

        Raises `Throttled`, `Unavailable`, `NotPermitted` if the store fails.
        """
        given = tuple(jobs)
        remembered, held = self.known.known([key for key in needed(given) if not is_url(key)]), _held(given)
        by_role: dict[str | None, list[_Place]] = {}
        for key, variant in _watched(given, remembered):
            by_role.setdefault(remembered[key].role, []).append((key, variant))
        asked = _in_turn(by_role, self.clock.now())
        failed: list[str] = []
        for role, places in by_role.items():
            min_requests = self._read(places, role) if role in asked else None
            failed += sorted({key for key, _ in places}) if role in asked and min_requests is None else []
            # Our own requests are recorded with every tick, or they would count as external when a turn comes.
            for key in {key for key, _ in places}:
                # SageMaker spreads the requests of jobs without a variant over all variants.
                mine = {place: held[place] + held[key, ""] for place in places if place[0] == key}
                self._remember(key, mine, min_requests, remembered[key])
        return tuple(failed)

    def _read(self, places: Sequence[_Place], role: str | None) -> Mapping[_Place, float] | None:
        """Return AWS's metrics: empty without permission, None after an error, when the last values hold."""
        try:
            return self.concurrency.min_requests(places, self.clock.now(), role=role)
        except NotPermitted as error:
            log.info(
                "not permitted to read metrics of other callers' requests", extra={"role": role, "cause": str(error)}
            )
            return {}
        except ServiceError as error:
            log.warning("could not read metrics of other callers' requests", extra={"role": role, "cause": str(error)})
            return None

    def _remember(
        self, key: str, held: Mapping[_Place, int], min_requests: Mapping[_Place, float] | None, before: Endpoint | None
    ) -> None:
        def seen(endpoint: Endpoint | None) -> Endpoint | None:
            if endpoint is None:
                return None
            found = {variant: self._others(endpoint, variant, held[key, variant], min_requests) for _, variant in held}
            kept = {**endpoint.others, **found}
            return replace(endpoint, others={name: each for name, each in kept.items() if each != NO_OTHERS})

        amend(self.known, key, seen, before)

    def _others(
        self, endpoint: Endpoint, variant: str, held: int, min_requests: Mapping[_Place, float] | None
    ) -> Others:
        now = self.clock.now()
        others = with_ours(endpoint.others.get(variant, NO_OTHERS), held, now)
        if min_requests is None:
            return others
        return with_seen(others, min_requests.get((endpoint.key, variant), 0.0), _instances(endpoint, variant), now)


def _watched(jobs: Iterable[Job], remembered: Mapping[str, Endpoint]) -> list[_Place]:
    """Return the variants of these jobs that have instances; others publish no metrics."""
    named = ((key, variant) for key, variants in needed(jobs).items() for variant in variants)
    watched = (each for each in named if each[0] in remembered and _instances(remembered[each[0]], each[1]))
    return sorted(watched)[:MAX_WATCHED]


def _in_turn(roles: Iterable[str | None], now: datetime) -> frozenset[str | None]:
    """Return the roles to use in this minute; each minute takes the next few, so that all get a turn."""
    ordered = sorted(roles, key=lambda role: role or "")
    first = int(now.timestamp()) // 60 * MAX_ROLES
    return frozenset(ordered[(first + each) % len(ordered)] for each in range(min(MAX_ROLES, len(ordered))))


def _instances(endpoint: Endpoint, variant: str) -> int:
    return sum(each.instances for each in endpoint.variants if each.name == variant)


def _held(jobs: Iterable[Job]) -> Counter[_Place]:
    """Return the requests that jobs hold of each variant, including stopping jobs, for their last requests."""
    found: Counter[_Place] = Counter()
    for job in jobs:
        for name, count in job.units.items():
            if is_endpoint_pool(name):
                found[pool_parts(name)] += count
    return found
