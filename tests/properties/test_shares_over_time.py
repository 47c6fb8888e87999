"""On any list of arrivals preemptions between shares end, and every job comes to its end.

Nothing protects jobs here (no minimum run time, no bound on preemptions), so that what ends is ended by the rules
of shares alone.
"""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builders import G5, P5, a_job, a_pool, at
from instant_sim import InstantSim
from samples import examples
from share_cases import PATIENT, POOLS, UNPROTECTED, best_within, entitlements_of, fields_of, policies
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.plan import Plan, Preempt, Snapshot, Start
from trainmaster.domain.policy.settings import DEFAULT_SHARE, Lending, Policy, Share
from trainmaster.domain.shares.entitlement import Entitlements
from trainmaster.local.simulator import Profile
from world import World, a_request


class Reclaims:
    """Watches a course: an owner that takes brings as much as it needs within what shares own, and nothing out of it.

    Where a victim holds units of other pools, too, those fall free besides, so only jobs of one pool are looked at.
    """

    def __init__(self) -> None:
        self.preemptions = 0
        self.passes = 0

    def __call__(self, snapshot: Snapshot, plan: Plan, now) -> None:
        self.passes += 1
        assert self.passes < 2_000, "no end in sight"
        entitlements, active = entitlements_of(snapshot), list(snapshot.active)
        for decision in plan.decisions:
            before = list(active)
            if isinstance(decision, Start):
                active.append(lifecycle.start(decision.job, decision.units, (), now))
            elif isinstance(decision, Preempt):
                self.preemptions += 1
                gone = {victim.name for victim in decision.victims}
                active = [job for job in active if job.name not in gone]
                active.append(lifecycle.start(decision.job, decision.reservation.units, (), now))
                if all(v.share != decision.job.share and len(v.units) == 1 for v in decision.victims):
                    for pool, count in decision.reservation.units.items():
                        assert within(entitlements, active, pool) == within(entitlements, before, pool) + count


def within(entitlements: Entitlements, active, pool: str) -> int:
    """Units that the shares' best jobs hold within what their shares own."""
    jobs = {job.name: job for job in active}
    shares = {job.share for job in active}
    return sum(jobs[n].units[pool] for s in shares for n in best_within(entitlements.of(s), jobs.values(), pool))


@st.composite
def arrivals(draw, caps):
    jobs: list[tuple[Job, float]] = []
    moment = 0
    for number in range(draw(st.integers(2, 9))):
        moment += draw(st.integers(0, 120))
        pools = draw(st.sampled_from((("a",), ("a",), ("b",), ("a", "b"))))
        units = {pool: draw(st.integers(1, min(4, caps[pool]))) for pool in pools}
        job = a_job(f"j{number}", entry_time=at(moment), **draw(fields_of(units)))
        jobs.append((replace(job, preemptible=True), draw(st.integers(5, 300))))
    return jobs


@st.composite
def courses(draw):
    caps = {pool: draw(st.integers(2, 6)) for pool in POOLS}
    lendings = (Lending.LEND_AND_BORROW, Lending.LEND_AND_BORROW, Lending.LEND)
    policy = draw(policies(caps, lendings=lendings, caps_on=False))
    return caps, replace(policy, shares={**policy.shares, **_large_enough(policy, caps)}), draw(arrivals(caps))


def _large_enough(policy, caps):
    """Shares that do not borrow would never run what is larger than they are; here all jobs come to their end."""
    own_little = {n: s for n, s in policy.shares.items() if any(s.nominal[p] < min(4, caps[p]) for p in POOLS)}
    return {name: replace(share, lending=Lending.LEND_AND_BORROW) for name, share in own_little.items()}


@settings(deadline=None)
@given(courses())
def test_on_any_list_of_arrivals_preemptions_end_and_all_jobs_come_to_their_end(sim):
    caps, policy, jobs = sim
    watch = Reclaims()
    pools = {pool: a_pool(pool, cap) for pool, cap in caps.items()}
    played = InstantSim(pools, policy, watch=watch).run(jobs)
    assert all(played.peaks.get(pool, 0) <= cap for pool, cap in caps.items())
    assert watch.preemptions <= len(jobs) ** 2


BRISK = Profile(
    requesting_seconds=1, starting_seconds=5, downloading_seconds=2, uploading_seconds=2, stopping_seconds=5
)
TEAMS = {
    "x": Share(name="x", nominal={P5: 2}),
    "y": Share(name="y", nominal={P5: 1, G5: 2}, lending=Lending.LEND),
    "z": Share(name="z", nominal={G5: 1}, lending=Lending.RESERVE),
}


@pytest.fixture
def quiet():
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


team_arrivals = st.lists(
    st.tuples(
        st.integers(0, 120),  # seconds after the one before
        st.sampled_from((("x", P5), ("x", G5), ("y", P5), ("y", G5), ("z", G5), (DEFAULT_SHARE, P5))),
        st.integers(1, 3),  # instances
        st.integers(0, 3),  # priority
        st.integers(5, 300),  # seconds of training
    ),
    min_size=2,
    max_size=9,
)


@examples(25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(team_arrivals)
def test_so_they_do_while_stops_take_their_time_and_everything_is_stored(quiet, jobs):
    """The whole manager against the simulated SageMaker: what is freed for an owner is still its own a minute later."""
    world = World(pools=f"{P5}=4,{G5}=4", profile=BRISK)
    store = world.api_context.store
    store.set_settings(policy=Policy(shares=TEAMS, preemption=UNPROTECTED, patience=PATIENT))
    most = {("y", P5): 1, ("y", G5): 2, ("z", G5): 1}
    names = []
    for index, (pause, (share, kind), count, priority, seconds) in enumerate(jobs):
        world.run(pause, step=15)
        request = a_request(
            f"j{index}",
            kind=kind,
            count=min(count, most.get((share, kind), count)),
            priority=priority,
            training_seconds=seconds,
        )
        request["Tags"].append({"Key": "trainmaster:share", "Value": share})
        names.append(world.submit_request(request).name)
    world.run_until_ended(*names)
    assert set(world.states(*names).values()) == {"completed"}
    assert all(len(world.job(name).attempts) <= 2 * len(jobs) for name in names)
    assert world.peaks[P5] <= 4
    assert world.peaks[G5] <= 4
    assert not world.doubles
