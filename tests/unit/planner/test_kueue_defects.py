"""Defects of preemption that users of Kueue report, played with our planner: each test names the issue.

Issues of github.com/kubernetes-sigs/kueue. A ClusterQueue with a nominal quota is a share with its own units there.
"""

from __future__ import annotations

import random
from collections import Counter
from datetime import timedelta

import pytest

from builders import G5, NOW, P5, a_job, a_pool, at
from planner_sim import PlannerSim
from trainmaster.domain.jobs.job import JobState
from trainmaster.domain.policy.settings import Order, Policy, Preemption, Share
from trainmaster.domain.reasons.capacity import Behind, CanNeverFit, Protected, ReservedForOther, WaitsForRelease
from trainmaster.planner.schedule import schedule


def shares(weights=None, **own):
    """Shares with units of their own in the P5 pool."""
    weight = weights or {}
    return {
        name: Share(name=name, nominal={P5: count} if count else {}, weight=weight.get(name, 1.0))
        for name, count in own.items()
    }


def a_play(cap, policy=None, **timing):
    """A pool of that many P5 instances."""
    return PlannerSim(a_pool(P5, cap), policy=policy or Policy(), **timing)


def job(name, count=1, **fields):
    return a_job(name, units={P5: count}, **fields)


def none_twice(sim):
    return all(times == 1 for times in Counter(sim.victims()).values())


def no_pair_in_turn(sim):
    pairs = {(swap.victim, swap.winner) for swap in sim.swaps}
    return not {(victim, winner) for victim, winner in pairs if (winner, victim) in pairs}


# -- loops ----------------------------------------------------------------------------------------------------------


def test_kueue_2821_a_victim_does_not_come_back_before_the_job_that_displaced_it():
    """There a borrower displaced a lower job of another queue, which then was first again, forever."""
    sim = a_play(4, Policy(shares=shares(a=2, b=2)))
    sim.submit(job("a1", 1, share="a"), job("b1", 3, share="b", priority=9), seconds=5_000)
    sim.run(60)
    sim.submit(job("b2", 1, share="b", priority=9), seconds=600)
    sim.run(600)
    assert sim.victims() == []
    sim.run_until_ended()
    assert sim.victims() == []


def test_kueue_2821_nor_does_it_inside_one_queue():
    sim = a_play(1)
    sim.submit(job("low"), seconds=5_000)
    sim.run(60)
    sim.submit(job("high", priority=9), seconds=600)
    sim.run_until_ended()
    assert [(swap.victim, swap.winner) for swap in sim.swaps] == [("low", "high")]


@pytest.mark.parametrize("order", list(Order))
def test_kueue_3779_a_share_beyond_its_own_does_not_chase_a_borrower_in_turn(order):
    """There the borrower of the smaller share was let in again each time, and displaced again."""
    sim = a_play(6, Policy(order=order, shares=shares(a=3, b=3, best=0)))
    sim.submit(job("a1", 5, share="a", priority=1), job("best1", 1, share="best"), seconds=5_000)
    sim.run(60)
    sim.submit(job("a2", 1, share="a", priority=1), seconds=600)
    sim.run(600)
    assert sim.running() == {"a1", "best1"}
    sim.submit(job("b1", 3, share="b"), seconds=600)
    sim.run_until_ended()
    assert none_twice(sim)
    assert no_pair_in_turn(sim)
    assert {swap.winner for swap in sim.swaps} == {"b1"}


@pytest.mark.parametrize("order", list(Order))
def test_kueue_4165_borrowers_displace_no_job_of_other_shares_however_high_their_priority(order):
    """There borrowers displaced by priority but were let in by fairness, and the two did not agree."""
    sim = a_play(4, Policy(order=order, shares=shares(owner=4, x=0, y=0)))
    sim.submit(job("x1", 2, share="x"), job("x2", 2, share="x"), seconds=3_000)
    sim.run(60)
    sim.submit(job("y1", 2, share="y", priority=99), seconds=3_000)
    sim.run(600)
    assert sim.running() == {"x1", "x2"}
    sim.run_until_ended()
    assert sim.victims() == []


