"""Endpoints of models: their variants, each a pool whose units are concurrent requests."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from trainmaster.images.domain.urls import normal

POOL_PREFIX = "endpoint/"
"""Prefix of the names of such pools; the names of configured pools never have it."""
_ARN_PARTS = 5
"""Minimum of colons in an ARN; the fifth part is the account."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One production variant, or all of an HTTP endpoint.

    Attributes:
        name: `VariantName`; "" of an HTTP endpoint.
        weight: `CurrentWeight`.
        instances: `CurrentInstanceCount`; 0 of a serverless variant.
        max_concurrency: of a serverless variant (`CurrentServerlessConfig`); None of others.
    """

    name: str
    weight: float = 1.0
    instances: int = 0
    max_concurrency: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pressure:
    """Throttling at the endpoint: it lowers the target by a factor that recovers with time.

    Attributes:
        factor: of the target, above 0 to 1, at `since`.
        since: time of the last reduction, UTC; None if there was none.
    """

    factor: float = 1.0
    since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Requests that our own jobs might make of a variant at one time, UTC."""

    requests: int
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Others:
    """Requests that callers other than our jobs make of a variant.

    Attributes:
        requests: observed minimum at once.
        seen_at: time of the observation, UTC; None without one.
        ours: requests that our own jobs held in the minutes before, oldest first, without times of none.
    """

    requests: int = 0
    seen_at: datetime | None = None
    ours: tuple[Held, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """An endpoint as last described.

    Attributes:
        key: its name, prefixed with the account of the role that reaches it if that is another (`<account>:<name>`);
            for an HTTP endpoint its normalized URL without credentials or query.
        http: whether it is a URL.
        variants: in SageMaker's order.
        instance_concurrency: requests that an instance takes at once (tag `osml:instance-concurrency`); None without
            the tag.
        target: share of its capacity that jobs use (tag `osml:capacity-target-percentage`); None without the tag.
        tile_workers: requests that one of its regions makes at once (tag `osml:tile-workers`); None without the tag.
        described_at: time of the description, UTC; None if it was never described (then the defaults hold).
        tried_at: time of the last attempt to describe it, UTC.
        role: IAM role ARN under which it is described; None for the queue's own role.
        pressure: by variant.
        tags_unread: whether its tags could not be read with it, so that earlier values stay in use.
        status: `EndpointStatus`, or `DELETED`; "" if unknown.
        others: requests of other callers, by variant; see `capacity.OTHERS_COUNT_FOR`.
        asynchronous: whether it has an `AsyncInferenceConfig`, so that it answers no InvokeEndpoint.
    """

    key: str
    http: bool = False
    variants: tuple[Variant, ...] = ()
    instance_concurrency: int | None = None
    target: float | None = None
    tile_workers: int | None = None
    described_at: datetime | None = None
    tried_at: datetime | None = None
    role: str | None = None
    pressure: dict[str, Pressure] = field(default_factory=dict)
    tags_unread: bool = False
    status: str = ""
    others: dict[str, Others] = field(default_factory=dict)
    asynchronous: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """A deployment's settings, by the guide's names and with its defaults ("Configuration Options").

    Attributes:
        throttling: `SCHEDULER_THROTTLING_ENABLED`: whether capacity is checked.
        target: `CAPACITY_TARGET_PERCENTAGE`, 0.0 to 1.5.
        instance_concurrency: `DEFAULT_INSTANCE_CONCURRENCY`.
        http_concurrency: `DEFAULT_HTTP_ENDPOINT_CONCURRENCY`.
        tile_workers: `TILE_WORKERS_PER_INSTANCE`: requests that a worker makes at once.
        region_size: `REGION_SIZE`, pixels per axis.
        fresh_for: seconds for which a description counts as fresh.
        attempts: tries of a region before its job fails.
        watch_others: `WATCH_OTHER_CALLERS`: whether requests of other callers are measured and subtracted.
    """

    throttling: bool = True
    target: float = 1.0
    instance_concurrency: int = 2
    http_concurrency: int = 10
    tile_workers: int = 4
    region_size: tuple[int, int] = (10_240, 10_240)
    fresh_for: float = 300.0
    attempts: int = 3
    watch_others: bool = True


CREATING, IN_SERVICE = "Creating", "InService"
DELETED = "Deleted"
"""Status of an endpoint that SageMaker described earlier and no longer has; the others are SageMaker's."""
NOT_SERVING = frozenset({"OutOfService", CREATING, "Deleting", "Failed", DELETED})
"""Values of `EndpointStatus` with which an endpoint serves no requests (SageMaker API, DescribeEndpoint); an endpoint
that is updated or rolled back goes on serving."""


def is_serving(endpoint: Endpoint) -> bool:
    """Return whether the endpoint serves requests, as far as known."""
    return endpoint.status not in NOT_SERVING


def is_steady(endpoint: Endpoint) -> bool:
    """Return whether the endpoint is in service and not being changed, as far as known."""
    return endpoint.status in ("", IN_SERVICE)


def has_unknown_variants(endpoint: Endpoint) -> bool:
    """Return whether SageMaker has not named the variants yet: it never described the endpoint, or is creating it."""
    return not endpoint.variants and (endpoint.described_at is None or endpoint.status == CREATING)


def pool_name(endpoint: str, variant: str) -> str:
    """Return the pool of a variant: `endpoint/<key>/<variant>`, of an HTTP endpoint `endpoint/<url>`."""
    return POOL_PREFIX + (f"{endpoint}/{variant}" if variant else endpoint)


def is_endpoint_pool(name: str) -> bool:
    """Return whether a pool's units are an endpoint's concurrent requests."""
    return name.startswith(POOL_PREFIX)


def pool_parts(name: str) -> tuple[str, str]:
    """Return the endpoint's key and the variant of a pool's name; the inverse of `pool_name`.

    SageMaker's names have no slash; URLs do, and no variants.
    """
    rest = name.removeprefix(POOL_PREFIX)
    if is_url(rest):
        return rest, ""
    key, _, variant = rest.partition("/")
    return key, variant


def is_url(name: str) -> bool:
    """Return whether a model's name is a URL; schemes have no case (RFC 3986, section 3.1)."""
    return name.lower().startswith(("http://", "https://"))


def key_of(name: str, *, role: str | None = None, account: str = "") -> str:
    """Return the key of the endpoint that a request names.

    Args:
        name: of the endpoint, or the model's URL.
        role: IAM role ARN under which it is reached; its account is the endpoint's.
        account: the queue's own AWS account.
    """
    if is_url(name):
        return normal(name)
    owner = role.split(":")[4] if role is not None and role.count(":") >= _ARN_PARTS else ""
    return name if owner in ("", account) else f"{owner}:{name}"


def never_described(key: str) -> Endpoint:
    """Return an endpoint that was not described yet."""
    return Endpoint(key=key, http=is_url(key))
