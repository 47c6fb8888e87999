"""On any finite list of arrivals preemptions end, and no two jobs preempt each other in turn."""

from __future__ import annotations

import logging
from collections import Counter
from datetime import timedelta
from itertools import combinations

import pytest
from hypothesis import HealthCheck, event, given
from hypothesis import strategies as st

from builders import G5, P5, a_job, a_pool
from planner_sim import PlannerSim
from samples import examples
from trainmaster.domain.jobs.attempt import Outcome
from trainmaster.domain.jobs.job import JobState
from trainmaster.domain.policy.settings import Gittins, Order, Policy, Preemption, Share
from trainmaster.local.simulator import Profile
from world import World

CAPS = {P5: 3, G5: 4}
BRISK = Profile(
    requesting_seconds=1, starting_seconds=5, downloading_seconds=2, uploading_seconds=2, stopping_seconds=5
)

arrivals = st.lists(
    st.tuples(
        st.integers(0, 120),  # seconds after the one before
        st.sampled_from((P5, G5)),
        st.integers(1, 3),  # instances
        st.integers(0, 3),  # priority
        st.integers(5, 300),  # seconds of training
    ),
    min_size=2,
    max_size=9,
)


@pytest.fixture(autouse=True, scope="module")
def quiet():
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def preemptions(world: World, names: list[str]) -> set[tuple[str, str]]:
    """Pairs of a preempted job and the job that it was preempted for."""
    attempts = [(name, attempt) for name in names for attempt in world.job(name).attempts]
    return {(name, str(a.freed_for)) for name, a in attempts if a.outcome is Outcome.PREEMPTED}


@given(arrivals)
@examples(40, deadline=None)
def test_no_two_jobs_preempt_each_other_in_turn_and_all_come_to_their_end(jobs):
    world = World(pools=f"{P5}=3,{G5}=4", profile=BRISK)
    names = []
    for index, (pause, kind, count, priority, seconds) in enumerate(jobs):
        world.run(pause, step=15)
        world.submit(f"j{index}", kind=kind, count=count, priority=priority, training_seconds=seconds)
        names.append(f"j{index}")
    world.run_until_ended(*names)
    pairs = preemptions(world, names)
    assert not {(victim, winner) for victim, winner in pairs if (winner, victim) in pairs}
    assert all(world.job(victim).priority < world.job(winner).priority for victim, winner in pairs)
    assert {world.job(name).state for name in names} == {JobState.COMPLETED}
    # Each arrival can make a job step aside at most once for itself, and once more where a better one took its hold.
    assert all(len(world.job(name).attempts) <= 2 * len(jobs) for name in names)
    assert all(world.peaks[kind] <= cap for kind, cap in CAPS.items())
    assert not world.doubles


# -- the planner alone, over many more kinds of queues --------------------------------------------------------------

demands = st.sampled_from(
    ({P5: 1}, {P5: 2}, {P5: 3}, {P5: 3}, {P5: 4}, {P5: 4}, {G5: 2}, {G5: 3}, {P5: 2, G5: 2}, {P5: 3, G5: 1})
)
comers = st.lists(
    st.tuples(
        st.sampled_from((0, 10, 300, 1500)),  # seconds after the one before
        demands,
        st.integers(0, 3),  # priority
        st.sampled_from((300, 3000, 9000, 9000)),  # seconds of training
        st.sampled_from("abc"),  # share
        st.booleans(),  # writes checkpoints
        st.integers(0, 9),  # 0: may not be preempted
    ),
    min_size=5,
    max_size=12,
)
queue_rules = st.builds(
    Preemption,
    min_runtime=st.sampled_from((0, 300)).map(lambda seconds: timedelta(seconds=seconds)),
    cooldown=st.sampled_from((0, 600, 1200)).map(lambda seconds: timedelta(seconds=seconds)),
    delay=st.sampled_from((0, 120)).map(lambda seconds: timedelta(seconds=seconds)),
    max_preemptions=st.none() | st.integers(1, 3),
)
without_levels = st.sampled_from((Order.FIFO, Order.BACKFILL, Order.FAIR))
stops = st.sampled_from((0, 60, 900))