@pytest.mark.parametrize("weight", [0.0, 1e-9, 1e7])
def test_kueue_6925_and_6774_odd_weights_start_no_chase(weight):
    """There shares of weight zero, or of a huge one, seemed equal whatever they held, and displaced each other."""
    both = shares({"x": weight, "y": weight}, owner=8, x=0, y=0)
    sim = a_play(8, Policy(order=Order.FAIR, shares=both))
    for index in range(4):
        sim.submit(job(f"x{index}", 4, share="x"), job(f"y{index}", 4, share="y"), seconds=1_000)
        sim.run(100)
    sim.run_until_ended()
    assert sim.victims() == []


def test_kueue_4961_a_share_of_weight_zero_keeps_its_own():
    sim = a_play(1, Policy(order=Order.FAIR, shares=shares({"best": 0.0}, best=1, high=0)))
    sim.submit(job("best1", share="best"), seconds=2_000)
    sim.run(60)
    sim.submit(job("high1", share="high", priority=9), seconds=100)
    sim.run(600)
    assert sim.running() == {"best1"}


def test_kueue_4333_an_owner_gets_its_own_back_from_a_share_of_huge_weight():
    sim = a_play(4, Policy(order=Order.FAIR, shares=shares({"b": 9_999_999.0}, a=4, b=0)))
    sim.submit(job("b1", 4, share="b", priority=9), seconds=9_000)
    sim.run(60)
    sim.submit(job("a1", 4, share="a"), seconds=100)
    sim.run(120)
    assert sim.running() == {"a1"}


@pytest.mark.parametrize("small", [["b1"], ["b1", "b2"]])
def test_kueue_6947_and_6929_a_job_that_can_never_fit_displaces_and_blocks_no_other(small):
    """There the job behind it had others displaced, lost its turn to it, and so on without end."""
    sim = a_play(3, Policy(shares=shares(a=3, b=0)))
    sim.submit(*(job(name, share="b") for name in small), seconds=9_000)
    sim.run(60)
    sim.submit(job("pathological", 4, share="a"), seconds=100)
    sim.run(60)
    assert sim.victims() == []
    sim.submit(job("a1", 3, share="a"), seconds=500)
    sim.run(120)
    assert isinstance(sim.reason("pathological"), CanNeverFit)
    assert sim.running() == {"a1"}
    assert sorted(sim.victims()) == small
    sim.run(600)
    assert set(small) <= sim.running()
    assert sorted(sim.victims()) == small


def test_kueue_6814_a_job_that_can_never_fit_does_not_keep_a_later_one_from_displacing():
    sim = a_play(2)
    sim.submit(job("never", 3, priority=5), seconds=100)
    sim.submit(job("low", 2), seconds=9_000)
    sim.run(60)
    sim.submit(job("high", 2, priority=5), seconds=100)
    sim.run(120)
    assert sim.running() == {"high"}


def test_kueue_7101_a_share_takes_back_what_is_its_own_and_stops_there():
    """There 4 of 8 were not taken back, and a fifth job of 3 had others displaced forever."""
    sim = a_play(8, Policy(shares=shares(p1=4, p2=4)))
    sim.submit(*(job(f"one{index}", 2, share="p1") for index in range(4)), seconds=9_000)
    sim.run(60)
    for count in (6, 5):
        sim.submit(job(f"two{count}", count, share="p2"), seconds=3_000)
        sim.run(60)
        assert sim.victims() == []
    # Short enough to be done before its share's larger jobs can be expected to start.
    sim.submit(job("two4", 4, share="p2", max_runtime=timedelta(hours=1)), seconds=3_000)
    sim.run(120)
    assert "two4" in sim.running()
    sim.submit(job("two3", 3, share="p2", max_runtime=timedelta(hours=1)), seconds=3_000)
    sim.run(1_000)
    assert len(sim.victims()) == 2
    assert none_twice(sim)


