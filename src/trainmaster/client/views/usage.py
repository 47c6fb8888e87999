"""Adds up the parts of a usage report."""

from __future__ import annotations

from heapq import merge
from typing import TYPE_CHECKING, Any, cast

from trainmaster.domain.percentile import percentile

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainmaster.client.views.types import UsageGroupView, UsageView


def joined(first: UsageView, second: UsageView) -> UsageView:
    """Return two parts of one report as one part, which continues where the second ends."""
    groups = {group["name"] or "": group for group in first["groups"]}
    for group in second["groups"]:
        name = group["name"] or ""
        groups[name] = _sum(groups[name], group) if name in groups else group
    return {
        **second,
        "at": first["at"],
        "jobsRead": first["jobsRead"] + second["jobsRead"],
        "total": _sum(first["total"], second["total"]),
        "groups": [groups[name] for name in _in_order(groups, second["by"])],
    }


def _in_order(names: Iterable[str], by: str) -> list[str]:
    """Return names as the API orders them: the highest priority first."""
    return sorted(names, key=lambda priority: -int(priority)) if by == "priority" else sorted(names)


def _sum(one: UsageGroupView, other: UsageGroupView) -> UsageGroupView:
    ours: dict[str, Any] = {**one}
    theirs: dict[str, Any] = {**other}
    waits = list(merge(one["waits"], other["waits"]))
    sums = {name: ours[name] + theirs[name] for name in ours if isinstance(theirs.get(name), int | float)}
    ends = {"waitP50Seconds": percentile(waits, 0.5), "waitP95Seconds": percentile(waits, 0.95)}
    return cast("UsageGroupView", {**ours, **sums, "waits": waits, **ends})
