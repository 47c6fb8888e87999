"""The estimated start: the planner run forward over what history expects of the jobs before."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import G5, NOW, P5, a_job, a_pool, a_preempting_job, a_running_job, a_starting_job, at, pools_of
from planner_sim import PlannerSim
from samples import examples
from trainmaster.domain.capacity.units import Kind, PlanStatus, Pool
from trainmaster.domain.capacity.warm_pools import WarmPool
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.run_times import History, Sketch, bucket_of
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.policy.settings import Budget, Lending, Order, Policy, Preemption, Share
from trainmaster.domain.records import Records
from trainmaster.domain.shares.usage import period_end
from trainmaster.planner.forecast import forecast as module
from trainmaster.planner.forecast.forecast import HORIZON, delays, estimate, forecast
from trainmaster.planner.reservations.expected_ends import STOP_DURATION
from trainmaster.planner.schedule import schedule

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
RNG = random.Random(1)


def a_queue(*, active=(), waiting=(), cap=2, **fields):
    fields.setdefault("pools", pools_of(a_pool(cap=cap)))
    return Snapshot(pass_number=1, active=tuple(active), waiting=tuple(waiting), **fields)


def starts(*, wanted=None, **queue):
    snapshot = a_queue(**queue)
    names = frozenset(wanted or (job.name for job in snapshot.waiting))
    return forecast(snapshot, NOW, RNG, schedule, names)


def ranges(*, wanted=None, **queue):
    snapshot = a_queue(**queue)
    names = frozenset(wanted or (job.name for job in snapshot.waiting))
    return estimate(snapshot, NOW, RNG, schedule, names)


def hours_after_now(moment):
    return (moment - NOW) / HOUR


def learned(*hours, job=None):
    """Return the records after jobs of this kind have run that long."""
    weights = {}
    for each in hours:
        weights[bucket_of(each * 3600)] = weights.get(bucket_of(each * 3600), 0.0) + 20.0
    return Records(History({kind: Sketch(weights) for kind in (job or a_job()).run_time_classes}))


class TestTheUsualCourse:
    def test_a_job_that_fits_starts_now(self):
        assert starts(waiting=[a_job("a")]) == {"a": NOW}

    def test_a_job_waits_until_the_running_one_must_end_where_nothing_has_been_learned(self):
        running = a_running_job("r", max_runtime=HOUR)
        assert starts(active=[running], waiting=[a_job("a")], cap=1) == {"a": NOW + HOUR}

    def test_jobs_behind_one_another_add_up(self):
        running = a_running_job("r", max_runtime=HOUR)
        waiting = [a_job("a", max_runtime=2 * HOUR), a_job("b", entry_time=at(1))]
        assert starts(active=[running], waiting=waiting, cap=1) == {"a": NOW + HOUR, "b": NOW + 3 * HOUR}

    def test_preempting_takes_as_long_as_a_stop(self):
        running = a_running_job("r")
        assert starts(active=[running], waiting=[a_job("a", priority=1)], cap=1) == {"a": NOW + STOP_DURATION}

    def test_a_burst_of_more_jobs_than_a_pass_starts_does_not_wait_for_another_event(self):
        """Another pass follows at once."""
        waiting = [a_job(f"job{number}", entry_time=at(number)) for number in range(7)]
        running = a_running_job("r", units={P5: 7}, max_runtime=HOUR)
        policy = Policy(max_actions=2)
        assert set(starts(active=[running], waiting=waiting, cap=7, policy=policy).values()) == {NOW + HOUR}

    def test_the_end_of_a_protection_is_waited_for_and_then_the_stop(self):
        running = a_running_job("r", now=NOW)
        policy = Policy(preemption=Preemption(min_runtime=HOUR))
        start = starts(active=[running], waiting=[a_job("a", priority=1)], cap=1, policy=policy)["a"]
        assert start == NOW + HOUR + STOP_DURATION

    def test_the_preempted_job_resumes_before_those_that_came_later(self):
        running = a_running_job("r", entry_time=at(-9))
        waiting = [a_job("a", priority=1, max_runtime=HOUR), a_job("b")]
        assert starts(active=[running], waiting=waiting, cap=1, wanted=["b"])["b"] > NOW + 24 * HOUR

    @pytest.mark.parametrize(("checkpointed", "hours"), [(True, 1 + 14), (False, 1 + 24)])
    def test_a_preempted_job_goes_on_from_its_checkpoint_or_starts_over(self, checkpointed, hours):
        running = a_running_job("r", now=NOW - 10 * HOUR, entry_time=at(-99_999), checkpointed=checkpointed)
        waiting = [a_job("a", priority=1, max_runtime=HOUR), a_job("b")]
        start = starts(active=[running], waiting=waiting, cap=1, wanted=["b"])["b"]
        assert hours_after_now(start) == pytest.approx(hours, abs=0.2)

    def test_a_job_that_is_stopping_for_good_does_not_come_back(self):
        stopping = lifecycle.request_stop(a_running_job("r", entry_time=at(-9)), NOW, "ada")
        assert starts(active=[stopping], waiting=[a_job("a")], cap=1) == {"a": NOW + STOP_DURATION}

    def test_a_stop_that_is_overdue_is_expected_any_minute(self):
        stuck = a_preempting_job("r", beneficiary="a", now=at(-600))
        assert starts(active=[stuck], waiting=[a_job("a", priority=1)], cap=1)["a"] <= NOW + timedelta(minutes=2)

    def test_a_job_that_can_never_fit_has_no_start(self):
        assert starts(waiting=[a_job("a", units={P5: 9})]) == {}

    def test_what_jobs_of_the_kind_have_run_counts_instead_of_the_limit(self):
        running = a_running_job("r", now=NOW)
        start = starts(active=[running], waiting=[a_job("a")], cap=1, records=learned(2, 2, 2))["a"]
        assert 1.4 <= hours_after_now(start) <= 2.9

    def test_a_job_that_has_outlived_all_others_is_expected_to_go_on(self):
        running = a_running_job("r", now=NOW - 9 * HOUR)
        start = starts(active=[running], waiting=[a_job("a")], cap=1, records=learned(2, 2, 2))["a"]
        assert hours_after_now(start) == pytest.approx(9)

    def test_a_newcomer_preempts_when_it_may(self):
        policy = Policy(preemption=Preemption(delay=HOUR, cooldown=timedelta(0)))
        waiting = [a_job("a", priority=1)]
        start = starts(active=[a_running_job("r")], waiting=waiting, cap=1, policy=policy)["a"]
        assert start == NOW + HOUR + STOP_DURATION

    def test_a_group_runs_no_more_at_once_than_it_may(self):
        waiting = [a_job(f"g{n}", group="g", max_concurrent=2, max_runtime=HOUR, entry_time=at(n)) for n in range(6)]
        found = starts(waiting=waiting, cap=9)
        assert [hours_after_now(found[f"g{n}"]) for n in range(6)] == [0, 0, 1, 1, 2, 2]

    def test_a_budget_that_jobs_will_have_spent_is_waited_for(self):
        budget = Budget(gpu_hours=8, period=timedelta(days=30))
        policy = Policy(shares={"vision": Share(name="vision", nominal={P5: 2}, budget=budget)})
        waiting = [a_job(f"j{n}", share="vision", max_runtime=HOUR, entry_time=at(n)) for n in range(2)]
        found = starts(waiting=waiting, cap=1, policy=policy)
        assert found == {"j0": NOW, "j1": period_end(budget, NOW)}

    def test_a_training_plan_is_waited_for_and_ends_what_runs_on_it(self):
        plan = Pool("plan", 1, type_=P5, kind=Kind.TRAINING_PLAN, plan_arn="arn", plan_status=PlanStatus.SCHEDULED)
        plan = replace(plan, starts_at=NOW + 2 * HOUR, ends_at=NOW + 10 * HOUR)
        waiting = [a_job("a", units={"plan": 1}, checkpointed=True)]
        assert starts(waiting=waiting, pools=pools_of(plan)) == {"a": NOW + 2 * HOUR}

    def test_a_warm_pool_that_is_ended_for_a_job_is_gone(self):
        warm = WarmPool("old", {P5: 1}, "", NOW + HOUR)
        assert starts(waiting=[a_job("a")], cap=1, warm=(warm,))["a"] <= NOW + timedelta(minutes=5)

    def test_a_job_of_which_capacity_was_missing_is_tried_again_when_it_is_due(self):
        assert starts(waiting=[a_job("a", retry_at=NOW + HOUR, capacity_failures=1)]) == {"a": NOW + HOUR}

    def test_a_job_that_is_tried_again_keeps_others_back_until_it_works(self):
        tried = lifecycle.mark_launched(a_starting_job("hi", priority=5, now=NOW - HOUR))
        lacked = lifecycle.requeue_unlaunched(tried, NOW - HOUR, "ResourceLimitExceeded: full")
        again = lifecycle.start(lacked, {P5: 1}, (), at(-60))
        assert starts(active=[again], waiting=[a_job("a")]) == {"a": at(-60) + STOP_DURATION}

    def test_jobs_as_large_as_one_for_which_capacity_was_missing_start_once_it_works(self):
        tried = lifecycle.mark_launched(a_starting_job("a", now=at(-10)))
        lacked = lifecycle.requeue_unlaunched(tried, NOW, "CapacityError: none")
        waiting = [lacked, a_job("b"), a_job("c")]
        assert starts(waiting=waiting, cap=3) == {"a": at(60), **dict.fromkeys("bc", at(60) + STOP_DURATION)}

    def test_jobs_of_other_pools_make_no_difference(self):
        other = [a_job(f"o{n}", units={G5: 1}, priority=9, entry_time=at(n)) for n in range(500)]
        pools = pools_of(a_pool(P5, 1), a_pool(G5, 1))
        running = [a_running_job("r", max_runtime=HOUR)]
        found = starts(active=running, waiting=[*other, a_job("a")], pools=pools, wanted=["a"])
        assert found == {"a": NOW + HOUR}

    def test_nothing_is_foreseen_beyond_a_year(self):
        waiting = [a_job(f"j{n:03}", max_runtime=28 * DAY, entry_time=at(n)) for n in range(20)]
        found = starts(waiting=waiting, cap=1)
        assert list(found) == [f"j{n:03}" for n in range(14)]
        assert max(found.values()) <= NOW + HORIZON

    @examples(40, deadline=None)
    @given(st.data())
    def test_where_all_goes_as_it_is_taken_to_go_jobs_start_when_foreseen(self, data):
        """First in, first out among equals: there what is learned on the way changes no decision."""
        policy = Policy(order=Order.FIFO, patience=timedelta(days=999))
        sim = PlannerSim(a_pool(P5, 4), policy=policy, stops=STOP_DURATION.total_seconds())
        for number in range(data.draw(st.integers(1, 9))):
            hours, count = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 4))
            sim.submit(a_job(f"j{number}", units={P5: count}, max_runtime=hours * HOUR), seconds=hours * 3600)
        queue = a_queue(pools=sim.pools, waiting=sim.jobs.values(), policy=policy)
        foreseen = forecast(queue, NOW, RNG, schedule, frozenset(sim.jobs))
        sim.run_until_ended()
        really = {name: job.attempts[0].created_at for name, job in sim.jobs.items()}
        assert foreseen == really


class TestTheRange:
    def test_what_fits_starts_now_in_any_case(self):
        (range_,) = ranges(waiting=[a_job("a")]).values()
        assert (range_.low, range_.expected, range_.high) == (NOW, NOW, NOW)

    def test_it_goes_from_quick_jobs_to_slow_ones(self):
        running = a_running_job("r", now=NOW)
        known = learned(0.1, 0.2, 0.5, 1, 2, 4, 8, 16, job=running)
        (range_,) = ranges(active=[running], waiting=[a_job("a")], cap=1, records=known).values()
        low, expected, high = map(hours_after_now, (range_.low, range_.expected, range_.high))
        assert low < 0.2
        assert 0.5 < expected < 2
        assert 8 < high < 24

    def test_a_stop_takes_longer_in_the_slow_course_than_in_the_quick_one(self):
        running = a_running_job("r")
        found = ranges(active=[running], waiting=[a_job("a", priority=1)], cap=1)["a"]
        assert NOW < found.low < found.expected == NOW + STOP_DURATION < found.high

    def test_no_job_is_taken_to_run_beyond_its_limit(self):
        running = a_running_job("r", now=NOW, max_runtime=2 * HOUR)
        (range_,) = ranges(active=[running], waiting=[a_job("a")], cap=1, records=learned(9, 9, job=running)).values()
        assert range_.high == range_.expected == NOW + 2 * HOUR

    @pytest.mark.parametrize("order", [Order.BACKFILL, Order.GITTINS])
    def test_it_reaches_a_year_ahead_where_the_slow_course_does_not_get_to_the_job(self, order):
        waiting = [a_job(f"w{n:02}", entry_time=at(n), max_runtime=28 * DAY) for n in range(60)]
        queue = {"active": [a_running_job("r", now=NOW)], "waiting": waiting, "cap": 1, "policy": Policy(order=order)}
        one_ended = Records(History({kind: Sketch({bucket_of(4 * 86_400): 1.0}) for kind in a_job().run_time_classes}))
        found = ranges(**queue, wanted=["w40"], records=one_ended)["w40"]
        assert found.expected < NOW + 300 * DAY
        assert found.high >= NOW + HORIZON

    @given(st.integers(1, 50))
    def test_the_fewer_jobs_have_ended_the_wider_it_is_around_the_same_start(self, count):
        def known(weight):
            return Records(History({kind: Sketch({9: float(weight)}) for kind in a_job().run_time_classes}))

        queue = {"active": [a_running_job("r", now=NOW)], "waiting": [a_job("w")], "cap": 1}
        few, more = (ranges(**queue, records=known(weight))["w"] for weight in (count, 2 * count))
        assert few.low <= more.low <= few.expected == more.expected <= more.high <= few.high

    def test_where_nothing_is_known_any_part_of_the_limit_may_be_used(self):
        running = a_running_job("r", now=NOW, max_runtime=20 * HOUR)
        (range_,) = ranges(active=[running], waiting=[a_job("a")], cap=1).values()
        assert (range_.low, range_.expected, range_.high) == (NOW + HOUR, NOW + 20 * HOUR, NOW + 20 * HOUR)

    @examples(40, deadline=None)
    @given(st.data())
    def test_it_is_in_order_and_never_in_the_past(self, data):
        counts = st.integers(1, 4)
        active = [
            a_running_job(f"r{n}", units={P5: 1}, now=NOW - data.draw(st.integers(0, 9)) * HOUR, priority=n % 2)
            for n in range(4)
        ]
        waiting = [
            a_job(f"w{n}", units={P5: data.draw(counts)}, priority=data.draw(st.integers(0, 2)), entry_time=at(n))
            for n in range(data.draw(st.integers(1, 8)))
        ]
        order = data.draw(st.sampled_from(list(Order)))
        known = data.draw(st.sampled_from([Records(), learned(0.1, 1, 9)]))
        found = ranges(active=active, waiting=waiting, cap=4, policy=Policy(order=order), records=known)
        assert found.keys() == {job.name for job in waiting}
        assert all(NOW <= each.low <= each.expected <= each.high for each in found.values())


class TestLongQueues:
    def test_a_queue_of_thousands_is_told_roughly(self):
        waiting = [a_job(f"j{n:04}", max_runtime=HOUR, entry_time=at(n)) for n in range(3_000)]
        found = starts(waiting=waiting, cap=10)
        assert len(found) == 3_000
        assert [hours_after_now(found[f"j{n:04}"]) for n in (0, 10, 2_999)] == [0, 1, 299]

    def test_the_planner_is_not_asked_for_longer_than_an_answer_may_take(self):
        looked = []

        def counting(snapshot, now, rng):
            looked.append(len(snapshot.active) + len(snapshot.waiting) + module.STEP_COST)
            return schedule(snapshot, now, rng)

        for size in (3, 30, 300):
            looked.clear()
            active = [a_running_job(f"r{n:03}", max_runtime=n * HOUR) for n in range(1, size)]
            waiting = [a_job(f"j{n:03}", units={P5: 1 + n % 3}, entry_time=at(n)) for n in range(size)]
            queue = a_queue(active=active, waiting=waiting, cap=size)
            assert len(estimate(queue, NOW, RNG, counting, frozenset(job.name for job in waiting))) == size
            assert sum(looked) <= 3 * (module.MAX_WORK + max(looked))

    @pytest.mark.parametrize("gap", [1, 0.4])
    def test_roughly_small_jobs_pass_a_large_one_that_they_do_not_delay(self, gap):
        active = [a_running_job(f"r{n}", units={P5: 1}, max_runtime=10 * HOUR) for n in range(9)]
        large = a_job("large", units={P5: 10}, entry_time=at(-9), max_runtime=HOUR)
        small = [a_job(f"s{n:04}", max_runtime=gap * 10 * HOUR, entry_time=at(n)) for n in range(1_000)]
        found = starts(active=active, waiting=[large, *small], cap=10)
        assert found["large"] == NOW + 10 * HOUR
        assert (found["s0000"], found["s0001"] < found["large"]) == (NOW, gap < 0.5)

    def test_roughly_nothing_is_said_of_jobs_that_wait_for_a_budget_or_a_training_plan(self):
        plan = Pool("plan", 1, type_=P5, kind=Kind.TRAINING_PLAN, plan_arn="arn", plan_status=PlanStatus.ACTIVE)
        plan = replace(plan, starts_at=NOW, ends_at=NOW + 99 * DAY)
        shares = {"vision": Share(name="vision", nominal={P5: 1}, budget=Budget(dollars=1e9))}
        waiting = [a_job(f"j{n:04}", share="vision", entry_time=at(n)) for n in range(500)]
        waiting += [a_job(f"p{n:04}", units={"plan": 1}, entry_time=at(n)) for n in range(500)]
        pools = pools_of(a_pool(P5, 1), plan)
        assert starts(waiting=waiting, pools=pools, policy=Policy(shares=shares)).keys() == {"j0000", "p0000"}

    def test_roughly_a_group_runs_no_more_at_once_than_it_may(self):
        waiting = [
            a_job(f"g{n:04}", group="g", max_concurrent=20, max_runtime=HOUR, entry_time=at(n)) for n in range(1_000)
        ]
        found = starts(waiting=[*waiting, a_job("other", entry_time=at(9_999))], cap=30)
        assert [hours_after_now(found[f"g{n:04}"]) for n in (19, 20, 999)] == [0, 1, 49]
        assert found["other"] == NOW

    def test_roughly_shares_stay_within_their_bounds(self):
        shares = {
            "speech": Share(name="speech", nominal={P5: 6}, lending=Lending.RESERVE),
            "vision": Share(name="vision", nominal={P5: 2}, borrows={P5: 1}, max_per_user={P5: 2}),
        }
        jobs = [
            a_job(f"v{n:04}", share="vision", submitted_by=f"user{n % 2}", max_runtime=HOUR, entry_time=at(n))
            for n in range(1_000)
        ]
        found = starts(waiting=jobs, cap=12, policy=Policy(shares=shares))
        at_once = [sum(start == NOW + n * HOUR for start in found.values()) for n in range(3)]
        assert at_once == [3, 3, 3]

    def test_roughly_what_a_share_keeps_is_not_there_for_others(self):
        shares = {
            "speech": Share(name="speech", nominal={P5: 6}, lending=Lending.RESERVE),
            "vision": Share(name="vision", nominal={P5: 2}),
        }
        jobs = [a_job(f"v{n:04}", share="vision", max_runtime=HOUR, entry_time=at(n)) for n in range(1_000)]
        running = [a_running_job("r", share="speech", units={P5: 2}, max_runtime=99 * HOUR)]
        found = starts(active=running, waiting=jobs, cap=12, policy=Policy(shares=shares))
        at_once = [sum(start == NOW + n * HOUR for start in found.values()) for n in range(3)]
        assert at_once == [6, 6, 6]

    def test_the_approximation_lets_no_job_pass_under_fifo(self):
        active = [a_running_job(f"r{n}", units={P5: 1}, max_runtime=10 * HOUR) for n in range(9)]
        large = a_job("large", units={P5: 10}, entry_time=at(-9), max_runtime=HOUR)
        small = [a_job(f"s{n:04}", max_runtime=HOUR, entry_time=at(n)) for n in range(1_000)]
        found = starts(active=active, waiting=[large, *small], cap=10, policy=Policy(order=Order.FIFO))
        assert (found["large"], found["s0000"]) == (NOW + 10 * HOUR, NOW + 11 * HOUR)

    def test_roughly_a_job_that_may_run_in_several_pools_takes_the_first_that_is_there(self):
        pools = pools_of(a_pool(P5, 1), a_pool(G5, 1))
        waiting = [a_job(f"j{n:04}", max_runtime=HOUR, entry_time=at(n)) for n in range(800)]
        either = a_job("either", demand=replace(waiting[0].demand, alternatives=({P5: 1}, {G5: 1})), entry_time=at(999))
        active = [a_running_job("r", units={G5: 1}, max_runtime=3 * HOUR)]
        assert starts(active=active, waiting=[*waiting, either], pools=pools)["either"] == NOW + 3 * HOUR


class TestDelays:
    def test_who_would_start_later_and_by_how_much(self):
        before = a_queue(active=[a_running_job("r", max_runtime=HOUR)], waiting=[a_job("b", entry_time=at(9))], cap=1)
        after = replace(before, waiting=(a_job("a", max_runtime=2 * HOUR), *before.waiting))
        assert delays(before, after, NOW, RNG, schedule, frozenset(["b"])) == {"b": (NOW + HOUR, NOW + 3 * HOUR)}

    def test_a_minute_is_no_delay(self):
        before = a_queue(active=[a_running_job("r", max_runtime=HOUR)], waiting=[a_job("b", entry_time=at(9))], cap=1)
        after = replace(before, waiting=(a_job("a", max_runtime=timedelta(minutes=1)), *before.waiting))
        assert delays(before, after, NOW, RNG, schedule, frozenset(["b"])) == {}

    def test_in_long_queues_too(self):
        waiting = tuple(a_job(f"j{n:04}", max_runtime=HOUR, entry_time=at(n)) for n in range(1_500))
        before = a_queue(waiting=waiting, cap=10)
        after = replace(before, waiting=(a_job("a", units={P5: 10}, max_runtime=HOUR, priority=1), *waiting))
        found = delays(before, after, NOW, RNG, schedule, frozenset(["j0007", "j0011"]))
        assert found == {"j0007": (NOW, NOW + HOUR), "j0011": (NOW + HOUR, NOW + 2 * HOUR)}