def test_kueue_14543_after_the_reverse_pass_the_set_is_asked_about_again():
    """There own jobs were taken to be entitled to others', then spared as needless: what was left was not permitted.

    n may have b3 only if a1 steps aside as well: with b3 alone its share would hold 5, and owns 4.
    """
    sim = a_play(7, Policy(shares=shares(a=4, b=0)))
    sim.submit(job("a1", share="a"), job("ah", share="a", priority=9), seconds=9_000)
    sim.submit(job("b3", 3, share="b"), seconds=9_000)
    sim.submit(job("bh", 2, share="b", preemptible=False), seconds=9_000)
    sim.run(60)
    sim.submit(job("n", 3, share="a", priority=5), seconds=600)
    sim.run(120)
    assert sorted(sim.victims()) == ["a1", "b3"]
    assert "n" in sim.running()
    sim.run_until_ended()
    assert none_twice(sim)


def test_kueue_14122_own_jobs_that_step_aside_entitle_to_the_rest():
    """There the shares were not looked at again once own jobs had been taken, and the job waited."""
    sim = a_play(4, Policy(shares=shares(a=2, b=2)))
    sim.submit(job("a1", share="a"), job("b1", 3, share="b"), seconds=9_000)
    sim.run(60)
    sim.submit(job("n", 2, share="a", priority=5), seconds=600)
    sim.run(120)
    assert sorted(sim.victims()) == ["a1", "b1"]
    assert "n" in sim.running()


def test_kueue_6861_no_job_is_preempted_a_hundred_times():
    """There is a count, a limit on it, and then protection, which the waiting job's reason explains."""
    rules = Preemption(cooldown=timedelta(0), max_preemptions=3)
    sim = a_play(1, Policy(preemption=rules))
    sim.submit(job("long", checkpointed=True), seconds=3_000)
    for index in range(6):
        sim.run(400)
        sim.submit(job(f"short{index}", priority=5), seconds=200)
    assert sim.victims() == ["long"] * 3
    sim.settle()
    protected = sim.reason("short5")
    assert protected == Protected(("long",), None)
    assert "it has reached the preemption limit" in protected.message()
    sim.run_until_ended()
    assert sim.victims() == ["long"] * 3
    assert sim.job("long").state is JobState.COMPLETED


def test_kueue_12541_a_queue_in_which_no_job_may_be_displaced_ends():
    sim = a_play(2, Policy(shares=shares(only=2)))
    sim.submit(*(job(f"j{index}", share="only") for index in range(6)), seconds=100)
    sim.run_until_ended()
    assert sim.victims() == []


# -- evictions that end at different times --------------------------------------------------------------------------


def test_kueue_13662_and_13797_what_is_freed_first_is_kept_until_the_last_victim_has_stopped():
    """There the first victim took its units again before the second had stopped, and so on in turn."""
    sim = a_play(6, Policy(shares=shares(x=4, y=2)))
    sim.submit(job("a", 3, share="y", priority=9), job("b", 3, share="y", priority=9), seconds=9_000)
    sim.run(60)
    sim.stop_takes = {"a": timedelta(seconds=30), "b": timedelta(seconds=900)}
    sim.submit(job("preemptor", 4, share="x"), seconds=300)
    sim.run(400)
    assert sorted(sim.victims()) == ["a", "b"]
    assert isinstance(sim.reason("preemptor"), WaitsForRelease)
    assert isinstance(sim.reason("a"), ReservedForOther)
    sim.run(600)
    assert sim.running() == {"preemptor"}
    sim.run_until_ended()
    assert sorted(sim.victims()) == ["a", "b"]


@pytest.mark.parametrize("priority", [0, 1])
def test_kueue_13662_nor_does_a_third_take_it(priority):
    """Equals and lower ones come while one of two victims has stopped."""
    sim = a_play(2)
    sim.submit(job("v1"), job("v2"), seconds=9_000)
    sim.run(60)
    sim.stop_takes = {"v1": timedelta(seconds=30), "v2": timedelta(seconds=900)}
    sim.submit(job("gang", 2, priority=1), seconds=300)
    sim.run(100)
    sim.submit(job("third", priority=priority), seconds=300)
    sim.run(900)
    assert sim.running() == {"gang"}
    assert sorted(sim.victims()) == ["v1", "v2"]


