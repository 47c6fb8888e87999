"""GET /shares: what each share owns, uses, lends and borrows, its usage and its budget, by the shipped handler."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from api_world import ApiWorld
from builders import G5, NOW, P5, a_held_job, a_job, a_reservation, a_running_job, an_observation
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.observation import Status
from trainmaster.domain.policy.settings import Budget, Lending, Order, Policy, Share, WhenSpent

HOUR = timedelta(hours=1)
POOLS = {P5: Pool(P5, 8, price=10.0)}


def a_world(*jobs, shares=(), pools=None, **policy):
    world = ApiWorld(pools=pools or POOLS)
    world.memory.set_settings(policy=Policy(shares={share.name: share for share in shares}, **policy))
    world.seed(*jobs)
    return world


def shares_of(world):
    reply = world.get("/shares")
    assert reply.status == 200, reply.body
    return {share["name"]: share for share in reply.body["shares"]}


def part(world, share, pool=P5):
    return next(each for each in shares_of(world)[share]["pools"] if each["pool"] == pool)


def of(found, *members):
    return tuple(found[member] for member in members)


class TestUnits:
    def test_a_borrower_takes_what_no_share_owns_and_then_what_shares_lend(self):
        shares = (Share(name="vision", nominal={P5: 2}), Share(name="speech", nominal={P5: 4}))
        world = a_world(a_running_job("runs", units={P5: 5}, share="vision"), shares=shares)
        assert of(part(world, "vision"), "own", "used", "borrowed", "lent") == (2, 5, 3, 0)
        assert of(part(world, "default"), "own", "used", "lent") == (2, 0, 1)
        assert of(part(world, "speech"), "own", "used", "lent", "lends") == (4, 0, 2, 4)
        assert shares_of(world)["default"]["configured"] is False
        # The default share is set, and owns nothing: two instances are no share's.
        world.memory.set_settings(policy=Policy(shares={s.name: s for s in (*shares, Share(name="default"))}))
        assert of(part(world, "speech"), "used", "lent") == (0, 1)
        assert of(world.get("/shares").body["pools"][0], "cap", "used", "unowned") == (8, 5, 2)

    def test_reserved_units_are_not_lent(self):
        reserves = Share(name="speech", nominal={P5: 4}, lending=Lending.RESERVE)
        world = a_world(a_running_job("runs", units={P5: 4}), shares=(reserves,))
        assert of(part(world, "speech"), "own", "lent", "lends") == (4, 0, 0)

    @pytest.mark.parametrize(
        ("share", "expected"),
        [
            (Share(name="x", nominal={P5: 2}), (None, None, None)),
            (Share(name="x", nominal={P5: 2}, borrows={P5: 1}), (3, "borrow limit", 1)),
            (Share(name="x", nominal={P5: 2}, max={P5: 3}), (3, "cap", 1)),
            (Share(name="x", nominal={P5: 2}, lending=Lending.LEND), (2, "own units", 0)),
        ],
    )
    def test_the_tightest_limit_is_told(self, share, expected):
        assert of(part(a_world(shares=(share,)), "x"), "limit", "limitedBy", "borrows") == expected

    def test_what_is_freed_for_a_waiting_job_is_held_and_not_lent(self):
        waits = a_job("waits", units={P5: 2}, share="vision")
        waits = replace(waits, reservation=a_reservation({P5: 2}))
        world = a_world(
            waits, a_running_job("runs", units={P5: 6}, share="speech"), shares=(Share(name="vision", nominal={P5: 4}),)
        )
        assert of(part(world, "vision"), "used", "held", "lent") == (0, 2, 2)

    def test_a_pool_that_is_removed_keeps_what_jobs_hold(self):
        world = a_world(a_running_job("runs", units={G5: 1}, share="vision"))
        assert of(part(world, "vision", G5), "own", "used", "borrowed") == (0, 1, 1)
        gone = next(pool for pool in world.get("/shares").body["pools"] if pool["name"] == G5)
        assert of(gone, "cap", "kind", "used", "unowned") == (None, None, 1, 0)

    def test_jobs_are_counted_by_share(self):
        world = a_world(a_running_job("r", share="a"), a_job("w1", share="a"), a_job("w2", share="b"), a_held_job("h"))
        found = shares_of(world)
        assert {name: of(share, "running", "waiting") for name, share in found.items()} == {
            "a": (1, 1),
            "b": (0, 1),
            "default": (0, 0),
        }


class TestUsageAndBudget:
    def test_usage_has_ended_and_active_attempts(self):
        policy = Policy(shares={"vision": Share(name="vision")}, usage_half_life=timedelta(days=365))
        world = ApiWorld(pools=POOLS)
        world.memory.set_settings(policy=policy)
        job = a_running_job("ended", units={P5: 1}, share="vision", now=NOW - 3 * HOUR)
        world.seed(job)
        world.memory.transition([(job, lifecycle.observe(job, an_observation(job, status=Status.COMPLETED), NOW))])
        world.seed(a_running_job("runs", units={P5: 2}, share="vision", now=NOW - HOUR))
        # Eight accelerators of an instance: 3 hours of one instance, and 1 of two.
        assert shares_of(world)["vision"]["fadedGpuHours"] == pytest.approx(8 * 5, rel=0.01)

    def test_a_budget_tells_what_is_spent_and_left_and_when_it_renews(self):
        budget = Budget(gpu_hours=100, dollars=50, period=timedelta(days=7), when_spent=WhenSpent.REFUSE)
        runs = a_running_job("runs", units={P5: 2}, share="vision", now=NOW - 2 * HOUR)
        world = a_world(runs, shares=(Share(name="vision", budget=budget),), order=Order.FAIR)
        found = shares_of(world)["vision"]["budget"]
        assert of(found, "gpuHoursUsed", "gpuHoursLeft", "dollarsUsed", "dollarsLeft") == (32, 68, 40, 10)
        assert of(found, "spent", "whenSpent") == (False, "refuse")
        assert found["periodStart"] < NOW.isoformat() < found["periodEnd"]
        assert world.get("/shares").body["order"] == "fair"
        world.clock.sleep(1_800)
        later = shares_of(world)["vision"]["budget"]
        assert of(later, "dollarsUsed", "dollarsLeft", "spent") == (50, 0, True)

    def test_limits_that_are_not_set_are_null(self):
        world = a_world(shares=(Share(name="vision", budget=Budget(gpu_hours=1)), Share(name="free")))
        found = shares_of(world)
        assert of(found["vision"]["budget"], "dollars", "dollarsLeft", "gpuHoursLeft") == (None, None, 1)
        assert found["free"]["budget"] is None
