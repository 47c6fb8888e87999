"""What commands print of elastic jobs: sizes, resizes, members, and the rendezvous of their nodes.

It must not ask the API or decide anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainmaster.cli.output.times import later, stamp, told, with_moments
from trainmaster.images.cli.requests import done_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from trainmaster.client.views.elastic import ElasticView, NodeView, RendezvousView
    from trainmaster.client.views.jobs import JobView

_BY = {
    "restart": "by a restart",
    "members": "by members that join and leave",
    "custom": "by",
}


def size_of(job: JobView) -> str:
    """What an elastic job has, and may have: `2 (1-4)`, `2 -> 4 (2,4,8)`; `(1-4)` while it holds nothing.

    Of an image job how many of its regions are done.
    """
    elastic = job.get("elastic")
    if elastic is None:
        return done_of(job)
    size, resizing = elastic["size"], elastic["resizing"]
    now = "" if size is None else str(size) if resizing is None else f"{resizing['from']} -> {resizing['to']}"
    return f"{now} ({_bounds(elastic)})".strip()


def size_facts(job: JobView, now: datetime) -> list[tuple[str, str]]:
    """Names and values about an elastic job's size; none of any other."""
    elastic = job.get("elastic")
    if elastic is None:
        return []
    resizing, since = elastic["resizing"], elastic["sizedAt"]
    lacks = ""
    if elastic["faultySince"]:
        until = later(elastic["faultySince"], elastic["faultyScaleDownTimeoutSeconds"])
        begun = told(elastic["faultySince"], now)
        lacks = f"{elastic['wanted']} wanted, since {begun}; waits for a replacement until {told(until, now)}"
    return [
        ("Size", size_of(job) + (f", since {told(since, now)}" if since and not resizing else "")),
        ("Resized", f"{_BY[elastic['hook']]} {elastic['target'] or ''}".rstrip() + _times(elastic["resizes"])),
        ("Resizing", with_moments(resizing["message"], now) if resizing else ""),
        ("Lacks A Member", lacks),
    ]


def members_rows(elastic: ElasticView) -> list[list[str]]:
    """The members of a job, a row each: name, state, since when it was wanted and at work."""
    return [
        [member["trainingJobName"], member["state"], stamp(member["createdAt"]), stamp(member["startedAt"])]
        for member in elastic["members"]
    ]


MEMBERS_HEADERS = ("Member", "State", "Created (UTC)", "At Work (UTC)")
NODES_HEADERS = ("Rank", "Node", "Role", "Heartbeats")


def nodes_rows(nodes: Iterable[NodeView]) -> list[list[str]]:
    """The nodes of a rendezvous, a row each."""
    return [
        [
            "" if node["rank"] is None else str(node["rank"]),
            f"{node['trainingJobName']}/{node['host']}",
            node["role"],
            str(node["beats"]),
        ]
        for node in nodes
    ]


def rendezvous_line(view: RendezvousView) -> str:
    """Where a rendezvous stands, in a line; empty where no node has come."""
    if view["trouble"] is not None:
        return f"Rendezvous {view['run']}: {view['trouble']}"
    if view["round"] is None:
        return ""
    stands = "formed" if view["complete"] else "forming"
    if view["closed"]:
        stands = "closed" + (f": {view['reason']}" if view["reason"] else "")
    restarts = f", {view['restarts']} restarts" if view["restarts"] else ""
    return f"Rendezvous {view['run']}: round {view['round']}, {stands}{restarts}"


def _bounds(elastic: ElasticView) -> str:
    if elastic["instanceValues"]:
        return ",".join(map(str, elastic["instanceValues"]))
    step = elastic["instanceStep"] or 1
    return f"{elastic['minInstances']}-{elastic['maxInstances']}" + (f" by {step}" if step > 1 else "")


def _times(resizes: int) -> str:
    """How often, as the API counts it: a job that was preempted begins anew."""
    times = "once" if resizes == 1 else f"{resizes} times"
    return f", {times} since it last left the queue" if resizes else ""