def test_kueue_2596_two_that_would_have_the_same_job_displaced_take_from_different_ones():
    """There the second of them had z displaced for nothing, since the first took what y had held."""
    sim = a_play(3)
    sim.submit(job("x"), job("y"), job("z"), seconds=9_000)
    sim.run(60)
    sim.submit(job("a", 2, priority=5), job("b", 2, priority=4), seconds=600)
    sim.settle()
    assert len(sim.victims()) == 2
    assert {swap.winner for swap in sim.swaps} == {"a"}


# -- large jobs -----------------------------------------------------------------------------------------------------


def test_kueue_13320_a_large_job_is_not_put_off_because_others_have_the_same_victims_in_mind():
    """There its victims were taken by others in each cycle; here they find others, or wait."""
    sim = a_play(12, Policy(shares=shares(hero=8, noisy=4, guest=0)))
    sim.submit(*(job(f"guest{index}", share="guest") for index in range(12)), seconds=9_000)
    sim.run(60)
    sim.submit(job("hero", 8, share="hero"), seconds=900)
    sim.submit(*(job(f"noisy{index}", share="noisy", priority=9) for index in range(6)), seconds=900)
    sim.settle()
    assert Counter(swap.winner for swap in sim.swaps)["hero"] == 8
    sim.run(120)
    assert "hero" in sim.running()
    assert len(sim.victims()) == 12
    assert none_twice(sim)


@pytest.mark.parametrize("order", [Order.FIFO, Order.BACKFILL, Order.FAIR])
def test_kueue_13320_small_jobs_do_not_pass_a_large_one_for_ever(order):
    sim = a_play(4, Policy(order=order))
    for index in range(40):
        sim.submit(job(f"small{index:02}", max_runtime=timedelta(seconds=600)), seconds=600)
        if index == 4:
            sim.submit(job("hero", 4, max_runtime=timedelta(seconds=600)), seconds=600)
        sim.run(150)
    began = sim.job("hero").attempt.created_at
    assert began <= at(4 * 150 + 2 * 600)


def test_kueue_8826_a_hero_has_the_whole_pool_at_once_where_it_outranks_all():
    """There it needs an override; here it is one plan, and what is freed early is kept for it."""
    sim = a_play(8)
    sim.submit(*(job(f"j{index}", priority=index % 3) for index in range(8)), seconds=9_000)
    sim.run(60)
    sim.stop_takes = {f"j{index}": timedelta(seconds=20 * index + 20) for index in range(8)}
    sim.submit(job("hero", 8, priority=100), seconds=600)
    sim.settle()
    assert len(sim.victims()) == 8
    sim.run(161)
    assert sim.running() == {"hero"}
    sim.run_until_ended()
    assert none_twice(sim)


# -- progress before a preemption -------------------------------------------------------------------------------------


def test_kueue_8522_and_8646_no_job_is_preempted_before_the_minimum_run_time():
    sim = a_play(1, Policy(preemption=Preemption(min_runtime=timedelta(minutes=30))))
    sim.submit(job("low"), seconds=9_000)
    sim.run(60)
    sim.submit(job("high", priority=5), seconds=600)
    sim.settle()
    assert sim.reason("high") == Protected(("low",), NOW + timedelta(minutes=30))
    sim.run(30 * 60 - 61)
    assert sim.victims() == []
    sim.run(2)
    assert sim.victims() == ["low"]
    assert sim.swaps[0].at == NOW + timedelta(minutes=30)


def test_no_job_passes_one_that_waits_for_a_protected_job_which_ends_before():
    """The reservation begins when the protected job is expected to end, which is before it may be preempted."""
    sim = a_play(2, Policy(preemption=Preemption(min_runtime=timedelta(hours=2))))
    minutes = {"low": 30, "high": 30, "passes": 60}
    limits = {name: {"max_runtime": timedelta(minutes=count)} for name, count in minutes.items()}
    sim.submit(job("low", **limits["low"]), seconds=1_800)
    sim.run(60)
    sim.submit(job("high", 2, priority=5, **limits["high"]), job("passes", **limits["passes"]), seconds=600)
    sim.settle()
    assert sim.reason("high") == Protected(("low",), NOW + timedelta(hours=2))
    assert sim.reason("passes") == ReservedForOther("high", P5, NOW + timedelta(minutes=30), 1, 0)
    sim.run(1_800)
    assert sim.running() == {"high"}


