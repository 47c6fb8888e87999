"""Answers for the resources of Batch that stand for the queue: queues, environments, policies and quota shares.

They are read-only: the queue's pools and settings say how it works.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trainmaster.client.api.errors import NotFound
from trainmaster.client.batch.answers import DEFAULT_SHARE, capacity_usage, milliseconds
from trainmaster.client.batch.names import queue_in
from trainmaster.client.batch.submission import JOB_TYPE

if TYPE_CHECKING:
    from trainmaster.client.api.client import ApiClient
    from trainmaster.client.batch.names import Arns
    from trainmaster.client.views.types import JobView, PoolView, ShareUseView

_FRONT = 100
"""Maximum of jobs at the front of a queue (Batch API, GetJobQueueSnapshot)."""
_TOP = 20
"""Maximum of shares in a snapshot's utilization (Batch API)."""
_HEALTHY = {"state": "ENABLED", "status": "VALID"}
_STRATEGIES = {"reserve": "RESERVE", "lend": "LEND", "lend-and-borrow": "LEND_AND_BORROW"}


@dataclass(frozen=True)
class Resources:
    """The names for which the queue answers, and the answers; methods raise ApiError.

    Attributes:
        api: client of the queue's API.
        queues: names of job queues, with the share that each stands for.
        environments: names of service environments.
        policies: names of scheduling policies.
        now: epoch seconds.
    """

    api: ApiClient
    queues: Mapping[str, str | None]
    environments: frozenset[str]
    policies: frozenset[str]
    now: Callable[[], float] = field(default=time.time)

    def has_queue(self, queue: str) -> bool:
        """Return whether a name or ARN, also of a quota share, is of one of the queues."""
        return queue_in(queue) in self.queues

    def has_environment(self, name: str) -> bool:
        """Return whether a name or ARN is of one of the service environments."""
        return name.rpartition("service-environment/")[2] in self.environments

    def has_policy(self, name: str) -> bool:
        """Return whether a name or ARN is of one of the scheduling policies."""
        return name.rpartition("scheduling-policy/")[2] in self.policies

    def queue_of(self, share: str) -> str:
        """Return the name of the queue that a job of this share is in: the share's own one, else the first."""
        return next((queue for queue, own in self.queues.items() if own == share), next(iter(self.queues)))

    def describe_queues(self, queues: Iterable[str], arns: Arns) -> list[dict[str, Any]]:
        """Return the entries of DescribeJobQueues."""
        environments = [arns.of_environment(name) for name in sorted(self.environments)]
        order = [{"order": number, "serviceEnvironment": arn} for number, arn in enumerate(environments, 1)]
        shown = {
            **_HEALTHY,
            "priority": 1,
            "computeEnvironmentOrder": [],
            "serviceEnvironmentOrder": order,
            "jobQueueType": JOB_TYPE,
            "jobStateTimeLimitActions": [],
            **({"schedulingPolicyArn": arns.of_policy(min(self.policies))} if self.policies else {}),
        }
        names = map(queue_in, queues)
        return [{"jobQueueName": name, "jobQueueArn": arns.of_queue(name), **shown} for name in names]

    def describe_environments(self, names: Iterable[str], arns: Arns) -> list[dict[str, Any]]:
        """Return the entries of DescribeServiceEnvironments: each has the caps of all pools."""
        limits = _limits({pool["name"]: pool["cap"] for pool in self.api.pools()["pools"]})
        shown = {"serviceEnvironmentType": JOB_TYPE, **_HEALTHY, "capacityLimits": limits}
        plain = (name.rpartition("service-environment/")[2] for name in names)
        return [
            {"serviceEnvironmentName": name, "serviceEnvironmentArn": arns.of_environment(name), **shown}
            for name in plain
        ]

    def describe_policies(self, names: Iterable[str], arns: Arns) -> list[dict[str, Any]]:
        """Return the entries of DescribeSchedulingPolicies."""
        plain = (name.rpartition("scheduling-policy/")[2] for name in names)
        policy = {"quotaSharePolicy": {"idleResourceAssignmentStrategy": "FIFO"}}
        return [{"name": name, "arn": arns.of_policy(name), **policy} for name in plain]

    def list_shares(self, queue: str, arns: Arns) -> list[dict[str, Any]]:
        """Return the entries of ListQuotaShares for a queue."""
        name = queue_in(queue)
        only = self.queues[name]
        shares = [share for share in self.api.shares()["shares"] if only in (None, share["name"])]
        return [self._share(name, share, arns) for share in shares]

    def describe_share(self, arn: str, arns: Arns) -> dict[str, Any]:
        """Return the answer of DescribeQuotaShare. Raises NotFound."""
        queue, name = queue_in(arn), arn.rpartition("/quota-share/")[2]
        shares = self.api.shares()["shares"]
        share = next((share for share in shares if share["name"] == name), None)
        if share is not None:
            return self._share(queue, share, arns)
        if _are_given(shares):
            raise NotFound(f"There is no share {name}.", hint="The settings have the shares: `trainmaster settings`.")
        caps = {pool["name"]: pool["cap"] for pool in self.api.pools()["pools"]}
        return _share_answer(queue, name, _limits(caps), "LEND_AND_BORROW", arns)

    def has_share(self, name: str) -> bool:
        """Return whether jobs can name this share: any, until the settings have shares."""
        shares = self.api.shares()["shares"]
        return not _are_given(shares) or any(share["name"] == name for share in shares)

    def snapshot(self, arns: Arns) -> dict[str, Any]:
        """Return the answer of GetJobQueueSnapshot. A job's position has no start, so its entry time stands for it."""
        now = round(self.now() * 1000)
        page, shares = self.api.queue(limit=_FRONT), self.api.shares()["shares"]
        front = {job["jobName"]: _front(job, arns) for job in page["jobs"]}
        by_share: dict[str, list[dict[str, Any]]] = {}
        for job in page["jobs"]:
            by_share.setdefault(job["share"], []).append(front[job["jobName"]])
        return {
            "frontOfQueue": {"jobs": list(front.values()), "lastUpdatedAt": now},
            "frontOfQuotaShares": {"quotaShares": by_share, "lastUpdatedAt": now},
            "queueUtilization": {**_utilization(page["pools"], shares), "lastUpdatedAt": now},
        }

    def _share(self, queue: str, share: ShareUseView, arns: Arns) -> dict[str, Any]:
        limits = _limits({part["pool"]: part["own"] for part in share["pools"]})
        return _share_answer(queue, share["name"], limits, _STRATEGIES[share["lending"]], arns)


