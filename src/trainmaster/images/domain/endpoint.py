"""What a model's endpoint can take: its variants, each a pool whose units are concurrent requests.

It must not ask AWS: `images/adapters/sagemaker_endpoints.py` does, beside the passes, and the table keeps what it said.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from trainmaster.images.domain.urls import normal

POOL_PREFIX = "endpoint/"
"""What names of such pools begin with; no pool that people set can be called so."""
_ARN_PARTS = 5
"""Colons of an ARN at least; the fourth part behind the first is the account."""


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
    """What throttling at the endpoint has taught: its target is lowered by a factor, which recovers with time.

    Attributes:
        factor: of the target, above 0 to 1, at `since`.
        since: when it was lowered last, UTC; None where it never was.
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
    """What callers other than our jobs were seen to ask of a variant.

    Attributes:
        requests: at least so many at once.
        seen_at: when that was seen, UTC; None where nothing is.
        ours: what our own jobs held in the minutes before, oldest first; times at which they held nothing are left out.
    """

    requests: int = 0
    seen_at: datetime | None = None
    ours: tuple[Held, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """An endpoint as last described.

    Attributes:
        key: its name, behind the account of the role that reaches it where that is another (`<account>:<name>`); of an
            HTTP endpoint its URL without credentials or query, however it is spelt.
        http: whether it is a URL.
        variants: in the order in which SageMaker lists them.
        instance_concurrency: requests that an instance takes at once (tag `osml:instance-concurrency`); None where no
            tag says it.
        target: share of its capacity that is used (tag `osml:capacity-target-percentage`); None where no tag says it.
        tile_workers: requests that a region of it makes at once (tag `osml:tile-workers`); None where no tag says it.
        described_at: when that was seen, UTC; None where it never was (then the defaults hold).
        tried_at: when it was last asked, UTC.
        role: IAM role ARN under which it is described; None for our own.
        pressure: by variant.
        tags_unread: whether its tags could not be read with it, so that what earlier ones said is still the best guess.
        status: `EndpointStatus`; "" where it is not known.
        others: what others ask of it, by variant; see `capacity.OTHERS_COUNT_FOR`.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """A deployment's settings, by the guide's names and with its defaults ("Configuration Options").

    Attributes:
        throttling: `SCHEDULER_THROTTLING_ENABLED`: whether capacity is checked at all.
        target: `CAPACITY_TARGET_PERCENTAGE`, 0.0 to 1.5.
        instance_concurrency: `DEFAULT_INSTANCE_CONCURRENCY`.
        http_concurrency: `DEFAULT_HTTP_ENDPOINT_CONCURRENCY`.
        tile_workers: `TILE_WORKERS_PER_INSTANCE`: requests that a worker makes at once.
        region_size: `REGION_SIZE`, pixels per axis.
        fresh_for: seconds for which a description counts as fresh.
        attempts: tries of a region before its job fails.
        watch_others: `WATCH_OTHER_CALLERS`: whether what others ask of endpoints is looked at, and left to them.
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


NOT_SERVING = frozenset({"OutOfService", "Creating", "Deleting", "Failed"})
"""Values of `EndpointStatus` with which an endpoint answers nobody (SageMaker API, DescribeEndpoint); while it is
updated or rolled back it goes on serving."""


def is_serving(endpoint: Endpoint) -> bool:
    """Whether requests may be answered, as far as is known."""
    return endpoint.status not in NOT_SERVING


def pool_name(endpoint: str, variant: str) -> str:
    """The pool of a variant: `endpoint/<key>/<variant>`, of an HTTP endpoint `endpoint/<url>`."""
    return POOL_PREFIX + (f"{endpoint}/{variant}" if variant else endpoint)


def is_endpoint_pool(name: str) -> bool:
    """Whether a pool's units are an endpoint's concurrent requests."""
    return name.startswith(POOL_PREFIX)


def pool_parts(name: str) -> tuple[str, str]:
    """The key of the endpoint and the variant that a pool's name has: what `pool_name` made it of.

    SageMaker's names have no slash; URLs do, and no variants.
    """
    rest = name.removeprefix(POOL_PREFIX)
    if is_url(rest):
        return rest, ""
    key, _, variant = rest.partition("/")
    return key, variant


def is_url(name: str) -> bool:
    """Whether a model's name is a URL; schemes have no case (RFC 3986, section 3.1)."""
    return name.lower().startswith(("http://", "https://"))


def key_of(name: str, *, role: str | None = None, account: str = "") -> str:
    """The key of the endpoint that a request names.

    Args:
        name: of the endpoint, or the model's URL.
        role: IAM role ARN under which it is reached, whose account is the endpoint's.
        account: our own AWS account.
    """
    if is_url(name):
        return normal(name)
    owner = role.split(":")[4] if role is not None and role.count(":") >= _ARN_PARTS else ""
    return name if owner in ("", account) else f"{owner}:{name}"


def never_described(key: str) -> Endpoint:
    """What is known of an endpoint that nobody has described yet."""
    return Endpoint(key=key, http=is_url(key))
