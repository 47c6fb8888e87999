"""Jobs that no pool covers disturb no other: in every order, young or old, planned or forecast."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest

from builders import G5, NOW, P5, a_job, a_pool, a_snapshot, pools_of
from trainmaster.domain.capacity.resources import Resources
from trainmaster.domain.capacity.units import Demand, Kind, Pool
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.policy.settings import Order, Policy
from trainmaster.domain.reasons.capacity import Infeasible
from trainmaster.planner.forecast.forecast import estimate
from trainmaster.planner.schedule import schedule

TEN_TIMES_A_P5 = Demand((), queue_selects_pool=True, resources=Resources(accelerators=80), instances=4)
AGES = pytest.mark.parametrize("age", [timedelta(0), timedelta(days=40)], ids=["young", "impatient"])
ORDERS = pytest.mark.parametrize("order", Order)


def queue(order: Order, age: timedelta) -> Snapshot:
    """Two infeasible jobs around one that fits."""
    waiting = [
        a_job("huge", demand=TEN_TIMES_A_P5, entry_time=NOW - age),
        a_job("plain", units={P5: 1}, entry_time=NOW - age),
        a_job("huge-too", demand=TEN_TIMES_A_P5, entry_time=NOW - age),
    ]
    return a_snapshot(pools=pools_of(a_pool(P5, 4)), waiting=waiting, policy=Policy(order=order))


@ORDERS
@AGES
def test_the_others_start_and_they_are_told_what_is_missing(order, age):
    plan = schedule(queue(order, age), NOW, random.Random(1))
    assert [start.job.name for start in plan.starts] == ["plain"]
    reason = Infeasible("accelerators=80", needed=4, largest=0)
    assert {wait.job.name: wait.reason for wait in plan.waits} == {"huge": reason, "huge-too": reason}
    assert plan.reservations == ()


@ORDERS
@AGES
def test_they_have_no_expected_start(order, age):
    wanted = frozenset({"huge", "plain", "huge-too"})
    foretold = estimate(queue(order, age), NOW, random.Random(1), schedule, wanted)
    assert set(foretold) == {"plain"}


PLAN = Pool("spring", 0, type_=P5, kind=Kind.TRAINING_PLAN, plan_arn="arn:aws:sagemaker:x:1:training-plan/spring")


@pytest.mark.parametrize(
    ("demand", "pools", "at_zero"),
    [
        (Demand(({P5: 1},)), [a_pool(P5, 0)], True),
        (Demand(({P5: 1},)), [a_pool(G5, 4)], False),
        (Demand(({"spring": 1},), queue_selects_pool=True), [PLAN], True),
        (Demand((), queue_selects_pool=True, resources=Resources(accelerators=8), instances=1), [a_pool(P5, 0)], True),
        (Demand((), queue_selects_pool=True, resources=Resources(accelerators=8), instances=1), [a_pool(G5, 0)], False),
    ],
)
def test_a_pool_with_a_cap_of_0_is_not_told_as_none(demand, pools, at_zero):
    snapshot = a_snapshot(pools=pools_of(*pools), waiting=[a_job("job1", demand=demand)])
    (wait,) = schedule(snapshot, NOW, random.Random(1)).waits
    assert wait.reason.at_zero == at_zero
    assert ("cap" in wait.reason.message()) == at_zero
