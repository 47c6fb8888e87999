"""Pools as the API tells them: each figure under its own name, and each setting as it was sent."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import G5, NOW, P5, a_job, a_pool, a_preempting_job, a_reservation, a_running_job, a_snapshot, at
from trainmaster.domain.capacity.catalogue import Catalogue
from trainmaster.domain.capacity.resources import InstanceType
from trainmaster.domain.capacity.units import Kind, Pool
from trainmaster.domain.capacity.warm_pools import WarmPool
from trainmaster.handlers.models.pools import PoolSetting
from trainmaster.handlers.views.pools import pool_asked, use_of_pools
from trainmaster.ports.store import QueueSettings

PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/spring"


def shown(snapshot, *pools, catalogue=None):
    in_force = QueueSettings(
        {pool.name: pool for pool in pools}, snapshot.policy, 1, catalogue=catalogue or Catalogue()
    )
    return {pool.name: pool for pool in use_of_pools(in_force, snapshot, NOW)}


def test_every_figure_of_a_pool_has_its_own_member():
    snapshot = a_snapshot(
        active=[a_running_job("a", units={P5: 3}), a_preempting_job("b", units={P5: 2})],
        waiting=[a_job("c", units={P5: 20}, reservation=a_reservation({P5: 1})), a_job("d", units={P5: 6})],
        external={P5: 4},
    )
    snapshot = replace(snapshot, warm=(WarmPool("w", {P5: 7}, "f", at(900)),))
    pool = shown(snapshot, a_pool(P5, 24, count_external=True))[P5]
    told = ("cap", "used", "stopping", "held", "external", "warm", "free", "waiting", "waiting_units")
    assert [getattr(pool, name) for name in told] == [24, 5, 2, 1, 4, 7, 8, 2, 26]


def test_a_pool_that_is_newer_than_the_snapshot_is_shown_unused():
    pool = shown(a_snapshot(), Pool(G5, 3))[G5]
    assert (pool.used, pool.free, pool.waiting, pool.state) == (0, 3, 0, "in use")


def test_pool_settings_override_values_of_the_type():
    learned = InstanceType(name="ml.x9.large", vcpus=8, memory_gib=32.0, accelerators=1, accelerator="aws", price=2.0)
    catalogue = Catalogue(learned={learned.name: learned})
    pools = shown(
        a_snapshot(),
        Pool("ml.x9.large", 1),
        Pool("half", 1, type_="ml.x9.large", vcpus=4, price=1.5),
        catalogue=catalogue,
    )
    told = ("vcpus", "memory_gib", "accelerators", "accelerator", "price", "on_demand_price")
    assert [getattr(pools["ml.x9.large"], name) for name in told] == [8, 32.0, 1, "aws", 0.0, 2.0]
    assert [getattr(pools["half"], name) for name in told] == [4, 32.0, 1, "aws", 1.5, 2.0]


@pytest.mark.parametrize(
    "pool",
    [
        Pool(P5, 2),
        Pool(P5, 0, count_external=True, draining=True),
        Pool(f"{P5}.spot", 8, type_=P5, kind=Kind.SPOT, price=31.5),
        Pool("p5-spot", 8, type_=P5, kind=Kind.SPOT),
        Pool("spring", 4, type_=P5, kind=Kind.TRAINING_PLAN, plan_arn=PLAN),
        Pool("odd", 1, type_="ml.x9.large", vcpus=8, memory_gib=0.5, accelerators_per_unit=2, accelerator="acme"),
        Pool("odd", 1, type_="ml.x9.large", accelerator_memory_gib=24.0),
    ],
    ids=lambda pool: pool.name,
)
def test_the_setting_of_a_pool_sets_it_as_it_is(pool):
    setting = shown(a_snapshot(), pool)[pool.name].setting
    assert pool_asked(PoolSetting.model_validate(setting)) == pool
