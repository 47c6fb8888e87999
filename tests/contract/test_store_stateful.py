"""Random histories: the table must answer as memory does, call by call."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from engine_fixtures import RUNS_DYNOXIDE
from engines import DynamoEngine, MemoryEngine
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from listing_contract import everything

import builders as b
from trainmaster.domain.capacity.external import ExternalJob, Origin
from trainmaster.domain.elastic.sizes import Elastic
from trainmaster.domain.errors import Fenced, IllegalTransition, TrainmasterError
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import Job, JobState
from trainmaster.domain.jobs.listing import Filter
from trainmaster.domain.jobs.observation import Status
from trainmaster.domain.policy.settings import Policy

SHARES = ["default", "a#b", "a"]
DEMANDS = [
    b.a_demand({b.P5: 1}),
    b.a_demand({b.G5: 2}),
    b.a_demand({b.P5: 1, b.G5: 1}),
    b.a_demand({b.P5: 2}, {b.G5: 8}),
]
numbers = st.integers(0, 11)
moments = st.integers(0, 5)


def seen(status: Status, **fields):
    return lambda job, now: lifecycle.observe(job, b.an_observation(job, status=status, **fields), now)


def rebounded(job, now, *, sizes):
    """The job with these bounds of its size; only elastic ones can have others."""
    return lifecycle.set_bounds(
        job, replace(lifecycle.elastic_of(job), min_instances=sizes[0], max_instances=sizes[1]), now, "ada"
    )


MOVES = [
    lambda job, now: lifecycle.start(job, job.demand.alternatives[0], (), now),
    lambda job, now: lifecycle.mark_launched(job),
    lambda job, now: lifecycle.preempt(job, "job0", now),
    lambda job, now: lifecycle.reserve(job, b.a_reservation(until=now)),
    lambda job, now: lifecycle.request_stop(job, now, "ada"),
    lambda job, now: lifecycle.mark_stop_sent(job),
    lambda job, now: lifecycle.cancel(job, now, "ada"),
    lambda job, now: lifecycle.hold(job, now, "ada"),
    lambda job, now: lifecycle.release(job, now, "ada"),
    lambda job, now: lifecycle.reprioritize(job, job.priority + 1, now, "ada"),
    lambda job, now: lifecycle.reprioritize(job, -3, now, "ada"),
    *(partial(rebounded, sizes=sizes) for sizes in ((1, 1), (4, 8))),
    lambda job, now: lifecycle.requeue_unlaunched(job, now, "no room"),
    lambda job, now: lifecycle.take_next_number(job, now, "another's"),
    lifecycle.enqueue_if_due,
    lambda job, now: lifecycle.apply_parent_end(job, b.an_ended_job("job0"), now),
    lambda job, now: lifecycle.apply_parent_end(job, b.an_ended_job("job1"), now),
    seen(Status.IN_PROGRESS, secondary="Training"),
    seen(Status.STOPPED),
    seen(Status.COMPLETED),
]


def outcome(call):
    """Answer or error of a call, comparable."""
    try:
        return call()
    except TrainmasterError as error:
        return type(error)


def shown(snapshot):
    """A snapshot without what a store may leave out of it: all but the newest history, and decimals of records."""
    trimmed = {
        name: tuple(replace(j, history=j.history[-20:]) for j in getattr(snapshot, name))
        for name in ("active", "waiting")
    }
    return replace(snapshot, **trimmed, records=told(snapshot.records))


def told(records):
    """Records as far as they are exact: what they are about."""
    return [(kind, min(sketch.weights)) for kind, sketch in records.history.kinds.items()], sorted(
        (share, round(account.faded), account.gpu_seconds // 1) for share, account in records.usage.accounts.items()
    )


class StoreMachine(RuleBasedStateMachine):
    """The same calls to memory and to the table."""

    def __init__(self, client) -> None:
        super().__init__()
        engines = MemoryEngine(), DynamoEngine(client)
        self.stores = [engine.open(pools=[b.a_pool(cap=4), b.a_pool(b.G5, 8)]) for engine in engines]
        self.versions: dict[str, list[Job]] = {}
        self.passes = 0

    def both(self, call):
        """Both answers, which must be equal."""
        memory, table = (outcome(lambda store=store: call(store)) for store in self.stores)
        assert table == memory
        return memory

    @initialize(count=st.integers(0, 36))
    def a_lane_is_there(self, count):
        for n in range(count):
            self.submit_job(b.a_job(f"first{n:02d}", entry_time=b.at(n % 4)))

    @rule(
        n=numbers,
        priority=st.integers(-2, 2),
        entry=moments,
        share=st.sampled_from(SHARES),
        demand=st.sampled_from(DEMANDS),
        elastic=st.sampled_from([None, Elastic(min_instances=1, max_instances=8)]),
        not_before=st.none() | moments.map(lambda moment: b.at(100 + moment)),
        after=st.sampled_from([(), (), ("job0",), ("job0", "job1")]),
    )
    def submit(self, n, priority, entry, **fields):
        job = b.a_job(f"job{n}", priority=priority, entry_time=b.at(entry), **fields)
        self.submit_job(lifecycle.hold_if_needed(job, b.at(100)))

    def submit_job(self, job):
        stored = self.both(lambda store: store.submit(job, {"n": job.name}))
        self.versions.setdefault(job.name, [job])
        assert stored == self.versions[job.name][-1]

    @rule()
    def begin_pass(self):
        self.passes += 1
        self.both(lambda store: shown(store.begin_pass()))

    @rule(
        picks=st.lists(
            st.tuples(st.integers(0, 50), st.sampled_from(MOVES), st.integers(0, 9)), min_size=1, max_size=4
        ),
        late=st.integers(-1, 1),
        now=moments,
    )
    def move(self, picks, late, now):
        changes = {}
        for pick, step, staleness in picks:
            if self.versions:
                name = sorted(self.versions)[pick % len(self.versions)]
                known = self.versions[name]
                before = known[max(0, len(known) - 2)] if staleness == 0 else known[-1]
                try:
                    after = step(before, b.at(100 + now))
                except IllegalTransition:
                    continue
                if after is not None:
                    changes[name] = (before, after)
        fence = None if late < 0 else self.passes - late
        won = self.both(lambda store: store.transition(list(changes.values()), fence=fence))
        assert won is not Fenced or not self.passes or fence != self.passes
        if won is True:
            for name, (_, after) in changes.items():
                self.versions[name].append(after)

    @rule(pick=st.integers(0, 50), turns=st.integers(18, 30))
    def grow_old(self, pick, turns):
        """A history longer than a row keeps, written from what is found and from what a snapshot has."""
        name = sorted(self.versions)[pick % len(self.versions)] if self.versions else ""
        for turn in range(turns if name else 0):
            befores = [self.known_to(store, name, from_snapshot=turn % 2 == 0) for store in self.stores]
            if befores[0].state not in (JobState.PENDING, JobState.HELD):
                return
            afters = [lifecycle.reprioritize(before, turn, b.at(turn), "bob") for before in befores]
            for store, before, after in zip(self.stores, befores, afters, strict=True):
                assert store.transition([(before, after)])
            self.versions[name].append(self.stores[0].find(name))

    def known_to(self, store, name, *, from_snapshot):
        waiting = store.read_snapshot().waiting if from_snapshot else ()
        return next((job for job in waiting if job.name == name), None) or store.find(name)

    @rule(cap=st.integers(0, 60), version=st.none() | st.integers(0, 4))
    def set_pools(self, cap, version):
        pools = [b.a_pool(cap=cap, count_external=cap % 2 == 0), b.a_pool(b.G5, 8)]
        self.both(lambda store: store.set_settings(pools=pools, version=version))

    @rule(reservations=st.integers(0, 9), version=st.none() | st.integers(0, 4))
    def set_policy(self, reservations, version):
        policy = Policy(reservations=reservations)
        self.both(lambda store: store.set_settings(policy=policy, version=version))

    @rule(n=numbers, units=st.integers(1, 3), origin=st.sampled_from(Origin), gone=st.lists(numbers, max_size=3))
    def update_external_jobs(self, n, units, origin, gone):
        present = {f"other{n}": ExternalJob({b.P5: units}, origin)}
        self.both(lambda store: store.update_external_jobs(present, [f"other{g}" for g in gone]))

    @rule(
        states=st.sets(st.sampled_from(JobState), max_size=3),
        share=st.none() | st.sampled_from(SHARES),
        pool=st.sampled_from([None, b.P5, b.G5]),
        limit=st.integers(1, 9),
    )
    def list_jobs(self, states, share, pool, limit):
        which = Filter(frozenset(states), share, pool)
        shown = self.both(lambda store: [(job.name, job.version) for job in everything(store, which, limit)])
        assert sorted(shown) == sorted(
            (name, known[-1].version) for name, known in self.versions.items() if which.matches(known[-1])
        )

    @rule(due=st.none() | moments, parent=st.sampled_from([None, "job0", "job1", "job2"]), limit=st.integers(1, 3))
    def browse_held(self, due, parent, limit):
        which = Filter(due=None if due is None else b.at(100 + due), parent=parent)
        shown = self.both(lambda store: [(job.name, job.version) for job in everything(store, which, limit)])
        assert sorted(shown) == sorted(
            (name, known[-1].version) for name, known in self.versions.items() if which.matches(known[-1])
        )

    @rule()
    def find_active(self):
        found = self.both(lambda store: {name: job.version for name, job in store.find_active(self.versions).items()})
        assert found == {name: known[-1].version for name, known in self.versions.items() if known[-1].units}

    @invariant()
    def nothing_is_lost(self):
        self.both(lambda store: shown(store.read_snapshot()))

    def teardown(self):
        for name, known in self.versions.items():
            assert self.both(lambda store, name=name: store.find(name)) == known[-1]
            assert self.both(lambda store, name=name: store.request_of(name)) == {"n": name}
        assert self.both(lambda store: store.requests_of(self.versions)) == {
            name: {"n": name} for name in self.versions
        }


@pytest.mark.parametrize(
    ("engine", "examples"),
    [
        ("dynoxide", 3),
        pytest.param("dynoxide", 100, marks=pytest.mark.slow),
        pytest.param("moto", 3, marks=[pytest.mark.slow] if RUNS_DYNOXIDE else []),
    ],
)
def test_the_table_answers_as_memory_does(request, engine, examples):
    client = request.getfixturevalue(f"{engine}_client")
    run_state_machine_as_test(
        lambda: StoreMachine(client),
        settings=settings(
            max_examples=examples,
            stateful_step_count=15,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )
