"""Image jobs in plans: what starts at endpoints, in which order it is looked at, and what others do not feel of it."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

import builders as b
from image_builders import a_report, a_running_image, an_endpoint_pool, an_image_job, an_image_work, must
from trainmaster.domain.capacity.resolve import resolve
from trainmaster.domain.capacity.resources import Resources
from trainmaster.domain.capacity.units import Demand
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.run_times import History
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.policy.settings import Expansion, Lending, Order, Policy, Share
from trainmaster.domain.reasons.capacity import NextPass, ReservedForOther, WaitsForCapacity
from trainmaster.domain.reasons.rules import NotInService
from trainmaster.domain.records import Records
from trainmaster.images.domain.endpoint import pool_name
from trainmaster.planner.placement.service_loads import least_loaded_first
from trainmaster.planner.plan_builder import WORK_STARTS
from trainmaster.planner.reservations.expected_ends import ExpectedEnds
from trainmaster.planner.schedule import schedule
from trainmaster.service.explain.explain import explain_in
from trainmaster.service.explain.why import diagnose

SHIPS, CARS, TREES = (pool_name(name, "blue") for name in ("ships", "cars", "trees"))


def a_queue(*, active=(), waiting=(), policy=None, caps=None, **fields) -> Snapshot:
    """Endpoints `ships`, `cars` and `trees`, which take eight requests each, beside two P5 instances."""
    caps = {"ships": 8, "cars": 8, "trees": 8} | (caps or {})
    pools = [b.a_pool(), *(an_endpoint_pool(cap, endpoint=name) for name, cap in caps.items())]
    return replace(b.a_snapshot(pools=pools, active=active, waiting=waiting, policy=policy), **fields)


def plan_of(snapshot, now=b.NOW):
    return schedule(snapshot, now, random.Random(1))


def started(snapshot, now=b.NOW):
    return [start.job.name for start in plan_of(snapshot, now).starts]


def reason_of(snapshot, name):
    return next(wait.reason for wait in plan_of(snapshot).waits if wait.job.name == name)


# ---------------------------------------------------------------- capacity


def test_a_job_starts_where_its_requests_fit_beside_what_runs():
    queue = a_queue(active=[a_running_image("a", 4)], waiting=[an_image_job("b", 4)])
    assert plan_of(queue).starts[0].units == {SHIPS: 4}


def test_w19_a_pass_starts_many_image_jobs_of_which_four_count_as_much_as_one_training_job():
    """They ask nothing of SageMaker."""
    waiting = [an_image_job(f"image{number}", 1) for number in range(9)]
    queue = a_queue(waiting=waiting, caps={"ships": 20}, policy=Policy(max_actions=2))
    assert len(plan_of(queue).starts) == 2 * WORK_STARTS
    assert reason_of(queue, "image8") == NextPass()
    training = [b.a_job(f"job{number}") for number in range(2)]
    queue = a_queue(waiting=[*waiting[:5], *training], caps={"ships": 20}, policy=Policy(max_actions=2))
    assert len(plan_of(queue).starts) == 5 + 1


def test_of_two_equal_jobs_the_one_that_has_just_finished_a_region_steps_aside():
    """Nothing of a done region is lost, so it has less to do again."""
    after = 7200
    reports = {"a": 7190, "b": 300, "c": 7195}
    jobs = [a_running_image(name, 32, units=8, checkpointed=True) for name in reports]
    told = [
        must(lifecycle.observe(job, a_report(job, done=1, left=28), b.at(seconds)))
        for job, seconds in zip(jobs, reports.values(), strict=True)
    ]
    for active in (told[:2], told[1:], told):
        newest = max(active, key=lambda job: reports[job.name])
        queue = a_queue(active=active, waiting=[an_image_job("better", 8, priority=9)], caps={"ships": 8 * len(active)})
        (preemption,) = plan_of(queue, b.at(after)).preemptions
        assert [victim.name for victim in preemption.victims] == [newest.name]


def test_a_job_that_does_not_fit_waits_and_is_told_for_how_many_requests():
    queue = a_queue(active=[a_running_image("a", 4)], waiting=[an_image_job("b", 8)])
    reason = reason_of(queue, "b")
    assert isinstance(reason, WaitsForCapacity)
    assert reason.message().startswith(f"waits for 4 of 8 requests at {SHIPS}: 4 free for it now")


@pytest.mark.parametrize("load", [9, 32, 400])
def test_an_image_that_is_larger_than_its_endpoint_starts_alone_and_takes_all_of_it(load):
    assert plan_of(a_queue(waiting=[an_image_job("b", load)])).starts[0].units == {SHIPS: 8}
    assert started(a_queue(active=[a_running_image("a", 1)], waiting=[an_image_job("b", load)])) == []


@pytest.mark.parametrize("load", [4, 400])
def test_w17_a_job_waits_for_its_throttled_endpoint_and_others_start(load):
    waiting = [an_image_job("b", load), an_image_job("c", 4, endpoint="cars")]
    queue = a_queue(active=[a_running_image("a", 2)], waiting=waiting)
    out = replace(queue.pools[SHIPS], draining=True, status="OutOfService")
    queue = replace(queue, pools=queue.pools | {SHIPS: out})
    assert started(queue) == ["c"]
    assert reason_of(queue, "b") == NotInService(SHIPS, "OutOfService")
    assert started(replace(queue, active=(), pools=queue.pools | {SHIPS: an_endpoint_pool(8)})) == ["b", "c"]


def test_w9_what_finished_regions_gave_back_is_there_for_the_next():
    running = a_running_image("a", 8)
    half = replace(running, attempt=replace(running.attempt, units={SHIPS: 4}))
    assert started(a_queue(active=[running], waiting=[an_image_job("b", 4)])) == []
    assert started(a_queue(active=[half], waiting=[an_image_job("b", 4)])) == ["b"]


def test_w13_variants_of_one_endpoint_take_nothing_from_each_other():
    green = replace(an_endpoint_pool(2, variant="green"))
    queue = a_queue(active=[a_running_image("a", 8)], waiting=[an_image_job("b", 2, variant="green")])
    queue = replace(queue, pools={**queue.pools, green.name: green})
    assert started(queue) == ["b"]


def test_a_cap_below_the_used_units_stops_and_starts_no_job():
    plan = plan_of(a_queue(active=[a_running_image("a", 8)], waiting=[an_image_job("b", 1)], caps={"ships": 4}))
    assert (plan.starts, plan.preemptions) == ((), ())


def test_a_job_whose_endpoint_no_reading_brought_is_told_so_and_others_start():
    queue = a_queue(waiting=[an_image_job("a", endpoint="gone"), an_image_job("b")])
    assert reason_of(queue, "a").message() == f"can never fit: {pool_name('gone', 'blue')} is unknown"
    assert started(queue) == ["b"]


# ---------------------------------------------------------------- others on the same endpoint, and on other ones


def test_w5_one_full_endpoint_delays_no_other():
    waiting = [
        an_image_job("first", 8, entry_time=b.at(-100)),
        an_image_job("second", 8, endpoint="cars", entry_time=b.at(-50)),
    ]
    assert started(a_queue(active=[a_running_image("a", 8)], waiting=waiting)) == ["second"]


def test_w5_a_smaller_job_passes_one_that_does_not_fit_where_it_delays_it_not():
    """It ends, for all that is known, before the large one could start."""
    history = learned(3_000)
    active = [
        a_running_image("a", 4, now=b.at(-10)),
    ]
    waiting = [
        an_image_job("large", 8, entry_time=b.at(-100)),
        an_image_job("small", entry_time=b.at(-50), work=an_image_work(2, tiles=4)),
    ]
    queue = a_queue(active=active, waiting=waiting, records=Records(history=history))
    assert started(queue) == ["small"]


def test_a_large_image_is_not_starved_by_small_ones():
    history = learned(3_000)
    active = [a_running_image("a", 4, now=b.at(-2_000))]
    waiting = [
        an_image_job("large", 8, entry_time=b.at(-100)),
        *(an_image_job(f"small{number}", 2, entry_time=b.at(-50 + number)) for number in range(5)),
    ]
    queue = a_queue(active=active, waiting=waiting, records=Records(history=history))
    assert started(queue) == []
    assert isinstance(reason_of(queue, "small0"), ReservedForOther)
    assert [each.job for each in plan_of(queue).reservations] == ["large", "small0", "small1", "small2"]


def test_image_jobs_and_training_jobs_wait_for_nothing_of_each_other():
    active = [b.a_running_job("p5", units={b.P5: 2})]
    waiting = [b.a_job("train", priority=9), an_image_job("image"), b.a_job("train2", entry_time=b.at(1))]
    assert started(a_queue(active=active, waiting=waiting)) == ["image"]


def test_a_higher_priority_takes_an_endpoint_from_a_lower_one():
    queue = a_queue(active=[a_running_image("a", 8, now=b.at(-7200))], waiting=[an_image_job("b", 8, priority=5)])
    assert [victim.name for victim in plan_of(queue).preemptions[0].victims] == ["a"]


# ---------------------------------------------------------------- which endpoint first


def test_w6_the_endpoint_with_the_least_running_load_is_looked_at_first():
    waiting = [
        an_image_job("ship", 2, entry_time=b.at(-100)),
        an_image_job("car", 2, endpoint="cars", entry_time=b.at(-50)),
        an_image_job("tree", 2, endpoint="trees", entry_time=b.at(-20)),
    ]
    active = [a_running_image("a", 4), a_running_image("c", 2, endpoint="cars")]
    assert started(a_queue(active=active, waiting=waiting)) == ["tree", "car", "ship"]


def test_w6_what_waits_is_no_load():
    """A deep backlog of the endpoint that has run nothing yet does not put its oldest job behind a newer one."""
    backlog = [an_image_job(f"ship{number:02}", 8, entry_time=b.at(-100 + number)) for number in range(30)]
    newer = an_image_job("car", 1, endpoint="cars", entry_time=b.at(-5))
    assert started(a_queue(waiting=[*backlog, newer])) == ["ship00", "car"]


def test_w6_load_is_a_part_of_what_the_endpoint_takes():
    active = [a_running_image("a", 20), a_running_image("c", 4, endpoint="cars")]
    waiting = [
        an_image_job("car", 1, endpoint="cars", entry_time=b.at(-100)),
        an_image_job("ship", 1, entry_time=b.at(-50)),
    ]
    queue = a_queue(active=active, waiting=waiting, caps={"ships": 100})
    assert started(queue) == ["ship", "car"]


def test_jobs_that_the_plan_starts_count_as_load():
    waiting = [
        *(an_image_job(f"ship{number}", 4, entry_time=b.at(-100 + number)) for number in range(2)),
        *(an_image_job(f"car{number}", 2, endpoint="cars", entry_time=b.at(-50 + number)) for number in range(3)),
    ]
    assert started(a_queue(waiting=waiting)) == ["ship0", "car0", "car1", "ship1", "car2"]


def test_priority_goes_before_load():
    waiting = [
        an_image_job("ship", 2, priority=1),
        an_image_job("car", 2, endpoint="cars", entry_time=b.at(-100)),
    ]
    assert started(a_queue(active=[a_running_image("a", 4)], waiting=waiting)) == ["ship", "car"]


def test_first_in_first_out_stays_what_it_says():
    waiting = [
        an_image_job("ship", 2, entry_time=b.at(-100)),
        an_image_job("car", 2, endpoint="cars", entry_time=b.at(-50)),
    ]
    queue = a_queue(active=[a_running_image("a", 4)], waiting=waiting, policy=Policy(order=Order.FIFO))
    assert started(queue) == ["ship", "car"]


def test_training_jobs_keep_their_places_and_pools_their_order():
    waiting = [
        b.a_job("train1", entry_time=b.at(-100)),
        an_image_job("ship1", 2, entry_time=b.at(-90)),
        b.a_job("train2", entry_time=b.at(-80)),
        an_image_job("ship2", 2, entry_time=b.at(-70)),
        an_image_job("car", 2, endpoint="cars", entry_time=b.at(-60)),
    ]
    queue = resolve(a_queue(active=[a_running_image("a", 4)], waiting=waiting))
    ordered = least_loaded_first(queue.waiting, queue, lambda job: job.priority)
    assert [job.name for job in ordered] == ["train1", "car", "train2", "ship1", "ship2"]


def test_without_endpoints_no_service_is_called():
    queue = b.a_snapshot(waiting=[b.a_job("a"), b.a_job("b")])

    def tier(job):
        raise AssertionError(f"asked of {job.name}")

    assert least_loaded_first(queue.waiting, queue, tier) == list(queue.waiting)


# ---------------------------------------------------------------- shares, orders, and what does not apply

ORDERS = tuple(Order)


@pytest.mark.parametrize("order", ORDERS)
def test_in_every_order_image_jobs_start_beside_training_jobs(order):
    waiting = [b.a_job("train"), an_image_job("image", 8), an_image_job("more", 4)]
    active = [a_running_image("a", 4, endpoint="cars"), b.a_running_job("p5")]
    assert set(started(a_queue(active=active, waiting=waiting, policy=Policy(order=order)))) == {"train", "image"}


@pytest.mark.parametrize("lending", ["reserve", "lend", "lend-and-borrow"])
def test_an_endpoint_is_no_shares_own_so_none_is_kept_from_it(lending):
    shares = {
        "team": Share(name="team", nominal={b.P5: 1}, lending=lending),
        "other": Share(name="other", nominal={b.P5: 1}),
    }
    waiting = [an_image_job("mine", 4, share="team"), an_image_job("theirs", 4, share="stranger")]
    assert set(started(a_queue(waiting=waiting, policy=Policy(shares=shares)))) == {"mine", "theirs"}


def test_no_share_takes_an_endpoint_back_from_another():
    shares = {"team": Share(name="team", nominal={b.P5: 2})}
    for owner, holder in (("team", "default"), ("default", "team")):
        active = [a_running_image("a", 8, share=holder, now=b.at(-7200))]
        waiting = [an_image_job("b", 8, share=owner, priority=9)]
        assert plan_of(a_queue(active=active, waiting=waiting, policy=Policy(shares=shares))).preemptions == ()


def test_a_share_reclaims_its_endpoint_units_from_borrowers():
    """The owner has lent 5 of its 6 requests; no priority is needed to have them again, nor serves to have more."""
    shares = {"team": Share(name="team", nominal={SHIPS: 6})}
    active = [a_running_image("a", 4, now=b.at(-7200)), a_running_image("b", 3, now=b.at(-7200), priority=9)]
    for load, victims in ((6, {"a", "b"}), (5, {"a"}), (7, set())):
        waiting = [an_image_job("mine", load, share="team")]
        plan = plan_of(a_queue(active=active, waiting=waiting, policy=Policy(shares=shares)))
        assert {victim.name for each in plan.preemptions for victim in each.victims} == victims


def test_reserved_endpoint_units_are_never_lent():
    shares = {"team": Share(name="team", nominal={SHIPS: 6}, lending=Lending.RESERVE)}
    theirs = [an_image_job("a", 2), an_image_job("b", 1, entry_time=b.at(1))]
    policy = Policy(shares=shares)
    assert started(a_queue(waiting=theirs, policy=policy)) == ["a"]
    assert started(a_queue(waiting=[*theirs, an_image_job("mine", 6, share="team")], policy=policy)) == ["mine", "a"]
    # A missing endpoint is no reason to keep anything: at other endpoints nothing changes.
    gone = {name: replace(share, nominal={pool_name("gone", "blue"): 6}) for name, share in shares.items()}
    assert started(a_queue(waiting=theirs, policy=Policy(shares=gone))) == ["a", "b"]


@pytest.mark.parametrize(
    "bound", [{"max": {SHIPS: 3}}, {"max_per_user": {SHIPS: 3}}, {"nominal": {SHIPS: 1}, "borrows": {SHIPS: 2}}]
)
def test_a_share_that_is_bounded_at_an_endpoint_holds_no_more_and_a_larger_image_all_of_that(bound):
    policy = Policy(shares={"team": Share(name="team", **bound)})
    small = [an_image_job(f"s{number}", 2, share="team", entry_time=b.at(number)) for number in range(3)]
    assert started(a_queue(waiting=small, policy=policy)) == ["s0"]
    large = [an_image_job("large", 400, share="team")]
    assert plan_of(a_queue(waiting=large, policy=policy)).starts[0].units == {SHIPS: 3}
    assert started(a_queue(waiting=[an_image_job("other", 8)], policy=policy)) == ["other"]


def test_an_image_larger_than_what_others_leave_of_its_endpoint_asks_for_that():
    shares = {"team": Share(name="team", nominal={SHIPS: 6}, lending=Lending.RESERVE)}
    plan = plan_of(a_queue(waiting=[an_image_job("large", 400)], policy=Policy(shares=shares)))
    assert plan.starts[0].units == {SHIPS: 2}


def test_an_owner_still_starts_where_throttling_leaves_less_than_all_own():
    shares = {name: Share(name=name, nominal={SHIPS: 4}, lending=Lending.RESERVE) for name in ("ants", "bees")}
    queue = a_queue(waiting=[an_image_job("ant", 400, share="ants")], policy=Policy(shares=shares), caps={"ships": 2})
    assert plan_of(queue).starts[0].units == {SHIPS: 2}


@pytest.mark.parametrize("order", [Order.BACKFILL, Order.FAIR])
def test_shares_take_turns_at_an_endpoint_by_the_requests_that_they_hold(order):
    shares = {name: Share(name=name, nominal={b.P5: 1}) for name in ("ants", "bees")}
    waiting = [
        *(an_image_job(f"ant{number}", 2, share="ants", entry_time=b.at(-100)) for number in range(4)),
        *(an_image_job(f"bee{number}", 2, share="bees", entry_time=b.at(-50)) for number in range(4)),
    ]
    found = started(a_queue(waiting=waiting, policy=Policy(shares=shares, order=order)))
    assert sorted(found) == ["ant0", "ant1", "bee0", "bee1"]


def test_instances_that_a_share_holds_do_not_put_its_image_jobs_behind():
    """Units that a share holds in training pools do not count for endpoints, and the other way round."""
    shares = {name: Share(name=name, nominal={}) for name in ("ants", "bees")}
    active = [b.a_running_job("p5", units={b.P5: 2}, share="ants"), a_running_image("x", 2, share="bees")]
    waiting = [
        an_image_job("ant", 6, share="ants", entry_time=b.at(-1)),
        an_image_job("bee", 6, share="bees", entry_time=b.at(-100)),
    ]
    queue = a_queue(active=active, waiting=waiting, policy=Policy(shares=shares))
    assert started(queue) == ["ant"]


def test_image_jobs_spend_no_budget():
    policy = b.a_metered_policy("team")
    shares = {"team": replace(policy.shares["team"], budget=replace(policy.shares["team"].budget, gpu_hours=1.0))}
    active = [a_running_image("a", 4, share="team", now=b.at(-86_400))]
    waiting = [an_image_job("b", 4, share="team")]
    assert started(a_queue(active=active, waiting=waiting, policy=Policy(shares=shares))) == ["b"]


def test_no_pool_is_made_for_image_jobs_and_endpoints_hold_no_training_jobs():
    policy = Policy(expansion=Expansion(enabled=True))
    waiting = [an_image_job("a", 400), an_image_job("gone", endpoint="gone"), b.a_job("train", units={b.P5: 2})]
    plan = plan_of(a_queue(waiting=waiting, policy=policy))
    assert (plan.expansions, plan.retirements) == ((), ())
    assert {start.job.name: start.units for start in plan.starts} == {"a": {SHIPS: 8}, "train": {b.P5: 2}}


def end_of(job, history=None, quantile=0.5, now=b.NOW):
    queue = a_queue(active=[job], records=Records(history=history or History()))
    return (ExpectedEnds(queue, now, quantile).end(job) - now).total_seconds()


def test_before_anything_is_known_an_image_takes_a_second_a_tile_of_each_request_and_no_day():
    """81 tiles by two requests are 41 turns, and ten beside them."""
    job = a_running_image("a", 2, work=an_image_work(2, tiles=81))
    assert end_of(job) == pytest.approx(50.5)
    assert end_of(job, quantile=0.05) < 20
    assert 100 < end_of(job, quantile=0.9) < 600
    # Neither a day's training jobs nor its own limit, which is never set, bear on it.
    trained = History().after(b.an_ended_job("train", now=b.at(-86_400)))
    assert end_of(job, trained) == pytest.approx(50.5)
    # A job that has outlived that is expected to go on, ever longer.
    waits = [end_of(job, now=b.at(seconds)) for seconds in (60, 600, 6_000, 600_000)]
    assert waits == sorted(waits)
    assert waits[0] > 30


def test_run_times_of_an_endpoint_scale_with_tiles_per_request():
    history = learned(1_000)
    turns = 81 / 4 + 10  # of those that were learned of: 162 tiles at 8 requests
    for tiles, given in ((162, 8), (1_620, 8), (16_200, 4)):
        job = a_running_image("a", 8, units=given, work=an_image_work(8, tiles=tiles))
        assert end_of(job, history) == pytest.approx(1_000 * (tiles / given + 10) / turns, rel=0.2)


def test_a_running_images_end_is_told_by_its_regions_rather_than_by_history():
    """Of 100 regions four are at work at a time. After 20 minutes 60 are done."""
    job = a_running_image("a", 400, units=16, now=b.at(-1_200))
    job = replace(job, work=an_image_work(400, done=60, left=160))
    for history in (History(), learned(60), learned(80_000)):
        # 62 regions' work is done, 38 are left.
        assert end_of(job, history) == pytest.approx(1_200 * 38 / 62)
    low, high = (end_of(job, quantile=quantile) for quantile in (0.05, 0.9))
    assert 500 < low < 1_200 * 38 / 62 < high < 1_000
    early = replace(job, work=an_image_work(400, done=1, left=396))
    assert end_of(early, quantile=0.9) / end_of(early) > high / end_of(job)
    merging = replace(job, work=an_image_work(400, done=100, left=0))
    assert end_of(merging) == 60


def test_a_waiting_image_is_told_when_those_before_it_are_done_by_their_regions():
    job = a_running_image("a", 8, now=b.at(-600))
    job = replace(job, work=replace(job.work, done=1, left=4))
    waiting = an_image_job("b", 8)
    found = explain_in(a_queue(active=[job], waiting=[waiting]), b.NOW, [waiting])["b"]
    assert b.at(60) < found.earliest_start < found.estimated_start < found.latest_start < b.at(900)


def test_its_position_reason_and_start_are_told_as_for_any_other_job():
    history = learned(600)
    active = [a_running_image("a", 8, now=b.at(-300))]
    waiting = [an_image_job("first", 8), an_image_job("second", 8, entry_time=b.at(1))]
    queue = a_queue(active=active, waiting=waiting, records=Records(history=history))
    found = explain_in(queue, b.at(2), waiting)
    assert [found[name].position for name in ("first", "second")] == [1, 2]
    assert b.at(2) < found["first"].estimated_start < found["second"].estimated_start < b.at(3_600)


def test_no_advice_concerns_endpoint_instances_or_fewer_requests():
    waiting = [an_image_job("image", 8), b.a_job("train", units={b.P5: 2})]
    active = [a_running_image("a", 4), b.a_running_job("p5", units={b.P5: 2})]
    queue = a_queue(active=active, waiting=waiting)
    for job in waiting:
        advice = diagnose(queue, b.at(1), job).advice
        assert [each for each in advice if each.pool is not None] == []
        assert diagnose(queue, b.at(1), job).holders


def test_a_job_by_resources_is_never_placed_at_an_endpoint():
    demand = Demand((), queue_selects_pool=True, resources=Resources(accelerators=1), instances=1)
    queue = resolve(a_queue(waiting=[an_image_job("image"), b.a_job("train", demand=demand)]))
    assert {job.name: job.demand.pools for job in queue.waiting} == {"image": (SHIPS,), "train": (b.P5,)}


def learned(seconds: float) -> History:
    """Return the history of image jobs that ran so long."""
    history = History()
    for number in range(20):
        job = a_running_image(f"past{number}", 8, now=b.at(-seconds))
        done = replace(job.attempt, ended_at=b.NOW)
        history = history.after(replace(b.an_ended_job(f"past{number}"), work=an_image_work(8), attempt=done))
    return history
