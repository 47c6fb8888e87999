"""Warm pools: instances that stay after a job's end for a job like it (facts/sagemaker.md 2.1).

They count against the account's limit like a running job. It must not read a clock.
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
"""How long the same instances may serve one job after another (SDG/train-warm-pools)."""
MATCHED_RESOURCES = ("InstanceType", "InstanceCount", "VolumeSizeInGB", "VolumeKmsKeyId")
MATCHED_SWITCHES = ("EnableInterContainerTrafficEncryption", "EnableNetworkIsolation")


def matching_key(request: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """What must be equal for a job to reuse another's instances; None for jobs that have no part in this."""
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
    """The ended job whose kept instances this request would run on; the one that ended first."""
    wanted = matching_key(request)
    if wanted is None:
        return None
    return next((old for old in state.pools.values() if matching_key(old.request) == wanted), None)


def reuse(state: AccountState, old: TrainingJob, job: TrainingJob, now: datetime) -> None:
    """The instances of an ended job become the new job's, with what they count for."""
    state.pools.pop(old.name)
    job.instances, job.quota_units, job.chain_start = old.instances, old.quota_units, old.chain_start
    state.quotas.release_warm(old.warm_quota_units)
    old.instances, old.quota_units, old.warm_quota_units = {}, {}, {}
    old.warm_pool, old.reused_by, old.pool_ended = WarmPool.REUSED, job.name, now
    old.last_modified = now


def keep_or_release(state: AccountState, job: TrainingJob, now: datetime) -> None:
    """At a job's end its instances stay as a warm pool where it asked for that, else everything is given back.

    A job that was stopped leaves one as well: that is why preempting must set the keep-alive to 0 first.
    """
    if job.keep_alive and job.instances and job.started:
        job.warm_pool = WarmPool.AVAILABLE
        state.pools[job.name] = job
        return _schedule_expiry(state, job)
    if job.warm_pool:
        job.warm_pool, job.pool_ended = WarmPool.TERMINATED, now
    return state.release_all(job)


def change_keep_alive(state: AccountState, job: TrainingJob, seconds: int, now: datetime) -> None:
    """Keep a job's instances for another time than was asked; 0 ends its warm pool.

    Raises `ApiError`: the job has ended and left no pool, or the quota for warm pools has no room.
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
    """The job's instances will be kept. Raises `ApiError` where the quota for that has no room."""
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
