"""Warm pools: instances that SageMaker keeps for a while after a job, for one that asks for exactly the same.

They take units of a pool like a job does. It must not decide who gets them: that is `planner/`.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from trainmaster.domain.capacity.units import Units
from trainmaster.domain.jobs.attempt import Outcome
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.shares.charging import ended_by

Object = Mapping[str, object]

MAX_KEEP_ALIVE = timedelta(hours=6)
"""The most that `KeepAlivePeriodInSeconds` takes (ResourceConfig, API reference)."""
_CONFIG = ("VolumeSizeInGB", "VolumeKmsKeyId")
_SWITCHES = ("EnableInterContainerTrafficEncryption", "EnableNetworkIsolation")
_NETWORK = ("SecurityGroupIds", "Subnets")
_FIT_BYTES = 6


@dataclass(frozen=True, slots=True)
class WarmPool:
    """One warm pool.

    Attributes:
        training_job_name: the SageMaker name of the attempt that left it.
        units: what it keeps, by pool name.
        warm_pool_key: digest of what SageMaker compares besides the units; a job with the same may use it.
        until: when it ends by itself.
        priority: of the job that left it; a job of lower priority does not end it.
        used_by: the SageMaker name of the attempt that was started on it, until SageMaker has said so.
        ending_since: when it was decided that it ends; its capacity is free only once SageMaker has said so.
    """

    training_job_name: str
    units: Units
    warm_pool_key: str
    until: datetime
    priority: int = 0
    used_by: str | None = None
    ending_since: datetime | None = None


def warm_pool_key_of(request: Object, *, queue_selects_pool: bool = False) -> str:
    """Digest of what SageMaker compares besides type and count; "" for a request that no warm pool can serve.

    The fields are those of the SageMaker developer guide, "Train using SageMaker managed warm pools" (matching
    training jobs). Session tags are those of whoever calls CreateTrainingJob, here always the manager.

    Args:
        request: a CreateTrainingJob request.
        queue_selects_pool: whether the queue chooses the pool, and with it the type and whether the job is a spot job.
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
    """The warm pool that a change of a job leaves behind; a store writes it in the very commit that ends the attempt.

    Where the queue had the attempt stopped, for another job, for its user, or to go on with another size, its pool is
    to end as well: SageMaker would give it to none but a job of the same number of instances.
    """
    attempt, ran = ended_by(before, after), before.attempt
    if attempt is None or attempt.warm_until is None or ran is None:
        return None
    stopped = attempt.freed_for is not None or attempt.outcome is Outcome.RESIZED or after.stop_requested
    return WarmPool(
        training_job_name=attempt.training_job_name,
        units=dict(before.units) if ran.own_size == ran.size else dict.fromkeys(before.units, ran.own_size),
        warm_pool_key=after.warm_pool_key,
        until=attempt.warm_until,
        priority=after.priority,
        ending_since=attempt.ended_at if stopped else None,
    )


def counting(warm: Iterable[WarmPool], active: Iterable[Job]) -> tuple[WarmPool, ...]:
    """The warm pools whose units count beside those of jobs: all but those that an active attempt runs on."""
    running = {job.attempt.training_job_name for job in active if job.attempt is not None}
    return tuple(pool for pool in warm if pool.used_by not in running)


def _part(request: Object, key: str) -> Object:
    value = request.get(key)
    return value if isinstance(value, Mapping) else {}


def _set(names: object) -> list[str]:
    return sorted(map(str, names)) if isinstance(names, list | tuple) else []
