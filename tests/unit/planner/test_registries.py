"""The registries of orders and placement policies: the settings name them, and a new one needs no other module."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import datetime
from typing import Any, cast

import pytest

from builders import G5, NOW, P5, a_job, a_pool, a_running_job, a_snapshot, at
from trainmaster.domain.capacity.resources import Resources
from trainmaster.domain.capacity.units import Demand
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.policy.settings import Order, Placement, Policy
from trainmaster.planner.orders import ORDERS
from trainmaster.planner.orders.ranking import Ranking
from trainmaster.planner.orders.strategy import OrderStrategy
from trainmaster.planner.placement.policies import POLICIES, PoolChoice
from trainmaster.planner.schedule import schedule


class Newest(Ranking):
    def waiting_in_order(self):
        return sorted(super().waiting_in_order(), key=lambda job: (-job.priority, -job.entry_time.timestamp()))


class Lifo(OrderStrategy):
    name = "lifo"
    strict = True

    def ranking(self, snapshot: Snapshot, now: datetime) -> Ranking:
        return Newest(snapshot, now, strict_order=True)


class LastByName:
    name = "last-by-name"
    deterministic = True
    weighted = False

    def choose(self, pools, cursors, rng):
        return PoolChoice(pools[-1].name)

    def choose_queue(self, pools, point):
        return pools[-1].name


def settings(**fields: Any) -> Policy:
    return Policy(**cast("dict[str, Any]", fields))


def test_the_setting_names_exactly_the_registered_orders():
    assert {order.value for order in Order} == ORDERS.keys()


def test_the_setting_names_exactly_the_registered_placement_policies():
    assert {policy.value for policy in Placement} == POLICIES.keys()


@pytest.mark.parametrize("order", Order)
def test_only_an_order_that_ranks_equals_apart_lets_them_preempt_each_other(order):
    active = a_running_job("served", units={P5: 1}, now=at(-500_000), entry_time=at(-500_000))
    waiting = a_job("fresh", units={P5: 1}, entry_time=at(-10))
    snapshot = a_snapshot(pools=[a_pool(P5, 1)], active=[active], waiting=[waiting], policy=Policy(order=order))
    assert bool(schedule(snapshot, NOW, random.Random(1)).preemptions) == order.preempts_equals


def test_a_new_order_needs_only_to_be_registered(monkeypatch):
    monkeypatch.setitem(ORDERS, Lifo.name, Lifo())
    jobs = [a_job(name, units={P5: 1}, entry_time=at(-age)) for name, age in (("old", 30), ("middle", 20), ("new", 10))]
    snapshot = a_snapshot(pools=[a_pool(P5, 1)], waiting=jobs, policy=settings(order="lifo"))
    plan = schedule(snapshot, NOW, random.Random(1))
    assert [start.job.name for start in plan.starts] == ["new"]
    assert [wait.job.name for wait in plan.waits] == ["middle", "old"]


def test_a_new_placement_policy_needs_only_to_be_registered(monkeypatch):
    monkeypatch.setitem(POLICIES, LastByName.name, LastByName())
    asked = Demand((), queue_selects_pool=True, resources=Resources(accelerators=1), instances=1)
    job = a_job("j", demand=asked)
    pools = [replace(a_pool(name, 2), accelerators_per_unit=8, vcpus=8, memory_gib=8.0) for name in (G5, P5)]
    snapshot = a_snapshot(pools=pools, waiting=[job], policy=settings(placement="last-by-name"))
    (start,) = schedule(snapshot, NOW, random.Random(1)).starts
    assert start.units == {P5: 1}
