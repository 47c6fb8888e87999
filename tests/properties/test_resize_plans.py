"""Elastic jobs never bounce: on random queues and clusters, played in virtual time to their end or to rest.

Every pass is checked by `elastic_planner_sim`: caps, legal sizes, none stopped if shrinking suffices, none touched for
a job that could not start, and none grown while a job waits that could have it shrink again.
"""

from __future__ import annotations

import random
from datetime import timedelta
from itertools import pairwise

from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st

from builders import G5, P5, a_job, a_pool
from elastic_planner_sim import ElasticPlannerSim
from trainmaster.domain.elastic.sizes import Cause, Elastic, Hook
from trainmaster.domain.jobs.job import ENDED, JobState
from trainmaster.domain.policy.settings import Order, Policy, Resizes, Share
from trainmaster.planner.schedule import schedule

LONG = 5_000_000.0
slow = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])

sizes = st.sampled_from(
    (
        {"min_instances": 1, "max_instances": 4},
        {"min_instances": 1, "max_instances": 6},
        {"min_instances": 2, "max_instances": 6, "step": 2},
        {"min_instances": 1, "max_instances": 4, "values": (1, 2, 4)},
        {"min_instances": 2, "max_instances": 8, "values": (2, 3, 8)},
    )
)
timings = st.fixed_dictionaries(
    {
        "scaling_timeout": st.sampled_from((0, 60, 600)).map(lambda s: timedelta(seconds=s)),
        "scale_up_snooze": st.sampled_from((0, 900)).map(lambda s: timedelta(seconds=s)),
    }
)


@st.composite
def elastics(draw):
    return Elastic(hook=draw(st.sampled_from(list(Hook))), **draw(sizes), **draw(timings))


comers = st.lists(
    st.tuples(
        st.sampled_from((0, 10, 300, 3000)),  # seconds after the one before
        st.sampled_from((P5, P5, P5, G5)),
        st.integers(1, 5),  # instances, where it is not elastic
        st.none() | elastics() | elastics(),
        st.integers(0, 2),  # priority
        st.sampled_from((300, 3000, 30_000)),  # seconds of work at its least size
        st.sampled_from("ab"),  # share
        st.integers(0, 5),  # 0: may not be preempted
    ),
    min_size=2,
    max_size=8,
)


def policies(*orders):
    rules = st.builds(Resizes, shrink_equals=st.booleans(), payback=st.sampled_from((0.0, 2.0)))
    return st.builds(Policy, order=st.sampled_from(orders or (Order.BACKFILL, Order.FIFO)), resizes=rules)


def a_comer(index, row):
    _, pool, count, elastic, priority, _, share, chance = row
    units = {pool: elastic.min_instances if elastic else count}
    return a_job(
        f"j{index}", units=units, priority=priority, elastic=elastic, checkpointed=True, share=share,
        preemptible=chance > 0,
        max_runtime=timedelta(days=28),
    )  # fmt: skip


def played(rows, policy, *, work=None):
    sim = ElasticPlannerSim(a_pool(P5, 7), a_pool(G5, 5), policy=policy, stops=60, starts=40, moves=30)
    for index, row in enumerate(rows):
        sim.run(row[0])
        sim.submit(a_comer(index, row), seconds=work or row[5])
    return sim


def growths(sim):
    """Moments at which each job was decided to grow."""
    found = {}
    for each in sim.resizes:
        if each.cause is Cause.GROW:
            found.setdefault(each.job, []).append(each.at)
    return found


def spaced(sim):
    for name, moments in growths(sim).items():
        wait = sim.job(name).elastic.scaling_timeout
        assert all(after - before >= wait for before, after in pairwise(moments))
    return True


@given(comers, policies(*Order))
@slow
def test_all_come_to_their_end_with_legal_sizes_and_within_the_caps(rows, policy):
    sim = played(rows, policy)
    sim.run_until_ended()
    event(f"{min(len(sim.resizes), 5)} resizes or more")
    assert {job.state for job in sim.jobs.values()} == {JobState.COMPLETED}
    assert spaced(sim)


@given(comers, policies(Order.BACKFILL, Order.FIFO, Order.FAIR))
@slow
def test_with_an_unchanging_set_of_jobs_sizes_come_to_rest(rows, policy):
    sim = played(rows, policy, work=LONG)
    sim.run(20_000)
    before, sizes_then = len(sim.resizes), sim.sizes()
    sim.run(100_000)
    assert len(sim.resizes) == before
    assert sim.sizes() == sizes_then
    assert spaced(sim)


@given(comers, policies(*Order))
@slow
def test_a_job_that_was_shrunk_grows_only_once_that_one_has_started(rows, policy):
    sim = played(rows, policy)
    sim.run_until_ended()
    for place, each in enumerate(sim.resizes):
        later = [one for one in sim.resizes[place + 1 :] if one.job == each.job and one.cause is Cause.GROW]
        if each.cause is Cause.SHRINK and later:
            begun = [attempt.created_at for attempt in sim.job(each.freed_for).attempts]
            assert any(each.at <= at <= later[0].at for at in begun)


