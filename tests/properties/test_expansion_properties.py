"""Expansion, whatever the queue holds: within guard rails, one pool for a demand, people's pools untouched, stable."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

import builders as b
from samples import examples
from trainmaster.domain.capacity.catalogue import Catalogue
from trainmaster.domain.capacity.resolve import resolve, with_changes
from trainmaster.domain.capacity.resources import InstanceType, Resources
from trainmaster.domain.capacity.units import Demand, Kind, Pool, covers, total
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.plan import Expand, Plan, Retire, Shrink, Snapshot, Start
from trainmaster.domain.policy.settings import Budget, Choose, Expansion, Lending, Policy, Share
from trainmaster.domain.records import Records
from trainmaster.planner.expansion.expand import plan_expansion
from trainmaster.planner.schedule import schedule
from trainmaster.planner.state import PlanState

NAMES = [f"ml.t{number}.large" for number in range(5)]
OTHERS = ["pool-a", "pool-b"]
CENT = 1e-3
STEADY = examples(150, deadline=None)
BRIEF = examples(50, deadline=None)


@st.composite
def catalogues(draw: st.DrawFn) -> Catalogue:
    """Five types of any size, with and without prices and quotas."""
    kinds = {
        name: InstanceType(
            name=name,
            vcpus=draw(st.integers(1, 4)) * 10_000,
            accelerators=draw(st.integers(0, 2)),
            price=draw(st.sampled_from([0.0, 0.5, 1.0, 3.3])),
        )
        for name in NAMES
    }
    return Catalogue(kinds, draw(st.dictionaries(st.sampled_from(NAMES), st.integers(0, 9), max_size=5)))


rules = st.builds(
    Expansion,
    enabled=st.just(value=True),
    types=st.sampled_from([("ml.t*",), ("ml.t0.*", "ml.t3.large"), tuple(NAMES)]),
    max_per_type=st.integers(0, 8),
    max_instances=st.integers(0, 12),
    dollars_per_hour=st.none() | st.sampled_from([0.0, 1.0, 5.5, 20.0]),
    choose=st.sampled_from(Choose),
    utilization=st.sampled_from([0.1, 0.5, 0.8, 1.0]),
    retire_after=st.just(timedelta(minutes=5)),
)


@st.composite
def people(draw: st.DrawFn) -> list[Pool]:
    """Pools that people set; some are named after their type, some are drained, some are of spot instances."""
    found = []
    for name in draw(st.lists(st.sampled_from([*NAMES, *OTHERS]), unique=True, max_size=3)):
        kind = draw(st.sampled_from([Kind.ON_DEMAND, Kind.SPOT])) if name in OTHERS else Kind.ON_DEMAND
        type_ = draw(st.sampled_from(NAMES)) if name in OTHERS else name
        found.append(Pool(name, draw(st.integers(0, 3)), type_=type_, kind=kind, draining=draw(st.booleans())))
    return found


SHARES = ["vision", "speech"]
"""Those that may be in the settings; jobs are of others, too."""
GROUP = {"group": "sweep", "max_concurrent": 2}


@st.composite
def shares(draw: st.DrawFn) -> dict[str, Share]:
    """Some that lend and borrow in every way, with and without budgets, of which one in two is spent at once."""
    found = {}
    for name in draw(st.lists(st.sampled_from(SHARES), unique=True, max_size=2)):
        spent = draw(st.booleans())
        found[name] = Share(
            name=name,
            lending=draw(st.sampled_from(Lending)),
            budget=draw(st.none() | st.just(Budget(dollars=0 if spent else 1e9))),
        )
    return found


@st.composite
def jobs(draw: st.DrawFn, number: int) -> Job:
    rules = {
        "entry_time": b.at(number),
        "share": draw(st.sampled_from(["default", *SHARES])),
        "retry_at": draw(st.sampled_from([None, None, None, b.at(150)])),
        **draw(st.sampled_from([{}, {}, GROUP])),
    }
    if draw(st.integers(0, 3)) == 0:
        return b.a_job(f"j{number}", units={draw(st.sampled_from(NAMES)): draw(st.integers(1, 4))}, **rules)
    asked = Resources(vcpus=draw(st.integers(1, 4)) * 10_000, accelerators=draw(st.integers(0, 2)))
    demand = Demand((), queue_selects_pool=True, resources=asked, instances=draw(st.sampled_from([1, 1, 2, 5])))
    return b.a_job(f"j{number}", demand=demand, **rules)


@st.composite
def queues(draw: st.DrawFn) -> Snapshot:
    waiting = [draw(jobs(number)) for number in range(draw(st.integers(0, 10)))]
    pools = {pool.name: pool for pool in draw(people())}
    snapshot = b.a_snapshot(waiting=waiting, policy=Policy(expansion=draw(rules), shares=draw(shares())))
    return resolve(replace(snapshot, pools=pools, catalogue=draw(catalogues())))


def lived(snapshot: Snapshot, passes: int) -> Snapshot:
    """The queue after some passes in which all that starts runs on."""
    for number in range(passes):
        now = b.at(100 + 60 * number)
        snapshot = carried_out(snapshot, schedule(snapshot, now, random.Random(number)), now)
    return snapshot


def carried_out(snapshot: Snapshot, plan: Plan, now: datetime) -> Snapshot:
    """The queue after a pass."""
    started = {start.job.name: start for start in plan.starts}
    active = [a_started(start, now) for start in started.values()]
    snapshot = with_changes(snapshot, plan.of_pools)
    waiting = tuple(job for job in snapshot.waiting if job.name not in started)
    return replace(snapshot, active=(*snapshot.active, *active), waiting=waiting)


def a_started(start: Start, now: datetime) -> Job:
    """The job of a start, at work."""
    job = start.job
    return b.a_running_job(
        job.name, units=dict(start.units), now=now, share=job.share, group=job.group, max_concurrent=job.max_concurrent
    )


def after(snapshot: Snapshot) -> Snapshot:
    return with_changes(snapshot, plan_expansion(snapshot, b.at(1000)).decisions)


def made(snapshot: Snapshot) -> list[Pool]:
    return [pool for pool in snapshot.pools.values() if pool.made_for]


@STEADY
@given(queues(), st.integers(0, 3))
def test_no_guard_rail_is_ever_exceeded(snapshot, passes):
    pools = made(done := after(lived(snapshot, passes)))
    rails, catalogue = done.policy.expansion, done.catalogue
    assert all(rails.allows(pool.instance_type) for pool in pools)
    assert sum(pool.cap for pool in pools) <= rails.max_instances
    by_type = total({pool.instance_type: pool.cap} for pool in pools)
    assert all(cap <= rails.max_per_type for cap in by_type.values())
    if rails.dollars_per_hour is not None:
        assert all(catalogue.of_pool(pool).price for pool in pools)
        assert sum(pool.cap * catalogue.of_pool(pool).price for pool in pools) <= rails.dollars_per_hour + CENT
    on_demand = total({p.instance_type: p.cap} for p in done.pools.values() if p.kind is Kind.ON_DEMAND)
    quotas = catalogue.quotas
    assert all(on_demand[name] <= quotas[name] for name in by_type.keys() & quotas.keys())


@STEADY
@given(queues(), st.integers(0, 3))
def test_no_demand_gets_two_pools_and_no_type_either(snapshot, passes):
    """However many passes there are, a demand for which a pool was made finds that one."""
    done = after(lived(snapshot, passes))
    assert all(count == 1 for count in Counter(pool.instance_type for pool in made(done)).values())
    assert all(count == 1 for count in Counter(pool.made_for for pool in made(done)).values())
    result = plan_expansion(snapshot, b.NOW)
    by_demand: dict[object, set[str]] = {}
    for each in result.decisions:
        for name in each.jobs if isinstance(each, Expand) else ():
            job = next(job for job in snapshot.waiting if job.name == name)
            key = (job.demand.resources, job.demand.instances, str(job.demand.alternatives))
            by_demand.setdefault(key, set()).add(each.pool.name)
    assert all(len(pools) == 1 for pools in by_demand.values())


@STEADY
@given(queues(), st.integers(0, 3))
def test_pools_that_people_set_are_never_touched(snapshot, passes):
    done = after(lived(snapshot, passes))
    assert {name: pool for name, pool in done.pools.items() if not pool.made_for} == dict(snapshot.pools)


@STEADY
@given(queues(), st.integers(0, 3))
def test_a_second_pass_over_the_same_changes_nothing(snapshot, passes):
    done = after(lived(snapshot, passes))
    assert plan_expansion(done, b.at(1000)).decisions == ()


@STEADY
@given(queues())
def test_each_infeasible_job_gets_a_pool_that_holds_it_or_a_reason(snapshot):
    result = plan_expansion(snapshot, b.NOW)
    served = {name for each in result.decisions if isinstance(each, Expand) for name in each.jobs}
    done = with_changes(snapshot, result.decisions)
    caps = {name: 0 if pool.draining else pool.cap for name, pool in done.pools.items()}
    for before, job in zip(snapshot.waiting, done.waiting, strict=True):
        held = any(covers(caps, units) for units in job.demand.alternatives)
        could = any(covers(caps, units) for units in before.demand.alternatives if set(units) <= set(snapshot.pools))
        assert held or job.name in result.refused
        assert could or held or job.name not in served


@BRIEF
@given(queues(), st.integers(0, 3))
def test_pools_are_made_for_jobs_that_no_rule_keeps_from_starting_there(snapshot, passes):
    now = b.at(100 + 60 * passes)
    snapshot = lived(snapshot, passes)
    result = plan_expansion(snapshot, now)
    done = with_changes(snapshot, result.decisions)
    state, waiting = PlanState.of(done, now), {job.name: job for job in done.waiting}
    for each in result.decisions:
        for job in [waiting[name] for name in each.jobs] if isinstance(each, Expand) else ():
            units = next(units for units in job.demand.alternatives if each.pool.name in units)
            assert state.view_for(job).refusal(units) is None
            assert job.retry_at is None or job.retry_at <= now


@BRIEF
@given(queues(), st.integers(0, 3))
def test_jobs_that_may_not_start_keep_no_pool(snapshot, passes):
    """Once nothing runs and all who wait are of shares whose budget is spent, every made pool goes with the time."""
    spent = {name: Share(name=name, budget=Budget(dollars=0)) for name in ["default", *SHARES]}
    done = lived(snapshot, passes)
    done = replace(done, active=(), records=Records(), policy=replace(done.policy, shares=spent))
    result = plan_expansion(done, b.at(1000) + done.policy.expansion.retire_after)
    assert {each.pool.name for each in result.decisions} == {pool.name for pool in made(done)}
    assert all(isinstance(each, Retire) for each in result.decisions)


@STEADY
@given(queues(), st.integers(1, 3))
def test_unused_pools_are_removed_and_not_created_again(snapshot, passes):
    """Once all have ended, and the time has passed, every pool that was made is gone, and nothing comes of that."""
    idle = replace(lived(snapshot, passes), active=(), waiting=(), records=Records())
    later = b.at(1000) + idle.policy.expansion.retire_after
    result = plan_expansion(idle, later)
    assert {each.pool.name for each in result.decisions if isinstance(each, Retire)} == {p.name for p in made(idle)}
    assert plan_expansion(with_changes(idle, result.decisions), later).decisions == ()


@BRIEF
@given(queues(), st.integers(2, 4))
def test_a_pool_that_shrank_does_not_grow_without_new_events(snapshot, passes):
    """No pool becomes smaller and larger again by turns, and none becomes smaller than what runs there."""
    gave: set[str] = set()
    for number in range(passes):
        now = b.at(200 + 240 * number)
        plan = schedule(snapshot, now, random.Random(number))
        assert not gave & {each.pool.name for each in plan.expansions}
        smaller = [each for each in plan.of_pools if isinstance(each, Shrink)]
        gave |= {each.pool.name for each in smaller}
        used = total(job.units for job in snapshot.active)
        assert all(
            used.get(each.pool.name, 0) <= each.pool.cap < snapshot.pools[each.pool.name].cap for each in smaller
        )
        snapshot = carried_out(snapshot, plan, now)


@BRIEF
@given(queues(), st.integers(1, 3))
def test_idle_managed_pools_block_no_demand(snapshot, passes):
    """A guard rail stops no job that would have passed it had the idle pools never been made."""
    snapshot = lived(snapshot, passes)
    idle = replace(snapshot, active=(), waiting=(), policy=replace(snapshot.policy, shares={}))
    job = b.a_job(
        "new",
        entry_time=b.at(900),
        demand=Demand((), queue_selects_pool=True, resources=Resources(vcpus=1), instances=1),
    )
    alone = replace(idle, waiting=(job,), pools={n: p for n, p in idle.pools.items() if not p.made_for})
    there = replace(idle, waiting=(job,))
    assert ("new" in plan_expansion(resolve(there), b.at(900)).refused) <= (
        "new" in plan_expansion(resolve(alone), b.at(900)).refused
    )
