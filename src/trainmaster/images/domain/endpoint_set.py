"""The endpoints that a snapshot's jobs need, and their pools.

Settings hold no pools of endpoints: each snapshot derives them from the stored endpoints, so a queue without image jobs
has none and reads nothing for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from trainmaster.domain.capacity.units import Kind, Pool
from trainmaster.domain.compat import UTC
from trainmaster.domain.jobs.job import Job
from trainmaster.images.domain.capacity import Cap, pools_of
from trainmaster.images.domain.endpoint import Endpoint, Limits, is_serving, never_described, pool_parts
from trainmaster.images.domain.work import image_work

Caps = Callable[[Endpoint, Iterable[str]], Mapping[str, Cap]]
"""Caps of an endpoint's pools by name, given the variants that jobs name (`capacity.pools_of`)."""


def caps_of(limits: Limits, now: Callable[[], datetime]) -> Caps:
    """Return the function that computes caps by a deployment's settings, at the time of the call."""
    return lambda endpoint, named: pools_of(endpoint, limits, now(), tuple(named))


def default_caps(endpoint: Endpoint, named: Iterable[str]) -> Mapping[str, Cap]:
    """Return the caps by the guide's defaults, as if no endpoint had ever been throttled."""
    return pools_of(endpoint, Limits(), datetime.max.replace(tzinfo=UTC), tuple(named))


def needed(jobs: Iterable[Job]) -> dict[str, frozenset[str]]:
    """Return the endpoints that these jobs use or wait for, by key, each with the variants that they name."""
    found: dict[str, set[str]] = {}
    for work in filter(None, map(image_work, jobs)):
        found.setdefault(work.endpoint, set()).add(work.variant)
    return {key: frozenset(variants) for key, variants in found.items()}


def endpoint_pools(asked: Mapping[str, Iterable[str]], known: Mapping[str, Endpoint], caps: Caps) -> dict[str, Pool]:
    """Return the pools of these endpoints, ordered by name; by the defaults if an endpoint is not stored.

    Args:
        asked: see `needed`.
        known: the stored endpoints.
        caps: computes the caps of an endpoint's variants.
    """
    found: dict[str, Cap] = {}
    for key, variants in asked.items():
        found |= caps(known.get(key) or never_described(key), sorted(variants))
    return {name: _pool(name, cap, known) for name, cap in sorted(found.items())}


def _pool(name: str, cap: Cap, known: Mapping[str, Endpoint]) -> Pool:
    """Return a pool that drains if its endpoint does not serve: no job starts there, running ones retry."""
    endpoint = known.get(pool_parts(name)[0])
    status = "" if endpoint is None or is_serving(endpoint) else endpoint.status
    return Pool(name, cap.requests, kind=Kind.SERVICE, draining=bool(status), status=status, load=cap.load)
