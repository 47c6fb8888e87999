"""Which endpoints the jobs of a snapshot need, and the pools that those are.

Pools of endpoints are in no settings: every reading of the queue makes them of what is remembered of the endpoints, so
a queue without image jobs has none and reads nothing for them. It must not read anything itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime

from trainmaster.domain.capacity.units import Kind, Pool
from trainmaster.domain.jobs.job import Job
from trainmaster.images.domain.capacity import pools_of
from trainmaster.images.domain.endpoint import Endpoint, Limits, is_serving, never_described, pool_parts
from trainmaster.images.domain.work import image_work

Caps = Callable[[Endpoint, Iterable[str]], Mapping[str, int]]
"""The caps of an endpoint's pools by name, given the variants that jobs name (`capacity.pools_of`)."""


def caps_of(limits: Limits, now: Callable[[], datetime]) -> Caps:
    """The caps by a deployment's settings, at the time of asking."""
    return lambda endpoint, named: pools_of(endpoint, limits, now(), tuple(named))


def default_caps(endpoint: Endpoint, named: Iterable[str]) -> Mapping[str, int]:
    """The caps by the guide's defaults, as if no endpoint had ever been throttled."""
    return pools_of(endpoint, Limits(), datetime.max.replace(tzinfo=UTC), tuple(named))


def needed(jobs: Iterable[Job]) -> dict[str, frozenset[str]]:
    """The endpoints that these jobs work at, or wait for, by key, each with the variants that they name."""
    found: dict[str, set[str]] = {}
    for work in filter(None, map(image_work, jobs)):
        found.setdefault(work.endpoint, set()).add(work.variant)
    return {key: frozenset(variants) for key, variants in found.items()}


def endpoint_pools(asked: Mapping[str, Iterable[str]], known: Mapping[str, Endpoint], caps: Caps) -> dict[str, Pool]:
    """The pools of these endpoints, in order of their names; by the defaults where one is not remembered.

    Args:
        asked: see `needed`.
        known: those that are remembered.
        caps: what the variants of an endpoint take.
    """
    found: dict[str, int] = {}
    for key, variants in asked.items():
        found |= caps(known.get(key) or never_described(key), sorted(variants))
    return {name: _pool(name, cap, known) for name, cap in sorted(found.items())}


def _pool(name: str, cap: int, known: Mapping[str, Endpoint]) -> Pool:
    """Nothing is started at an endpoint that answers nobody; what runs there has its retries."""
    endpoint = known.get(pool_parts(name)[0])
    status = "" if endpoint is None or is_serving(endpoint) else endpoint.status
    return Pool(name, cap, kind=Kind.SERVICE, draining=bool(status), status=status)
