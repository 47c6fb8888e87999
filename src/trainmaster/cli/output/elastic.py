"""Formats elastic jobs: sizes, resizes, members, and the rendezvous of their nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainmaster.cli.kinds import kind_of_job
from trainmaster.cli.output.times import add_seconds, format_moment, format_moments, timestamp
from trainmaster.client.views.moments import zone_name

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from trainmaster.client.views.types import ElasticView, JobView, NodeView, RendezvousView, SizeSpeedView

_HOOKS = {
    "restart": "by restart",
    "members": "by adding and removing members",
    "custom": "by",
}


def size_text(job: JobView) -> str:
    """Return the size and bounds of an elastic job: `2 (1-4)`, `2 -> 4 (2,4,8)`, or `(1-4)` if it holds nothing.

    For a job of another kind than training, return its progress.
    """
    elastic = job.get("elastic")
    if elastic is None:
        kind = kind_of_job(job)
        return "" if kind is None else kind.progress(job)
    size, resizing = elastic["size"], elastic["resizing"]
    now = "" if size is None else str(size) if resizing is None else f"{resizing['from']} -> {resizing['to']}"
    return f"{now} ({_bounds(elastic)})".strip()


def size_facts(job: JobView, now: datetime) -> list[tuple[str, str]]:
    """Return names and values about an elastic job's size; empty for other jobs."""
    elastic = job.get("elastic")
    if elastic is None:
        return []
    resizing, since = elastic["resizing"], elastic["sizedAt"]
    missing = ""
    if elastic["faultySince"]:
        until = add_seconds(elastic["faultySince"], elastic["faultyScaleDownTimeoutSeconds"])
        since_text, deadline = (format_moment(moment, now) for moment in (elastic["faultySince"], until))
        missing = f"{elastic['wanted']} wanted since {since_text}; waiting for a replacement until {deadline}"
    return [
        ("Size", size_text(job) + (f", since {format_moment(since, now)}" if since and not resizing else "")),
        ("Resized", f"{_HOOKS[elastic['hook']]} {elastic['target'] or ''}".rstrip() + _times(elastic["resizes"])),
        ("Resizing", format_moments(resizing["message"], now) if resizing else ""),
        ("Missing Member", missing),
        ("Speed", _speeds(elastic, now)),
        ("Scaling", format_moments(scaling["message"], now) if (scaling := elastic.get("scaling")) else ""),
    ]


def _speeds(elastic: ElasticView, now: datetime) -> str:
    """Return the reported speeds: `3.8/s with 1 instance (2 reports), last 2026-11-30 12:04:10 UTC (4 minutes ago)`."""
    sizes = scaling["sizes"] if (scaling := elastic.get("scaling")) else []
    return "; ".join(_speed(size, now) for size in sizes if size["perSecond"] is not None)


def _speed(size: SizeSpeedView, now: datetime) -> str:
    from trainmaster.domain.elastic.scaling import MAX_REPORTS

    count, at = size.get("reports"), size.get("measuredAt")
    with_ = f"{size['perSecond']:.4g}/s with {size['instances']} instance{'' if size['instances'] == 1 else 's'}"
    if not count:  # an older service tells no more
        return with_
    told = f"{count} report{'' if count == 1 else 's'}" if count < MAX_REPORTS else f"{count} or more reports"
    when = f", {'last' if count < MAX_REPORTS else 'the last new one'} {format_moment(at, now)}" if at else ""
    return f"{with_} ({told}){when}"


def members_rows(elastic: ElasticView, now: datetime) -> list[list[str]]:
    """Return a row per member: name, state, created, started."""
    return [
        [
            member["trainingJobName"],
            member["state"],
            timestamp(member["createdAt"], now),
            timestamp(member["startedAt"], now),
        ]
        for member in elastic["members"]
    ]


NODES_HEADERS = ("Rank", "Node", "Role")


def members_headers(now: datetime) -> tuple[str, ...]:
    """Return the headings of the rows of members."""
    zone = zone_name(now)
    return ("Member", "State", f"Created ({zone})", f"At Work ({zone})")


def nodes_rows(nodes: Iterable[NodeView]) -> list[list[str]]:
    """Return a row per node of a rendezvous."""
    return [
        [
            "" if node["rank"] is None else str(node["rank"]),
            f"{node['trainingJobName']}/{node['host']}",
            node["role"],
        ]
        for node in nodes
    ]


def rendezvous_line(view: RendezvousView) -> str:
    """Return the state of a rendezvous in a line; empty if no node has joined."""
    if view["problem"] is not None:
        return f"Rendezvous {view['run']}: {view['problem']}"
    if view["round"] is None:
        return ""
    status = "formed" if view["complete"] else "forming"
    if view["closed"]:
        status = "closed" + (f": {view['reason']}" if view["reason"] else "")
    restarts = f", {view['restarts']} restarts" if view["restarts"] else ""
    return f"Rendezvous {view['run']}: round {view['round']}, {status}{restarts}"


def _bounds(elastic: ElasticView) -> str:
    if values := elastic["instanceValues"]:
        return ",".join(str(each) for each in values if elastic["minInstances"] <= each <= elastic["maxInstances"])
    step = elastic["instanceStep"] or 1
    return f"{elastic['minInstances']}-{elastic['maxInstances']}" + (f" by {step}" if step > 1 else "")


def _times(resizes: int) -> str:
    """Return how often the job was resized, as the API counts: from its last start in the queue."""
    times = "once" if resizes == 1 else f"{resizes} times"
    return f", {times} since it last left the queue" if resizes else ""
