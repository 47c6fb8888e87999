"""Warm pools: instances that SageMaker keeps for a time after a job, for a job with a matching request.

Like jobs, they hold units of a pool. The planner decides which jobs use them.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from trainmaster.domain.capacity.units import Units
from trainmaster.domain.jobs.attempt import Attempt, Outcome
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.shares.charging import ended_by

Object = Mapping[str, object]

MAX_KEEP_ALIVE = timedelta(hours=6)
"""Maximum of `KeepAlivePeriodInSeconds` (ResourceConfig, API reference)."""
_CONFIG = ("VolumeSizeInGB", "VolumeKmsKeyId")
_SWITCHES = ("EnableInterContainerTrafficEncryption", "EnableNetworkIsolation")
_NETWORK = ("SecurityGroupIds", "Subnets")
_FIT_BYTES = 6


@dataclass(frozen=True, slots=True)
class WarmPool:
    """One warm pool.

    Attributes:
        training_job_name: the training job that left it.
        units: the units that it holds, by pool name.
        warm_pool_key: digest of what SageMaker compares besides the units; a job with an equal one may use it.
        until: when it ends by itself.
        priority: of the job that left it; a job of lower priority does not end it.
        used_by: the training job that was started on it, until SageMaker confirms that.
        unused_since: when that training job was first seen to have ended while SageMaker still reported the warm
            pool as Available. It may be behind, so the warm pool serves another only after `VISIBLE_AFTER`.
        ending_since: when its end was decided; its units are free only once SageMaker confirms it.
        unknown: what a newer release stored with it, in the store's own form; kept as it is.
    """

    training_job_name: str
    units: Units
    warm_pool_key: str
    until: datetime
    priority: int = 0
    used_by: str | None = None
    unused_since: datetime | None = None
    ending_since: datetime | None = None
    unknown: Mapping[str, Any] = field(default_factory=dict)


def warm_pool_key_of(request: Object, *, queue_selects_pool: bool = False) -> str:
    """Return a digest of what SageMaker compares besides type and count; "" if no warm pool can serve the request.

    The fields are those of the SageMaker developer guide, "Train using SageMaker managed warm pools" (matching
    training jobs). Session tags are those of the caller of CreateTrainingJob, here always the manager.

    Args:
        request: a CreateTrainingJob request.
        queue_selects_pool: whether the queue chooses the pool, and with it the type and the use of spot instances.
    """
    config = request.get("ResourceConfig")
    if not isinstance(config, Mapping) or not (queue_selects_pool or config.get("InstanceType")):
        return ""
    if request.get("EnableManagedSpotTraining") is True and not queue_selects_pool:
        return ""
    network, chaining = _part(request, "VpcConfig"), _part(request, "SessionChainingConfig")
    compared = [
        request.get("RoleArn"),
        *(config.get(name) for name in _CONFIG),
        *(bool(request.get(name)) for name in _SWITCHES),
        *(_set(network.get(name)) for name in _NETWORK),
        bool(chaining.get("EnableSessionTagChaining")),
    ]
    digest = hashlib.sha256(json.dumps(compared, default=str).encode()).digest()
    return base64.urlsafe_b64encode(digest[:_FIT_BYTES]).decode()


def left_by(before: Job, after: Job) -> WarmPool | None:
    """Return the warm pool that a change of a job leaves; a store writes it in the commit that ends the attempt.

    If the queue stopped the attempt, the warm pool is to end as well, since only a job with as many instances could
    use it.
    """
    attempt, ran = ended_by(before, after), before.attempt
    if attempt is None and ran is not None:
        return _left_by_base(ran, after)
    if attempt is None or attempt.warm_until is None or ran is None:
        return None
    stopped = attempt.freed_for is not None or attempt.outcome is Outcome.RESIZED or after.stop_requested
    return WarmPool(
        training_job_name=attempt.base_name,
        units=dict(before.units) if ran.own_size == ran.size else dict.fromkeys(before.units, ran.own_size),
        warm_pool_key=after.warm_pool_key,
        until=attempt.warm_until,
        priority=after.priority,
        ending_since=attempt.ended_at if stopped else None,
    )


def _left_by_base(before: Attempt, after: Job) -> WarmPool | None:
    """Return the warm pool of a base that SageMaker has lost while its attempt goes on with its members."""
    attempt = after.attempt
    if attempt is None or attempt.warm_until is None or attempt.successor == before.successor:
        return None
    return WarmPool(
        training_job_name=before.base_name,
        units=dict.fromkeys(before.units, before.base_size),
        warm_pool_key=after.warm_pool_key,
        until=attempt.warm_until,
        priority=after.priority,
    )


def counting(warm: Iterable[WarmPool], active: Iterable[Job]) -> tuple[WarmPool, ...]:
    """Return the warm pools whose units count beside those of jobs: all except those that an active attempt uses."""
    pools = tuple(warm)
    if not pools:
        return pools
    running = {job.attempt.training_job_name for job in active if job.attempt is not None}
    return tuple(pool for pool in pools if pool.used_by not in running)


def _part(request: Object, key: str) -> Object:
    value = request.get(key)
    return value if isinstance(value, Mapping) else {}


def _set(names: object) -> list[str]:
    return sorted(map(str, names)) if isinstance(names, list | tuple) else []
