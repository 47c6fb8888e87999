"""Growths and shrinks by what is known of how elastic jobs scale; without reports the plans stay as they are."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW, P5, a_job, a_pool, a_snapshot, an_observation, at
from samples import examples
from trainmaster.domain.elastic.scaling import LINEAR, KindCurve, ScalingCurve, Speed, Speeds
from trainmaster.domain.elastic.sizes import Cause, Elastic, Hook
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.observation import Status
from trainmaster.domain.jobs.run_time_classes import ALL
from trainmaster.domain.jobs.run_times import History
from trainmaster.domain.policy.settings import Lending, Order, Policy, Resizes, Share
from trainmaster.domain.records import Records
from trainmaster.planner.elastic.division import Grower, divide
from trainmaster.planner.elastic.resize import ShrinkCandidate, larger_sizes
from trainmaster.planner.elastic.scale_down import by_cost
from trainmaster.planner.schedule import schedule

HOUR = 3_600
FLAT = ScalingCurve(0.5)
"""Two instances are 1.33 times as fast as one, and eight 1.78 times."""


def running(name, size, *, speeds=Speeds(), ago=HOUR, max_instances=8, hook=Hook.MEMBERS, **fields):  # noqa: B008
    """An elastic job at work with this size."""
    bounds = Elastic(min_instances=1, max_instances=max_instances, hook=hook)
    since = at(-ago)
    job = a_job(name, units={P5: 1}, elastic=bounds, **fields)
    job = lifecycle.mark_launched(lifecycle.start(job, {P5: size}, (), since))
    for training_job in job.attempt.training_job_names:
        seen = an_observation(job, training_job_name=training_job, secondary="Training", started_at=since)
        job = lifecycle.observe(job, seen, since)
    return replace(job, speeds=speeds)


def reported(curve, *sizes):
    return Speeds(P5, tuple(Speed(size, 100 * curve.speedup(size), 8) for size in sizes))


def plan(*jobs, cap=8, history=None, **policy):
    snapshot = a_snapshot(
        pools=[a_pool(P5, cap)],
        active=[job for job in jobs if job.units],
        waiting=[job for job in jobs if not job.units],
        policy=Policy(**policy),
    )
    return schedule(replace(snapshot, records=Records(history=history or History())), NOW, random.Random(1))


def grown(made):
    return {each.job.name: each.size for each in made.resizes}


def test_an_idle_instance_goes_where_it_brings_most():
    flat, linear = running("a-flat", 2, speeds=reported(FLAT, 1, 2)), running("b-linear", 2)
    assert grown(plan(running("a-flat", 2), linear)) == {"a-flat": 6}
    assert grown(plan(flat, linear)) == {"b-linear": 6}


def test_jobs_that_scale_alike_share_what_is_idle():
    curve = ScalingCurve(0.1)
    jobs = [running(name, 1, speeds=reported(curve, 1, 2)) for name in "abc"]
    assert grown(plan(*jobs, cap=12)) == {"a": 4, "b": 4, "c": 4}


def test_of_jobs_that_scale_alike_the_one_that_ends_sooner_gets_more():
    curve = ScalingCurve(0.1)
    soon, late = (
        running(name, 1, speeds=reported(curve, 1, 2), max_runtime=timedelta(hours=hours))
        for name, hours in (("soon", 3), ("late", 30))
    )
    sizes = grown(plan(soon, late, cap=10))
    assert sizes["soon"] > sizes["late"] > 1


def test_the_higher_priority_gets_all_that_it_gains_by():
    curve = ScalingCurve(0.1)
    low, high = (running(n, 1, speeds=reported(curve, 1, 2), priority=p) for n, p in (("low", 0), ("high", 3)))
    assert grown(plan(low, high, cap=9)) == {"high": 8}


def test_starting_jobs_share_with_running_ones():
    history = History(curves={ALL: KindCurve(ScalingCurve(0.1), 8)})
    starts = a_job("new", units={P5: 1}, elastic=Elastic(min_instances=1, max_instances=8))
    made = plan(starts, running("old", 1), cap=8, history=history)
    assert [start.units for start in made.starts] == [{P5: 4}]
    assert grown(made) == {"old": 4}


def test_a_growth_has_to_pay_by_the_learned_gain():
    """A restart costs ten minutes; the job has an hour to go."""
    short = {"checkpointed": True, "max_runtime": timedelta(hours=2)}
    history = History(pauses={"restart": 600.0})
    slow = running("slow", 2, hook=Hook.RESTART, speeds=reported(ScalingCurve(0.9), 1, 2, 4), **short)
    fast = replace(slow, speeds=Speeds())
    assert grown(plan(fast, history=history)) == {"slow": 8}
    assert grown(plan(slow, history=history)) == {}


def test_a_job_does_not_grow_beyond_its_best_size():
    """Sixteen instances are its best size."""
    speeds = reported(ScalingCurve(0.0, 1 / 256), 1, 8, 24)
    made = plan(running("job", 8, speeds=speeds, max_instances=32), cap=32)
    assert 14 <= grown(made)["job"] <= 18


def test_a_slower_size_tells_nothing_of_the_others():
    """With 8 slower than 4, which a slower network causes, 4 instances are still 1.8 times as fast as 2."""
    told = ((2, 10.0), (8, 9.0), (4, 18.0))
    speeds = Speeds(P5, tuple(Speed(size, rate, 3, (rate,) * 3, at(-HOUR)) for size, rate in told))
    short = {"checkpointed": True, "max_runtime": timedelta(hours=2), "hook": Hook.RESTART}
    job, history = running("job", 2, speeds=speeds, **short), History(pauses={"restart": 600.0})
    assert grown(plan(job, cap=4, history=history)) == {"job": 4}
    curve = history.curve(job)
    assert curve.speedup(4) / curve.speedup(2) == pytest.approx(1.8, rel=0.05)
    assert curve.speedup(8) / curve.speedup(4) == pytest.approx(0.5)


class TestExploration:
    """A job that has reported only sizes at which growing did not pay tries one more while nothing waits."""

    SPEEDS = reported(ScalingCurve(1.0), 1, 2)

    def grown(self, *others, size=2, speeds=SPEEDS, pause=300.0):
        limits = {"checkpointed": True, "max_runtime": timedelta(hours=2)}
        job = running("job", size, hook=Hook.RESTART, speeds=speeds, **limits)
        return grown(plan(job, *others, history=History(pauses={"restart": pause})))

    def test_the_next_size_is_tried_once(self):
        assert self.grown() == {"job": 3}
        assert self.grown(speeds=reported(ScalingCurve(1.0), 1, 2, 3)) == {}

    def test_not_before_the_present_size_is_reported(self):
        assert self.grown(size=3) == {}

    def test_not_while_a_job_waits_for_the_pool(self):
        assert self.grown(a_job("wide", units={P5: 8})) == {}

    def test_not_if_even_a_linear_gain_would_not_pay(self):
        assert self.grown(pause=3_000.0) == {}


def sure(size, rate, reports=3, ago=HOUR):
    """A speed with enough reports, all alike."""
    return Speed(size, rate, reports, (rate,) * 3, at(-ago))


class TestSlowerSizes:
    """A job leaves a size at which it was slower than with fewer instances, and does not come to it again for long."""

    SLOWER = Speeds(P5, (sure(1, 80.0), sure(2, 100.0), sure(3, 60.0)))

    def resized(self, size, *, speeds=SLOWER, hours=10, pause=300.0):
        limits = {"checkpointed": True, "max_runtime": timedelta(hours=hours)}
        job = running("job", size, hook=Hook.RESTART, speeds=speeds, **limits)
        return grown(plan(job, history=History(pauses={"restart": pause})))

    def test_it_returns_to_the_fastest(self):
        assert self.resized(3) == {"job": 2}

    def test_it_stays_if_the_pause_costs_more_time_than_is_saved(self):
        assert self.resized(3, hours=2, pause=3_000.0) == {}

    def test_it_stays_where_it_has_not_reported(self):
        assert self.resized(4) == {}

    def test_a_difference_within_the_error_of_a_report_is_none(self):
        assert self.resized(3, speeds=Speeds(P5, (sure(2, 100.0, 8), sure(3, 96.0, 8)))) == {"job": 8}

    def test_it_leaves_for_a_cause_of_its_own(self):
        job = running("job", 3, speeds=self.SLOWER)
        assert [resize.cause for resize in plan(job).resizes] == [Cause.SLOWER]

    @pytest.mark.parametrize("latest", [(), (60.0,), (60.0, 60.0), (60.0, 101.0, 102.0), (101.0, 102.0, 60.0)])
    def test_it_stays_until_most_of_three_reports_at_this_size_say_so(self, latest):
        """One report of a time with an evaluation in it is too low."""
        speeds = Speeds(P5, (sure(1, 80.0), sure(2, 100.0), Speed(3, 60.0, 8, latest, at(-60))))
        assert self.resized(3, speeds=speeds).get("job", 3) >= 3

    def test_a_larger_size_that_was_faster_stays_within_reach(self):
        speeds = Speeds(P5, (sure(2, 20.0), sure(4, 18.0), sure(8, 80.0)))
        job = running("job", 2, hook=Hook.RESTART, speeds=speeds, max_instances=12, checkpointed=True)
        assert grown(plan(job, cap=12, history=History(pauses={"restart": 10.0})))["job"] >= 8
        assert larger_sizes(job, job.elastic, 2, NOW) == (12, 11, 10, 9, 8, 3)

    def test_what_it_reported_before_it_came_back_does_not_send_it_away_at_once(self):
        for ago, resized in ((HOUR / 2, {}), (2 * HOUR, {"job": 2})):
            assert grown(plan(running("job", 3, speeds=self.SLOWER, ago=ago))) == resized

    @pytest.mark.parametrize("latest", [(60.0,), (60.0, 60.0)])
    def test_it_tries_no_larger_one_while_this_one_is_in_doubt(self, latest):
        speeds = Speeds(P5, (sure(1, 80.0), sure(2, 100.0), Speed(3, 60.0, len(latest), latest, at(-60))))
        assert self.resized(3, speeds=speeds) == {}

    def test_a_job_that_has_reported_nothing_since_does_not_try_it_again(self):
        speeds = Speeds(P5, (sure(1, 100.0, ago=9 * HOUR), sure(2, 60.0, ago=8 * HOUR)))
        assert self.resized(1, speeds=speeds) == {}

    def test_it_grows_to_a_faster_size_or_returns_but_not_both(self):
        speeds = Speeds(P5, (sure(2, 20.0), sure(4, 18.0), sure(8, 80.0)))
        assert [resize.size for resize in plan(running("job", 4, speeds=speeds)).resizes] == [8]

    @pytest.mark.parametrize(("reports", "hours"), [(3, 4), (4, 8), (8, 128)])
    def test_it_is_tried_again_the_later_the_more_reports_said_so(self, reports, hours):
        for ago, size in ((hours - 1, None), (hours, 2)):
            speeds = Speeds(P5, (sure(2, 60.0, reports, ago * HOUR), sure(1, 100.0)))
            limits = {"max_instances": 2, "max_runtime": timedelta(days=90), "checkpointed": True}
            job = running("job", 1, hook=Hook.RESTART, speeds=speeds, **limits)
            assert grown(plan(job, history=History(pauses={"restart": 300.0}))).get("job") == size

    def test_it_grows_up_to_the_size_before_that_one(self):
        linear = History(curves={ALL: KindCurve(ScalingCurve(), 8)}, pauses={"restart": 10.0})
        job = running("job", 1, hook=Hook.RESTART, speeds=self.SLOWER, checkpointed=True)
        assert grown(plan(job, history=linear)) == {"job": 2}

    def test_a_start_has_no_such_size_either(self):
        starts = a_job("new", units={P5: 1}, elastic=Elastic(min_instances=1, max_instances=8))
        made = plan(replace(starts, speeds=self.SLOWER))
        assert [start.units for start in made.starts] == [{P5: 2}]


def test_speeds_of_another_pool_tell_nothing():
    speeds = replace(reported(ScalingCurve(0.9), 1, 2, 4), pool="elsewhere")
    job = running("job", 2, speeds=speeds)
    assert (History().curve(job), History().tells_curve(job)) == (LINEAR, False)
    assert grown(plan(job)) == {"job": 8}
    assert History().curve(replace(job, speeds=replace(speeds, pool=P5))).serial > 0.5


def test_one_job_of_another_kind_tells_little():
    """A job whose instances brought nothing has ended; another one, of another image, is not taken for it."""
    speeds = reported(ScalingCurve(1.0), 1, 2, 4)
    taught = running("taught", 2, speeds=speeds, hook=Hook.RESTART, container_image="small")
    ended = lifecycle.observe(taught, an_observation(taught, status=Status.COMPLETED), NOW)
    history = History().after(ended)
    other = running("other", 1, container_image="large")
    assert 1.5 < history.curve(other).speedup(8) < 8
    assert grown(plan(other, history=history)) == {"other": 8}
    assert history.curve(running("same", 1, container_image="small")).speedup(8) == pytest.approx(1.0, abs=0.1)


def test_what_the_shares_may_use_is_divided_whatever_the_names_of_their_jobs():
    owned = {"x": 2, "y": 8}
    shares = {name: Share(name=name, nominal={P5: count}, lending=Lending.RESERVE) for name, count in owned.items()}
    for names in ("ab", "ba"):
        speeds = reported(ScalingCurve(0.1), 1, 2)
        jobs = [running(name, 1, speeds=speeds, share=share) for name, share in zip(names, owned, strict=True)]
        made = grown(plan(*jobs, cap=10, shares=shares))
        assert {job.share: made[job.name] for job in jobs} == owned


def test_shrinking_takes_where_it_costs_least():
    """Both lose the same by the pause; the one that scales worse loses less by what it gives."""
    flat = ShrinkCandidate(running("flat", 4), P5, 4, 10.0, curve=FLAT)
    linear = ShrinkCandidate(running("a-linear", 4), P5, 4, 10.0)
    assert [c.job.name for c in by_cost([linear, flat], {P5: 2})] == ["a-linear", "flat"]
    assert [c.job.name for c in by_cost([linear, flat], {P5: 2}, seconds=HOUR)] == ["flat", "a-linear"]


@pytest.mark.parametrize(("order", "curve", "size"), [
    (Order.GITTINS, FLAT, 6), (Order.GITTINS, ScalingCurve(), None), (Order.BACKFILL, FLAT, None)
])  # fmt: skip
def test_where_equals_preempt_each_other_one_gives_what_brings_more_elsewhere(order, curve, size):
    """In its first hour, no equal outranks the running job."""
    wide = running("wide", 8, speeds=reported(curve, 1, 8), ago=HOUR / 2)
    made = plan(wide, a_job("new", units={P5: 2}), order=order)
    assert [shrink.size for each in made.preemptions for shrink in each.shrinks] == ([size] if size else [])


def test_a_linear_job_misses_each_instance():
    candidate = ShrinkCandidate(running("job", 8), P5, 8, 10.0)
    assert [candidate.spared(count) for count in range(1, 8)] == [0.0] * 7


jobs_of_queues = st.lists(
    st.tuples(
        st.integers(1, 6),
        st.integers(0, 2),
        st.sampled_from((60, HOUR, 100 * HOUR)),
        st.sampled_from((Hook.RESTART, Hook.MEMBERS)),
    ),
    min_size=1,
    max_size=4,
)


@examples(60, deadline=None)
@given(jobs_of_queues, st.lists(st.integers(1, 6), max_size=2), st.booleans(), st.integers(1, 1000))
def test_a_report_of_one_size_alone_changes_no_plan(rows, waiting, equals, rate):
    jobs = [
        running(f"job{n}", size, priority=priority, ago=ago, hook=hook)
        for n, (size, priority, ago, hook) in enumerate(rows)
    ]
    waits = [a_job(f"new{n}", units={P5: count}, priority=1) for n, count in enumerate(waiting)]
    told = [replace(job, speeds=Speeds(P5, (Speed(job.attempt.size, float(rate)),))) for job in jobs]
    others = History(curves={"another|kind": KindCurve(FLAT, 8)})
    before, after = (
        plan(*queue, *waits, cap=26, history=history, resizes=Resizes(shrink_equals=equals))
        for queue, history in ((jobs, None), (told, others))
    )
    assert [(type(d), d.job.name) for d in before.decisions] == [(type(d), d.job.name) for d in after.decisions]
    assert grown(before) == grown(after)
    assert [start.units for start in before.starts] == [start.units for start in after.starts]
    assert [{s.job.name: s.size for s in p.shrinks} for p in before.preemptions] == [
        {s.job.name: s.size for s in p.shrinks} for p in after.preemptions
    ]


growers = st.lists(
    st.tuples(
        st.sampled_from("pq"),
        st.integers(0, 2),
        st.lists(st.integers(1, 30), min_size=1, max_size=6, unique=True).map(sorted),
        st.builds(ScalingCurve, st.floats(0, 1), st.floats(0, 0.1)),
    ),
    max_size=6,
)


@given(growers, st.integers(0, 40), st.integers(0, 40))
def test_no_pool_gives_more_than_it_has_and_nothing_useful_stays_idle(rows, p, q):
    all_ = [
        Grower(f"j{n}", pool, turn, tuple(sizes), curve.speedup) for n, (pool, turn, sizes, curve) in enumerate(rows)
    ]
    targets = divide(all_, {"p": p, "q": q})
    for pool, idle in (("p", p), ("q", q)):
        mine = [grower for grower in all_ if grower.pool == pool]
        left = idle - sum(targets[grower.name] - grower.sizes[0] for grower in mine)
        assert left >= 0
        for grower in mine:
            size = targets[grower.name]
            assert size in grower.sizes
            more = next((other for other in grower.sizes if other > size), None)
            assert more is None or more - size > left or grower.value(more) <= grower.value(size)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=4), st.integers(0, 12))
def test_the_division_does_the_most_work(serials, idle):
    """With concave curves and steps of one instance, the greedy division is the best of all."""
    curves = [ScalingCurve(serial) for serial in serials]
    sizes = tuple(range(1, 6))
    targets = divide([Grower(str(n), "p", 0, sizes, curve.speedup) for n, curve in enumerate(curves)], {"p": idle})
    best = [float("-inf")] * (idle + 1)
    best[0] = 0.0
    for curve in curves:
        best = [
            max(best[had - more] + curve.speedup(1 + more) for more in range(min(had, 4) + 1))
            for had in range(idle + 1)
        ]
    found = sum(curve.speedup(targets[str(n)]) for n, curve in enumerate(curves))
    assert found >= max(best) - 1e-9