@pytest.mark.parametrize(
    "policy",
    [
        {"order": Order.FIFO},
        {"patience": timedelta(seconds=1)},
        {"order": Order.GITTINS, "patience": timedelta(seconds=1)},
    ],
    ids=str,
)
def test_no_equal_passes_a_job_in_strict_order_or_beyond_patience_that_waits_for_a_protected_one(policy):
    """Not even one that may not run longer than the protection lasts."""
    sim = a_play(2, Policy(preemption=Preemption(min_runtime=timedelta(hours=2)), **policy))
    sim.submit(job("low"), seconds=90_000)
    sim.run(60)
    sim.submit(job("high", 2, priority=5), seconds=600)
    sim.run(60)
    sim.submit(job("equal", priority=5, max_runtime=timedelta(minutes=30)), seconds=600)
    sim.settle()
    assert sim.reason("high") == Protected(("low",), NOW + timedelta(hours=2))
    assert sim.reason("equal") == Behind("high", P5)


def test_kueue_9876_nor_when_an_owner_wants_its_own_back():
    """And the owner is looked at again when the time is over, though nothing else happens."""
    rules = Preemption(min_runtime=timedelta(minutes=30))
    sim = a_play(2, Policy(preemption=rules, shares=shares(a=2, b=0)))
    sim.submit(job("guest", 2, share="b", priority=9), seconds=9_000)
    sim.run(60)
    sim.submit(job("owner", 1, share="a"), seconds=600)
    sim.settle()
    assert sim.reason("owner") == Protected(("guest",), NOW + timedelta(minutes=30))
    sim.run(40 * 60)
    assert [(swap.victim, swap.winner, swap.at) for swap in sim.swaps] == [
        ("guest", "owner", NOW + timedelta(minutes=30))
    ]


def test_kueue_8522_a_resumed_job_gets_on_before_it_steps_aside_again():
    sim = a_play(1, Policy(preemption=Preemption(cooldown=timedelta(minutes=20))))
    sim.submit(job("low", checkpointed=True), seconds=9_000)
    for index in range(3):
        sim.run(100)
        sim.submit(job(f"high{index}", priority=5), seconds=60)
        sim.run(100)
    times = [swap.at for swap in sim.swaps]
    assert len(times) == 1
    sim.run(3_600)
    sim.submit(job("late", priority=5), seconds=60)
    sim.run_until_ended()
    spans = [later - earlier for earlier, later in zip(times, [swap.at for swap in sim.swaps][1:], strict=False)]
    assert all(span >= timedelta(minutes=20) for span in spans)


# -- few victims, and no work for nothing ---------------------------------------------------------------------------


def test_kueue_1974_no_job_is_preempted_needlessly():
    sim = a_play(10)
    sim.submit(*(job(f"j{index}") for index in range(8)), job("big", 2), seconds=9_000)
    sim.run(60)
    sim.submit(job("high", 2, priority=5), seconds=60)
    sim.settle()
    assert sum(sim.job(name).attempt.units[P5] for name in sim.victims()) == 2


def test_kueue_9232_and_9715_who_can_start_does_although_thousands_before_it_cannot():
    """There the scheduler started over before it came to a job deep in the queue that had room."""
    sim = PlannerSim(a_pool(P5, 1), a_pool(G5, 1))
    sim.submit(job("busy", priority=9), seconds=9_000)
    sim.run(60)
    sim.submit(*(job(f"stuck{index:04}", priority=5) for index in range(3_000)))
    sim.submit(a_job("deep", units={G5: 1}), seconds=60)
    plan = schedule(sim.snapshot(), sim.now, random.Random(1))
    assert [start.job.name for start in plan.starts] == ["deep"]