def _share_answer(queue: str, name: str, limits: list[dict[str, Any]], strategy: str, arns: Arns) -> dict[str, Any]:
    borrows = {"borrowLimit": -1} if strategy == "LEND_AND_BORROW" else {}
    return {
        "quotaShareName": name,
        "quotaShareArn": arns.of_share(queue, name),
        "jobQueueArn": arns.of_queue(queue),
        "capacityLimits": limits,
        "resourceSharingConfiguration": {"strategy": strategy, **borrows},
        "preemptionConfiguration": {"inSharePreemption": "ENABLED"},
        **_HEALTHY,
    }


def _are_given(shares: Iterable[ShareUseView]) -> bool:
    """Return whether the settings have shares beside the default one."""
    return any(share["configured"] and share["name"] != DEFAULT_SHARE for share in shares)


def _limits(units: Mapping[str, int]) -> list[dict[str, Any]]:
    usage = capacity_usage(units)
    return [{"capacityUnit": each["capacityUnit"], "maxCapacity": int(each["quantity"])} for each in usage]


def _front(job: JobView, arns: Arns) -> dict[str, Any]:
    return {"jobArn": arns.of_job(job["jobName"]), "earliestTimeAtPosition": milliseconds(job["entryTime"])}


def _utilization(pools: Iterable[PoolView], shares: Iterable[ShareUseView]) -> dict[str, Any]:
    used = {share["name"]: _used(share) for share in shares}
    most = sorted(used, key=lambda name: -sum(each["quantity"] for each in used[name]))[:_TOP]
    active = sum(share["running"] > 0 for share in shares)
    top = [{"capacityUsage": used[name]} for name in most]
    by_identifier = [{"shareIdentifier": name, **usage} for name, usage in zip(most, top, strict=True)]
    by_name = [{"quotaShareName": name, **usage} for name, usage in zip(most, top, strict=True)]
    return {
        "totalCapacityUsage": capacity_usage({pool["name"]: pool["used"] for pool in pools}),
        "fairshareUtilization": {"activeShareCount": active, "topCapacityUtilization": by_identifier},
        "quotaShareUtilization": {"topCapacityUtilization": by_name},
    }


def _used(share: ShareUseView) -> list[dict[str, Any]]:
    return capacity_usage({part["pool"]: part["used"] for part in share["pools"]})
