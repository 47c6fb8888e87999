"""The capacity of endpoints in concurrent requests, and the share that image jobs may use: the caps of their pools.

The guide's rules ("Capacity Check"): a serverless variant takes its `MaxConcurrency`, instances take
`instances x concurrency`, an HTTP endpoint a fixed number; jobs use a share of that. Three rules are ours: throttling
lowers the share for a while; requests observed from other callers are subtracted; and each cap is at least 1, so that
an image larger than its endpoint runs there alone (the guide's single image exception), even on an endpoint that
reports no instances.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

from trainmaster.domain.capacity.units import ServiceLoad
from trainmaster.images.domain.endpoint import (
    Endpoint,
    Held,
    Limits,
    Others,
    Pressure,
    Variant,
    has_unknown_variants,
    pool_name,
)

UNLIMITED = 1_000_000
"""The cap of a pool that is not throttled, and the upper bound of every cap."""
THROTTLED_EVERY = timedelta(seconds=30)
"""A burst of refusals lowers the target once, not once per request."""
MIN_FACTOR = 0.1
RECOVERY = 0.1
"""Growth of the factor per minute without throttling."""
NOT_THROTTLED = Pressure()
OTHERS_COUNT_FOR = timedelta(minutes=5)
"""Time for which observed requests of other callers count."""
METRIC_WINDOW = timedelta(minutes=3)
"""Minutes over which the minimum is taken, so that a short burst does not count as steady use."""
NO_OTHERS = Others()


class Cap(NamedTuple):
    """The requests that image jobs may make of a variant at once, and how they follow from its load, if they do."""

    requests: int
    load: ServiceLoad | None = None


_HELD_FOR = METRIC_WINDOW + timedelta(minutes=2)
"""One more minute on either side: metrics cover whole minutes, and ticks come at any time."""
MIN_REQUESTS = 10
"""Requests of a worker below which its refusals say nothing about the endpoint."""
MAX_REFUSED_FRACTION = 0.1
"""Fraction of refused requests above which an endpoint counts as overloaded, even if retries succeeded."""
COUNTED_REQUESTS = 200
"""Requests after which earlier counts are dropped, so that new refusals show soon."""


def capacity_of(endpoint: Endpoint, variant: str, limits: Limits) -> int:
    """Return the requests that a variant takes at once, by the guide's rules.

    Args:
        endpoint: as last described. One whose variants are not known yet counts as one instance.
        variant: its name; "" for the endpoint as a whole. An unknown variant takes none.
        limits: the deployment's defaults, used where no tag is set.
    """
    if endpoint.http:
        return limits.http_concurrency
    each = endpoint.instance_concurrency or limits.instance_concurrency
    if has_unknown_variants(endpoint):
        return each
    return sum(_takes(one, each) for one in endpoint.variants if variant in ("", one.name))


def _takes(variant: Variant, each: int) -> int:
    return variant.instances * each if variant.max_concurrency is None else variant.max_concurrency


def cap_of(endpoint: Endpoint, variant: str, limits: Limits, now: datetime) -> Cap:
    """Return the requests that image jobs may make of a variant at once: its pool's cap. It has no load if unlimited.

    Args:
        endpoint: as last described.
        variant: its name; "" of an HTTP endpoint.
        limits: the deployment's settings.
        now: the time at which throttling and other callers are weighed, UTC.
    """
    if not limits.throttling:
        return Cap(UNLIMITED)
    load = _load_of(endpoint, variant, limits, now)
    # In decimals: 100 x 0.29 is 29, but binary fractions give less.
    used = int(load.capacity * Decimal(str(load.target)) * Decimal(str(load.pressure)))
    return Cap(min(max(1, used - load.external), UNLIMITED), load)


def _load_of(endpoint: Endpoint, variant: str, limits: Limits, now: datetime) -> ServiceLoad:
    pressure, others = endpoint.pressure.get(variant, NOT_THROTTLED), endpoint.others.get(variant, NO_OTHERS)
    factor, external = factor_at(pressure, now), others_at(others, now)
    measured = limits.watch_others and any(one.instances for one in endpoint.variants if variant in ("", one.name))
    return ServiceLoad(
        capacity=capacity_of(endpoint, variant, limits),
        target=limits.target if endpoint.target is None else endpoint.target,
        pressure=factor,
        throttled_at=pressure.since if factor < 1 else None,
        external=external,
        external_at=others.seen_at if external else None,
        window=METRIC_WINDOW if measured else None,
    )


def pools_of(endpoint: Endpoint, limits: Limits, now: datetime, named: Collection[str] = ()) -> dict[str, Cap]:
    """Return the caps of an endpoint's pools, by name.

    Args:
        endpoint: as last described; one that was never described has the deployment's defaults.
        limits: the deployment's settings.
        now: the time at which throttling is weighed, UTC.
        named: variants that jobs use; they have a pool even if the endpoint does not list them (any more).
    """
    listed = ("",) if endpoint.http else tuple(variant.name for variant in endpoint.variants)
    return {pool_name(endpoint.key, name): cap_of(endpoint, name, limits, now) for name in (*listed, *named)}


def throttled_at(pressure: Pressure, now: datetime) -> Pressure:
    """Return the pressure after throttling now: half the current factor, at most once in `THROTTLED_EVERY`."""
    if pressure.since is not None and now - pressure.since < THROTTLED_EVERY:
        return pressure
    return Pressure(factor=max(MIN_FACTOR, factor_at(pressure, now) / 2), since=now)


def is_overloaded(asked: int, refused: int) -> bool:
    """Return whether this fraction of refused requests means that an endpoint is overloaded."""
    return asked >= MIN_REQUESTS and refused > asked * MAX_REFUSED_FRACTION


def factor_at(pressure: Pressure, now: datetime) -> float:
    """Return the factor at that time; it grows by `RECOVERY` a minute, up to 1."""
    if pressure.since is None:
        return pressure.factor
    minutes = max(timedelta(0), now - pressure.since) / timedelta(minutes=1)
    return min(1.0, pressure.factor + RECOVERY * minutes)


def others_at(others: Others, now: datetime) -> int:
    """Return the requests that other callers are assumed to make at that time."""
    recent = others.seen_at is not None and now - others.seen_at <= OTHERS_COUNT_FOR
    return others.requests if recent else 0


def with_ours(others: Others, held: int, now: datetime) -> Others:
    """Return the same with the requests that our own jobs hold now."""
    kept = tuple(each for each in others.ours if now - each.at <= _HELD_FOR)
    return replace(others, ours=(*kept, Held(requests=held, at=now)) if held else kept)


def with_seen(others: Others, min_requests: float, instances: int, now: datetime) -> Others:
    """Return the same with the observed requests of a variant, less the most that our own jobs held meanwhile.

    The result never exceeds the requests of other callers: each instance had at least `min_requests` at any time, and
    our jobs never had more than they held.

    Args:
        others: with the requests that our jobs held up to now.
        min_requests: minimum of requests per instance since `METRIC_WINDOW`.
        instances: of the variant.
        now: UTC.
    """
    ours = max((each.requests for each in others.ours), default=0)
    found = max(0, int(min_requests * instances) - ours)
    return replace(others, requests=found, seen_at=now if found else None)
