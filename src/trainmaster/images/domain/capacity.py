"""How many requests an endpoint takes at once, and how many of them image jobs may make: its pools' caps.

The guide's rules ("Capacity Check"): a serverless variant takes its `MaxConcurrency`, instances take
`instances x concurrency`, an HTTP endpoint a fixed number; of that a share is used. Three rules are ours: throttling
lowers the share for a while, what other callers are seen to ask is left to them, and each cap is at least 1, for an
image that is larger than its endpoint runs there alone (the guide's single image exception), so even an endpoint
without instances is tried by one.

It must not ask AWS, nor read a clock.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

from trainmaster.images.domain.endpoint import Endpoint, Held, Limits, Others, Pressure, Variant, pool_name

UNLIMITED = 1_000_000
"""The cap of a pool that is not throttled; also the most that any pool has."""
PRESSED_EVERY = timedelta(seconds=30)
"""A burst of refusals is one lesson, not one for each request."""
LEAST_FACTOR = 0.1
RECOVERY = 0.1
"""By how much the factor grows in a minute without throttling."""
NEVER_PRESSED = Pressure()
OTHERS_COUNT_FOR = timedelta(minutes=5)
"""How long what was seen of other callers counts."""
LOOKED_BACK = timedelta(minutes=3)
"""The minutes of which the least is taken, so that a short burst of anybody's, ours too, is no steady use."""
NO_OTHERS = Others()
_HELD_FOR = LOOKED_BACK + timedelta(minutes=2)
"""A whole minute more on either side: minutes of metrics are whole ones, and ticks come when they come."""
LEAST_ASKED = 10
"""Requests of a worker from which on the refused ones among them say something."""
STRAINED = 0.1
"""More than this part of a worker's requests refused, and the endpoint is asked too much, though retries helped."""
REMEMBERED_ASKED = 200
"""Requests after which those before them are forgotten, so that what is refused then is seen soon."""


def capacity_of(endpoint: Endpoint, variant: str, limits: Limits) -> int:
    """Requests that a variant takes at once, as the guide counts them.

    Args:
        endpoint: as last described. One that never was counts as one instance.
        variant: its name; "" for the endpoint as a whole. One that the endpoint does not have takes nothing.
        limits: the deployment's defaults, where no tag says more.
    """
    if endpoint.http:
        return limits.http_concurrency
    each = endpoint.instance_concurrency or limits.instance_concurrency
    if not endpoint.variants and endpoint.described_at is None:
        return each
    return sum(_takes(one, each) for one in endpoint.variants if variant in ("", one.name))


def _takes(variant: Variant, each: int) -> int:
    return variant.instances * each if variant.max_concurrency is None else variant.max_concurrency


def cap_of(endpoint: Endpoint, variant: str, limits: Limits, now: datetime) -> int:
    """Requests that image jobs may make of a variant at once: its pool's cap.

    Args:
        endpoint: as last described.
        variant: its name; "" of an HTTP endpoint.
        limits: the deployment's settings.
        now: for throttling and other callers, which are forgotten with time, UTC.
    """
    if not limits.throttling:
        return UNLIMITED
    target = limits.target if endpoint.target is None else endpoint.target
    factor = factor_at(endpoint.pressure.get(variant, NEVER_PRESSED), now)
    # By decimals: 100 x 0.29 is 29, which binary fractions take for less.
    used = int(capacity_of(endpoint, variant, limits) * Decimal(str(target)) * Decimal(str(factor)))
    left = used - others_at(endpoint.others.get(variant, NO_OTHERS), now)
    return min(max(1, left), UNLIMITED)


def pools_of(endpoint: Endpoint, limits: Limits, now: datetime, named: Collection[str] = ()) -> dict[str, int]:
    """The caps of an endpoint's pools, by name.

    Args:
        endpoint: as last described; one that never was has the deployment's defaults.
        limits: the deployment's settings.
        now: for throttling, which is forgotten with time, UTC.
        named: variants that jobs have been given: they have a pool also where the endpoint does not list them (any
            more).
    """
    listed = ("",) if endpoint.http else tuple(variant.name for variant in endpoint.variants)
    return {pool_name(endpoint.key, name): cap_of(endpoint, name, limits, now) for name in (*listed, *named)}


def pressed(pressure: Pressure, now: datetime) -> Pressure:
    """What throttling seen now makes of it: half of what is used at present, at most once in `PRESSED_EVERY`."""
    if pressure.since is not None and now - pressure.since < PRESSED_EVERY:
        return pressure
    return Pressure(factor=max(LEAST_FACTOR, factor_at(pressure, now) / 2), since=now)


def is_strained(asked: int, refused: int) -> bool:
    """Whether so many requests, of which so many were refused, say that an endpoint is asked too much."""
    return asked >= LEAST_ASKED and refused > asked * STRAINED


def factor_at(pressure: Pressure, now: datetime) -> float:
    """The factor by then; it grows by `RECOVERY` a minute, to 1."""
    if pressure.since is None:
        return pressure.factor
    minutes = max(timedelta(0), now - pressure.since) / timedelta(minutes=1)
    return min(1.0, pressure.factor + RECOVERY * minutes)


def others_at(others: Others, now: datetime) -> int:
    """Requests that other callers are taken to make by then."""
    recent = others.seen_at is not None and now - others.seen_at <= OTHERS_COUNT_FOR
    return others.requests if recent else 0


def with_ours(others: Others, held: int, now: datetime) -> Others:
    """The same, knowing what our own jobs hold now."""
    kept = tuple(each for each in others.ours if now - each.at <= _HELD_FOR)
    return replace(others, ours=(*kept, Held(requests=held, at=now)) if held else kept)


def with_seen(others: Others, least: float, instances: int, now: datetime) -> Others:
    """What was seen of a variant, less the most that our own jobs held meanwhile, is other callers'.

    Never too much: each instance had at least so many requests at any time, and ours were at no time more than what
    the jobs held.

    Args:
        others: with what our jobs held, up to now.
        least: requests that each instance had at any time since `LOOKED_BACK`.
        instances: of the variant.
        now: UTC.
    """
    ours = max((each.requests for each in others.ours), default=0)
    found = max(0, int(least * instances) - ours)
    return replace(others, requests=found, seen_at=now if found else None)