SHORT = (0, P5, 1, None, 0, 300, "a", 0)
LASTS_WITH_MEMBERS = Elastic(
    min_instances=1, max_instances=4, hook=Hook.MEMBERS, scaling_timeout=timedelta(0), scale_up_snooze=timedelta(0)
)
WANTS_FIVE_WHILE_ONE_ENDS = [
    *([SHORT] * 4),
    (0, P5, 3, None, 0, 3000, "a", 0),
    SHORT,
    (0, P5, 5, None, 1, 300, "a", 0),
    (0, P5, 1, LASTS_WITH_MEMBERS, 0, 300, "a", 1),
]


@given(comers, st.booleans())
@example(WANTS_FIVE_WHILE_ONE_ENDS, False)
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_between_shares_elastic_jobs_do_not_bounce_either(rows, equals):
    shares = {"a": Share(name="a", nominal={P5: 4, G5: 2}), "b": Share(name="b", nominal={P5: 3, G5: 3})}
    policy = Policy(shares=shares, resizes=Resizes(shrink_equals=equals))
    resting = played(rows, policy, work=LONG)
    resting.run(20_000)
    before = len(resting.resizes)
    resting.run(100_000)
    assert len(resting.resizes) == before
    ending = played(rows, policy)
    ending.run_until_ended()
    assert spaced(ending)


changes = st.lists(
    st.tuples(
        st.sampled_from((0, 20, 100, 2_000)),  # seconds after the one before
        st.integers(0, 7),  # the job
        st.integers(1, 5),  # a bound
        st.integers(1, 5),  # the other
    ),
    min_size=1,
    max_size=8,
)


def with_changes(sim, rows):
    """Change bounds of jobs that have not ended; the API takes no minimum above the cap of a pool."""
    for seconds, number, *bounds in rows:
        sim.run(seconds)
        job = sim.jobs.get(f"j{number}")
        if job is not None and job.elastic is not None and job.state not in ENDED:
            event("changed" if sim.change_bounds(job.name, min(bounds), max(bounds)) else "refused")
    return sim


@given(comers, changes, policies(*Order))
@slow
def test_jobs_whose_bounds_change_complete_within_the_caps(rows, changed, policy):
    sim = with_changes(played(rows, policy), changed)
    sim.run_until_ended()
    assert {job.state for job in sim.jobs.values()} == {JobState.COMPLETED}


@given(comers, changes, policies(*Order))
@slow
def test_sizes_come_into_changed_bounds_or_find_no_idle_instances_for_them(rows, changed, policy):
    sim = with_changes(played(rows, policy, work=LONG), changed)
    sim.run(100_000)
    waits_for = {pool for wait in sim.plan.waits for pool in wait.job.demand.pools}
    for job in sim.jobs.values():
        if job.elastic is None or job.state is not JobState.RUNNING or job.stopping:
            continue
        ((pool, size),) = job.units.items()
        if size not in job.elastic.sizes:
            used = sum(other.units.get(pool, 0) for other in sim.jobs.values())
            missing = job.elastic.min_instances - size
            assert missing > 0, "it is larger than its maximum"
            assert sim.pools[pool].cap - used < missing or pool in waits_for


@given(comers)
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_nothing_is_resized_where_the_policy_says_so(rows):
    sim = played(rows, Policy(resizes=Resizes(enabled=False)))
    sim.run_until_ended()
    assert not sim.resizes
    assert all(a.units == job.demand.alternatives[0] for job in sim.jobs.values() for a in job.attempts)


@given(comers, policies(), st.integers(0, 5_000))
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_equal_arguments_give_an_equal_plan(rows, policy, seconds):
    sim = played(rows, policy)
    sim.run(seconds)
    snapshot = sim.snapshot()
    assert schedule(snapshot, sim.now, random.Random(1)) == schedule(snapshot, sim.now, random.Random(1))


@given(comers, st.lists(st.sampled_from((5, 40, 700, 4000)), min_size=1, max_size=6), policies())
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_jobs_that_lose_members_continue_with_a_legal_size_and_complete(rows, losses, policy):
    sim = played(rows, policy)
    for seconds in losses:
        sim.run(seconds)
        with_members = [job for job in sim.jobs.values() if job.state is JobState.RUNNING and job.attempt.members]
        if with_members:
            sim.lose_member(min(with_members, key=lambda job: job.name).name)
            event("one was lost")
    sim.run(3_000)
    sim.accept_smaller_size()
    settled = [job for job in sim.jobs.values() if job.elastic and job.state is JobState.RUNNING]
    assert all(job.attempt.size in job.elastic.sizes for job in settled)
    sim.run_until_ended()
    assert {job.state for job in sim.jobs.values()} == {JobState.COMPLETED}