def played(jobs, policy, stop):
    """All jobs submitted in their time and played to their end; caps are watched in every pass."""
    sim = PlannerSim(a_pool(P5, 4), a_pool(G5, 3), policy=policy, stops=stop)
    for index, (pause, units, priority, seconds, share, checkpointed, chance) in enumerate(jobs):
        sim.run(pause)
        fields = {"share": share if policy.shares else "default", "checkpointed": checkpointed}
        job = a_job(f"j{index}", units=units, priority=priority, preemptible=chance > 0, **fields)
        sim.submit(job, seconds=seconds)
    sim.run_until_ended()
    event(f"{min(len(sim.swaps), 4)} preemptions or more")
    return sim


def obeyed(sim, rules):
    """No job was preempted before the rules allowed it, nor more often."""
    for job in sim.jobs.values():
        resumed = False
        for attempt in (attempt for attempt in job.attempts if attempt.outcome is Outcome.PREEMPTED):
            span = max(rules.min_runtime, rules.cooldown) if resumed else rules.min_runtime
            assert attempt.stop_asked_at - (attempt.started_at or attempt.created_at) >= span
            resumed = True
        assert rules.max_preemptions is None or job.preemptions <= rules.max_preemptions
    for swap in sim.swaps:
        assert swap.at >= sim.job(swap.winner).entry_time + rules.delay
    return True


@given(comers, without_levels, queue_rules, stops)
@examples(60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_preemptions_by_priority_never_cycle(jobs, order, rules, stop):
    sim = played(jobs, Policy(order=order, preemption=rules), stop)
    pairs = {(swap.victim, swap.winner) for swap in sim.swaps}
    assert not {(victim, winner) for victim, winner in pairs if (winner, victim) in pairs}
    assert all(sim.job(victim).priority < sim.job(winner).priority for victim, winner in pairs)
    assert obeyed(sim, rules)


@given(comers, queue_rules, stops)
@examples(40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_under_gittins_two_jobs_change_places_only_after_the_shortest_attempt(jobs, rules, stop):
    """Places change as jobs work, so equals may change places; but each time after the shortest attempt at least."""
    eager = Gittins(average_weight=10, restart_budget=1, switch_ratio=1)
    sim = played(jobs, Policy(order=Order.GITTINS, gittins=eager, preemption=rules), stop)
    for before, after in combinations(sim.swaps, 2):
        if (before.victim, before.winner) == (after.winner, after.victim):
            assert sim.job(before.victim).priority == sim.job(before.winner).priority
            assert after.at - before.at >= Policy().gittins.min_attempt
    assert obeyed(sim, rules)


@st.composite
def team_shares(draw):
    own = [draw(st.integers(0, 2)) for _ in range(4)]
    weight = draw(st.sampled_from((0.0, 1.0, 3.0)))
    return {
        "a": Share(name="a", nominal={P5: own[0]}),
        "b": Share(name="b", nominal={P5: own[1], G5: own[2]}),
        "c": Share(name="c", nominal={G5: min(own[3], 1)}, weight=weight),
    }


@given(comers, without_levels, queue_rules, stops, team_shares())
@examples(60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_preemptions_between_shares_never_cycle(jobs, order, rules, stop, shares):
    """An owner may take back what its own borrower was displaced for, once; no job does it twice to the same job."""
    sim = played(jobs, Policy(order=order, preemption=rules, shares=shares), stop)
    pairs = Counter((swap.victim, swap.winner) for swap in sim.swaps)
    for victim, winner in pairs:
        assert pairs[victim, winner] + pairs[winner, victim] <= 2
        if sim.job(victim).share == sim.job(winner).share:
            assert sim.job(victim).priority < sim.job(winner).priority
            assert pairs[winner, victim] == 0
    assert obeyed(sim, rules)
