"""Reads the document that `trainmaster.client.replay` collects: pools and jobs as the API describes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from trainmaster.domain.capacity.catalogue import Catalogue
from trainmaster.domain.capacity.units import Kind, PlanStatus, Pool, is_service_pool
from trainmaster.domain.compat import parse_iso
from trainmaster.domain.policy.draft import checked_policy
from trainmaster.domain.policy.settings import Policy
from trainmaster.local.replay.drafts.jobs import PastJob, past_jobs
from trainmaster.local.replay.drafts.requests import replayed_plan

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Week:
    """The beginning of a replay.

    Attributes:
        since: the beginning of the period.
        at: its end, the time at which the queue was read.
        pools: the pools by name, with the caps that the account's quotas leave them.
        catalogue: prices of the instance types of the pools.
        jobs: the jobs, in order of arrival.
        unfit: number of jobs that cannot be submitted to these pools.
    """

    since: datetime
    at: datetime
    pools: Mapping[str, Pool]
    catalogue: Catalogue
    jobs: tuple[PastJob, ...]
    unfit: int


def week_of(document: Document) -> Week:
    """Return the period that a document describes."""
    since, at = parse_iso(document["since"]), parse_iso(document["at"])
    views = [view for view in document["pools"] if _is_replayed(view)]
    pools = {view["name"]: _with_quota(_pool(view), view["quota"]) for view in views}
    prices = {view["instanceType"]: view["onDemandPrice"] for view in views if view["onDemandPrice"]}
    catalogue = Catalogue(prices=prices)
    jobs, unfit = past_jobs(document["jobs"], pools, catalogue, since, at)
    return Week(since=since, at=at, pools=pools, catalogue=catalogue, jobs=jobs, unfit=unfit)


def policies_of(document: Document) -> tuple[Policy, Policy]:
    """Return the settings in force and those of the draft. Raises `InvalidRequest` for a wrong draft.

    Quotas of pools of services are dropped: their jobs are not replayed.
    """
    pools = {view["name"]: _pool(view) for view in document["pools"] if not is_service_pool(view["name"])}
    in_force = checked_policy(_without_services(document["settings"]), pools)
    deployed = Policy(reservation_timeout=in_force.reservation_timeout)
    return in_force, checked_policy(_without_services(document["draft"]), pools, deployed)


def _is_replayed(view: Document) -> bool:
    """Return whether a pool exists from the beginning; the manager makes its own pools again."""
    return not is_service_pool(view["name"]) and not view["madeFor"]


def _pool(view: Document) -> Pool:
    """Return the pool of a view, with the resources of its instances."""
    setting, kind = view["setting"], Kind(view["kind"])
    price = view["price"] or (view["onDemandPrice"] if kind is Kind.ON_DEMAND else 0.0)
    return Pool(
        view["name"],
        view["cap"],
        count_external=False,
        type_="" if view["name"] == view["instanceType"] else view["instanceType"],
        kind=kind,
        plan_arn=replayed_plan(view["trainingPlanArn"]),
        plan_status=_maybe(PlanStatus, view["planStatus"]),
        starts_at=_maybe(parse_iso, view["startsAt"]),
        ends_at=_maybe(parse_iso, view["endsAt"]),
        price=price,
        accelerators_per_unit=view["accelerators"],
        draining=bool(setting.get("draining")),
        vcpus=view["vcpus"],
        memory_gib=view["memoryGib"],
        accelerator=view["accelerator"] or "",
        accelerator_memory_gib=view["acceleratorMemoryGib"],
    )


def _maybe(read: Any, value: Any) -> Any:
    return None if value is None else read(value)


def _with_quota(pool: Pool, quota: int | None) -> Pool:
    return pool if quota is None else replace(pool, cap=min(pool.cap, quota))


_BY_POOL = frozenset({"nominal", "lends", "borrows", "max", "maxPerUser"})


def _without_services(document: Document) -> dict[str, Any]:
    """Return a settings document without the pools of services; parts of a wrong form stay, to be refused."""
    shares = document.get("shares")
    if not isinstance(shares, Mapping):
        return dict(document)
    return {**document, "shares": {name: _share(share) for name, share in shares.items()}}


def _share(share: Any) -> Any:
    if not isinstance(share, Mapping):
        return share
    return {name: _units(value) if name in _BY_POOL else value for name, value in share.items()}


def _units(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {name: count for name, count in value.items() if not is_service_pool(name)}
