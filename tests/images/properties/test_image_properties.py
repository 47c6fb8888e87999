"""Invariants of endpoints under any sequence of arrivals, starts, reports and ends, with two managers at work."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given, note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import builders as b
from image_builders import a_report, a_running_image, an_endpoint_pool, an_image_job, must
from image_stores import MemoryImageStore
from samples import examples
from trainmaster.domain.capacity.units import covers, total
from trainmaster.domain.errors import Fenced
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import ACTIVE
from trainmaster.domain.jobs.observation import Status
from trainmaster.domain.policy.settings import Order, Policy
from trainmaster.images.domain.capacity import Cap
from trainmaster.images.domain.endpoint import pool_name
from trainmaster.local.memory.table import MemoryTable
from trainmaster.planner.schedule import schedule

ENDPOINTS = ("ships", "cars", "trees")
loads = st.integers(1, 40)
orders = st.sampled_from(tuple(Order))


@st.composite
def queues(draw):
    """Endpoints of any size, jobs at work within or beyond them, and any that wait."""
    caps = {name: draw(st.integers(1, 20)) for name in ENDPOINTS}
    active = [
        a_running_image(f"a{number}", load, units=min(load, 20), endpoint=draw(st.sampled_from(ENDPOINTS)))
        for number, load in enumerate(draw(st.lists(loads, max_size=5)))
    ]
    waiting = [
        an_image_job(
            f"w{number}",
            load,
            endpoint=draw(st.sampled_from(ENDPOINTS)),
            priority=draw(st.integers(0, 2)),
            entry_time=b.at(-draw(st.integers(0, 500))),
            preemptible=draw(st.booleans()),
        )
        for number, load in enumerate(draw(st.lists(loads, max_size=8)))
    ]
    pools = [b.a_pool(), *(an_endpoint_pool(cap, endpoint=name) for name, cap in caps.items())]
    return b.a_snapshot(pools=pools, active=active, waiting=waiting, policy=Policy(order=draw(orders)))


def plan_of(queue, seed=1):
    plan = schedule(queue, b.NOW, random.Random(seed))
    note(str(plan))
    return plan


@given(queues())
def test_starts_take_only_requests_that_are_free_and_a_larger_image_takes_exactly_its_endpoint_alone(queue):
    used = total(job.units for job in queue.active)
    free = {name: pool.cap - used.get(name, 0) for name, pool in queue.pools.items()}
    starts = plan_of(queue).starts
    assert covers(free, total(start.units for start in starts))
    for start in starts:
        pool, asked = start.job.work.pool, start.job.work.needed
        assert start.units == {pool: min(asked, queue.pools[pool].cap)}
        if asked > queue.pools[pool].cap:
            assert used.get(pool, 0) == 0
            assert [each.job.name for each in starts if pool in each.units] == [start.job.name]


@given(queues())
def test_w5_what_waits_for_one_endpoint_changes_nothing_at_another(queue):
    """Each endpoint's jobs start as if the others' did not wait at all."""
    starts = {start.job.name for start in plan_of(queue).starts}
    alone = set()
    for name in ENDPOINTS:
        mine = [job for job in queue.waiting if job.work.endpoint == name]
        alone |= {start.job.name for start in plan_of(replace(queue, waiting=tuple(mine))).starts}
    assert starts == alone


@given(queues())
def test_w5_an_idle_endpoint_starts_something_whenever_anything_waits_for_it(queue):
    busy = total(job.units for job in queue.active)
    starts = [start.job for start in plan_of(queue).starts]
    for name in ENDPOINTS:
        waits = [job for job in queue.waiting if job.work.endpoint == name]
        if waits and not busy.get(pool_name(name, "blue")):
            assert any(job.work.endpoint == name for job in starts)


@given(queues(), st.randoms(use_true_random=False))
def test_equal_queues_give_equal_plans_in_whatever_order_they_were_read(queue, shuffler):
    active, waiting = list(queue.active), list(queue.waiting)
    shuffler.shuffle(active)
    shuffler.shuffle(waiting)
    assert plan_of(replace(queue, active=tuple(active), waiting=tuple(waiting))) == plan_of(queue)


CAPS = {"ships": 8, "cars": 3, "trees": 20}


class Endpoints(RuleBasedStateMachine):
    """Two managers, each with its own plan and at its own pace, over one table; people submit, runs report and end."""

    @initialize(order=orders)
    def begin(self, order):
        def caps(endpoint, named):
            return {pool_name(endpoint.key, each): Cap(CAPS[endpoint.key]) for each in named}

        common = {"table": MemoryTable(), "default_pools": b.pools_of(), "now": lambda: b.at(self.seconds)}
        self.stores = [MemoryImageStore(**common, policy=Policy(order=order), caps=caps) for _ in range(2)]
        self.plans = [(0, []), (0, [])]
        self.seconds = self.jobs = 0

    @property
    def active(self):
        return self.stores[0].read_snapshot().active

    def now(self):
        self.seconds += 1
        return b.at(self.seconds)

    @rule(endpoint=st.sampled_from(ENDPOINTS), load=loads, priority=st.integers(0, 1))
    def submit(self, endpoint, load, priority):
        self.jobs += 1
        job = an_image_job(f"i{self.jobs}", load, endpoint=endpoint, priority=priority, entry_time=self.now())
        self.stores[0].submit(job, {"jobId": job.name})

    @rule(which=st.integers(0, 1))
    def plan(self, which):
        snapshot = self.stores[which].begin_pass()
        found = schedule(snapshot, self.now(), random.Random(snapshot.pass_number))
        self.plans[which] = (snapshot.pass_number, [*found.preemptions, *found.starts])

    @rule(endpoint=st.sampled_from(ENDPOINTS), load=loads, overtaken_first=st.booleans())
    def race(self, endpoint, load, overtaken_first):
        """Both plan, and between the two something comes that only the later one has read; then both carry out."""
        self.plan(0)
        self.submit(endpoint, load, priority=2)
        self.plan(1)
        for which in (0, 1) if overtaken_first else (1, 0):
            self.carry_out(which, 99)

    @rule(which=st.integers(0, 1), count=st.integers(1, 4))
    def carry_out(self, which, count):
        """Some of what a manager has decided, perhaps long after the other one has begun a pass."""
        fence, left = self.plans[which]
        now = self.now()
        for decision in left[:count]:
            if hasattr(decision, "victims"):
                after = [(victim, lifecycle.preempt(victim, decision.job.name, now)) for victim in decision.victims]
                plan_expansion = [*after, (decision.job, lifecycle.reserve(decision.job, decision.reservation))]
            else:
                plan_expansion = [(decision.job, lifecycle.start(decision.job, decision.units, (), now))]
            try:
                self.stores[which].transition(plan_expansion, fence=fence)
            except Fenced:
                break
        self.plans[which] = (fence, left[count:])

    @rule(data=st.data())
    def report(self, data):
        """A run reports, late or not; a stopping one has stopped; one with nothing left may end."""
        if not self.active:
            return
        job = data.draw(st.sampled_from(self.active))
        left = data.draw(st.integers(0, job.work.left))
        done = min(job.work.regions, job.work.done + data.draw(st.integers(0, 2)))
        status = Status.STOPPED if job.stopping else Status.IN_PROGRESS if left else Status.COMPLETED
        after = lifecycle.observe(job, a_report(job, status=status, done=done, left=left), self.now())
        if after is not None:
            assert self.stores[0].transition([(job, after)])

    @invariant()
    def w4_no_endpoint_is_ever_asked_for_more_than_it_takes(self):
        if not hasattr(self, "stores"):
            return
        for name, cap in CAPS.items():
            held = [job for job in self.active if job.work.endpoint == name]
            pool = pool_name(name, "blue")
            assert sum(job.units[pool] for job in held) <= cap
            for job in held:
                if job.work.needed > cap and job.units[pool] == cap:
                    assert all(not other.units[pool] for other in held if other is not job)

    @invariant()
    def w3_no_job_is_lost_or_in_two_places(self):
        if not hasattr(self, "stores"):
            return
        snapshot = self.stores[0].read_snapshot()
        names = [job.name for job in (*snapshot.active, *snapshot.waiting)]
        assert len(names) == len(set(names))
        ended = [job for job in map(self.stores[0].find, self.names()) if job.ended_at is not None]
        assert len(names) + len(ended) == self.jobs

    def names(self):
        return [f"i{number + 1}" for number in range(self.jobs)]


TestEndpoints = Endpoints.TestCase
TestEndpoints.settings = examples(40, stateful_step_count=30, deadline=None)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(0, 40)), max_size=12))
def test_w9_whatever_is_reported_an_attempt_never_holds_more_than_before(reports):
    job = a_running_image("a", 40, units=20)
    pool = job.work.pool
    for done, failed, left in reports:
        more = {"done": job.work.done + done - 1, "failed": max(job.work.failed + failed, 0), "left": left}
        before = job.units[pool]
        after = lifecycle.observe(job, a_report(job, **{key: max(value, 0) for key, value in more.items()}), b.at(1))
        job = job if after is None else after
        assert 0 <= job.units[pool] <= before
        assert job.state in ACTIVE
    stopped = lifecycle.preempt(job, "other", b.at(2))
    back = must(lifecycle.observe(stopped, b.an_observation(stopped, status=Status.STOPPED), b.at(3)))
    assert back.demand.alternatives == ({pool: back.work.needed},)
    assert 1 <= back.work.needed <= 40
