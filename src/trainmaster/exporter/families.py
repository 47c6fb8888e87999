"""Metrics of the queue's state in Prometheus's terms, from answers of the API.

Names and units follow Prometheus's conventions (prometheus.io, "Metric and label naming"): base units, times in seconds
since 1970, ratios from 0 to 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from prometheus_client.core import GaugeMetricFamily, Metric

from trainmaster.domain.compat import parse_iso

PREFIX: Final = "trainmaster_"
_POOL_STATES: Final = ("used", "free", "held", "external", "warm", "stopping")
_SHARE_STATES: Final = ("own", "used", "borrowed", "lent")
_Rows = Iterable[tuple[tuple[str, ...], float]]


@dataclass(frozen=True, slots=True)
class Reading:
    """Answers of the API that belong together.

    Attributes:
        pools: of `GET /pools`.
        shares: of `GET /shares`.
        queue: of `GET /queue`: its first page.
        version: the release of the service; None if it did not tell.
    """

    pools: Mapping[str, Any]
    shares: Mapping[str, Any]
    queue: Mapping[str, Any]
    version: str | None


def up(*, answers: bool) -> Metric:
    """Return the metric of the exporter itself."""
    return _gauge("up", "1 if the queue's API answered the last poll, else 0.", (), [((), float(answers))])


def families(reading: Reading, now: datetime) -> Iterator[Metric]:
    """Yield all metrics of a reading."""
    yield _gauge("info", "1; the label has the release of the service.", ("version",), [((reading.version or "",), 1)])
    yield from _of_pools(reading.pools["pools"])
    yield from _of_shares(reading.shares["shares"])
    yield from _of_jobs(reading.queue["jobs"], now)


def _of_pools(pools: Iterable[Mapping[str, Any]]) -> Iterator[Metric]:
    named = [(pool["name"], pool) for pool in pools]
    yield _gauge(
        "pool_cap",
        "Units that jobs may hold in the pool.",
        ("pool", "kind"),
        [((name, pool["kind"]), pool["cap"]) for name, pool in named],
    )
    yield _gauge(
        "pool_units",
        "Units of the pool by state: held for a waiting job, used by other training jobs (external), and so on; "
        "stopping units are also used.",
        ("pool", "state"),
        [((name, state), pool[state]) for name, pool in named for state in _POOL_STATES],
    )
    yield _gauge(
        "pool_open",
        "1 if jobs start in the pool, 0 while it drains.",
        ("pool",),
        [((name,), float(pool["state"] == "in use")) for name, pool in named],
    )
    yield _gauge(
        "pool_waiting_jobs",
        "Waiting jobs that could run in the pool, as far as the API counts them.",
        ("pool",),
        [((name,), pool["waiting"]) for name, pool in named],
    )
    yield _gauge(
        "pool_waiting_units",
        "Units that these jobs need.",
        ("pool",),
        [((name,), pool["waitingUnits"]) for name, pool in named],
    )


def _of_shares(shares: Iterable[Mapping[str, Any]]) -> Iterator[Metric]:
    named = [(share["name"], share) for share in shares]
    yield _gauge(
        "share_jobs",
        "Jobs of the share by state.",
        ("share", "state"),
        [((name, state), share[state]) for name, share in named for state in ("running", "waiting")],
    )
    yield _gauge(
        "share_units",
        "Units of a pool by share: owned, used, borrowed, and lent to others.",
        ("share", "pool", "state"),
        [
            ((name, part["pool"], state), part[state])
            for name, share in named
            for part in share["pools"]
            for state in _SHARE_STATES
        ],
    )
    yield _gauge(
        "share_usage_gpu_hours",
        "Usage of the share, decayed with the half-life of the settings.",
        ("share",),
        [((name,), share["fadedGpuHours"]) for name, share in named],
    )
    budgets = [(name, share["budget"]) for name, share in named if share["budget"] is not None]
    yield _gauge(
        "budget_used_ratio",
        "Used part of the share's budget: 1 is all of it.",
        ("share",),
        [((name,), _used(budget)) for name, budget in budgets],
    )
    yield _gauge(
        "budget_renews_timestamp_seconds",
        "When the share's budget renews.",
        ("share",),
        [((name,), _seconds(budget["periodEnd"])) for name, budget in budgets],
    )


def _of_jobs(jobs: Iterable[Mapping[str, Any]], now: datetime) -> Iterator[Metric]:
    """Yield the metrics of waiting jobs."""
    jobs = list(jobs)
    reasons = Counter(job["reason"]["type"] if job["reason"] else "" for job in jobs)
    yield _gauge(
        "waiting_jobs",
        "Waiting jobs by the reason for which they wait, of the first 100.",
        ("reason",),
        [((reason,), count) for reason, count in sorted(reasons.items())],
    )
    oldest: dict[str, float] = {}
    for job in jobs:
        oldest[job["share"]] = max(oldest.get(job["share"], 0.0), now.timestamp() - _waits_since(job))
    yield _gauge(
        "oldest_wait_seconds",
        "Wait of the share's oldest waiting job, of the first 100.",
        ("share",),
        [((share,), seconds) for share, seconds in sorted(oldest.items())],
    )
    starts: dict[str, float] = {}
    for pool, start in ((pool, job["estimatedStart"]) for job in jobs for pool in job["pools"]):
        if start is not None:
            starts[pool] = min(starts.get(pool, float("inf")), _seconds(start))
    yield _gauge(
        "next_start_timestamp_seconds",
        "Earliest estimated start of a job that waits for the pool.",
        ("pool",),
        [((pool,), at) for pool, at in sorted(starts.items())],
    )


def _gauge(name: str, text: str, labels: tuple[str, ...], rows: _Rows) -> Metric:
    family = GaugeMetricFamily(PREFIX + name, text, labels=labels)
    for values, value in rows:
        family.add_metric(list(values), float(value))
    return family


def _used(budget: Mapping[str, Any]) -> float:
    """Return the used part of the bound that is nearer to its end."""
    parts = [(budget["gpuHoursUsed"], budget["gpuHours"]), (budget["dollarsUsed"], budget["dollars"])]
    return max((used / bound if bound else 1.0 for used, bound in parts if bound is not None), default=0.0)


def _waits_since(job: Mapping[str, Any]) -> float:
    """Return when the job entered the queue, or when its last attempt ended."""
    ended = [attempt["endedAt"] for attempt in job["attempts"] if attempt.get("endedAt")]
    return _seconds(ended[-1] if ended else job["entryTime"])


def _seconds(text: str) -> float:
    return parse_iso(text).timestamp()
