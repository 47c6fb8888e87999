"""Warm pools: instances kept after a job's end for a matching job.

They count against the account's quota like a running job ("SageMaker AI Managed Warm Pools", SageMaker developer
guide).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from trainmaster.local.simulator.service.demand import Market, market
from trainmaster.local.simulator.service.job import TrainingJob, WarmPool
from trainmaster.local.simulator.service.state import AccountState
from trainmaster.local.simulator.wire.errors import invalid

MAX_CHAIN_LENGTH = timedelta(days=28)
"""Maximum time that the same instances serve consecutive jobs ("SageMaker AI Managed Warm Pools")."""
MATCHED_RESOURCES = ("InstanceType", "InstanceCount", "VolumeSizeInGB", "VolumeKmsKeyId")
MATCHED_SWITCHES = ("EnableInterContainerTrafficEncryption", "EnableNetworkIsolation")


def matching_key(request: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """Return the members that a job must match to reuse instances; None if it cannot use a warm pool."""
    config = request.get("ResourceConfig", {})
    if request.get("EnableManagedSpotTraining") or "InstanceType" not in config:
        return None
    network = request.get("VpcConfig", {})
    return (
        market(request),
        request["RoleArn"],
        *(config.get(name) for name in MATCHED_RESOURCES),
        *(bool(request.get(name)) for name in MATCHED_SWITCHES),
        *(tuple(sorted(network.get(name, ()))) for name in ("SecurityGroupIds", "Subnets")),
        bool(request.get("SessionChainingConfig", {}).get("EnableSessionTagChaining")),
    )


def find_pool(state: AccountState, request: Mapping[str, Any]) -> TrainingJob | None:
    """Return the ended job whose warm pool matches the request; the first to have ended."""
    wanted = matching_key(request)
    if wanted is None:
        return None
    return next((old for old in state.pools.values() if matching_key(old.request) == wanted), None)


def reuse(state: AccountState, old: TrainingJob, job: TrainingJob, now: datetime) -> None:
    """Transfer the instances of an ended job, with their quotas, to a new job."""
    state.pools.pop(old.name)
    job.instances, job.quota_units, job.chain_start = old.instances, old.quota_units, old.chain_start
    state.quotas.release_warm(old.warm_quota_units)
    old.instances, old.quota_units, old.warm_quota_units = {}, {}, {}
    old.warm_pool, old.reused_by, old.pool_ended = WarmPool.REUSED, job.name, now
    old.last_modified = now


def keep_or_release(state: AccountState, job: TrainingJob, now: datetime) -> None:
    """Keep the instances of an ended job in a warm pool if it asked for one, else release everything.

    A stopped job leaves a warm pool as well, so the queue sets the keep-alive period to 0 before it preempts.
    """
    if job.keep_alive and job.instances and job.started:
        job.warm_pool = WarmPool.AVAILABLE
        state.pools[job.name] = job
        return _schedule_expiry(state, job)
    if job.warm_pool:
        job.warm_pool, job.pool_ended = WarmPool.TERMINATED, now
    return state.release_all(job)


def change_keep_alive(state: AccountState, job: TrainingJob, seconds: int, now: datetime) -> None:
    """Change the keep-alive period of a job's instances; 0 ends its warm pool.

    Raises `ApiError` if the job has ended without a pool, or the warm pool quota has no room.
    """
    if job.terminal and job.warm_pool is not WarmPool.AVAILABLE:
        raise invalid(
            f"The request was rejected because the training job is in status {job.status} "
            "and has no warm pool that is available."
        )
    if seconds and (job.market == Market.SPOT or "InstanceGroups" in job.request.get("ResourceConfig", {})):
        raise invalid("Warm pools are not available to managed spot training and heterogeneous clusters.")
    if seconds and not job.keep_alive:
        charge_warm_pool(state, job)
    job.keep_alive, job.last_modified = seconds, now
    if job.terminal:
        return _end_expired(state, job, now)
    return None


def charge_warm_pool(state: AccountState, job: TrainingJob) -> None:
    """Charge the job's instances to the warm pool quota. Raises `ApiError` if it has no room."""
    state.quotas.check_warm(job.quota_units)
    state.quotas.charge_warm(job.quota_units)
    job.warm_quota_units, job.warm_pool = job.quota_units, WarmPool.IN_USE


def _schedule_expiry(state: AccountState, job: TrainingJob) -> None:
    state.timers.at(_expiry(job), lambda time: _end_expired(state, job, time))


def _expiry(job: TrainingJob) -> datetime:
    ended, chain_start = job.ended or job.created, job.chain_start or job.created
    return min(ended + timedelta(seconds=job.keep_alive), max(ended, chain_start + MAX_CHAIN_LENGTH))


def _end_expired(state: AccountState, job: TrainingJob, now: datetime) -> None:
    if job.warm_pool is not WarmPool.AVAILABLE:
        return
    if now < _expiry(job):
        _schedule_expiry(state, job)
        return
    state.pools.pop(job.name)
    job.warm_pool, job.pool_ended, job.last_modified = WarmPool.TERMINATED, now, now
    state.release_all(job)
