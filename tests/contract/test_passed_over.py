"""Walks past jobs that keep waiting: what is remembered of them saves reads, and hides none longer than a minute."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from threading import Event

import pytest
from engines import DynamoEngine
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from meter import Meter
from test_store_depth import write

import builders as b
from trainmaster.adapters.dynamodb.lanes.heads import read_heads
from trainmaster.adapters.dynamodb.lanes.passed_over import KNOWN_FOR, MAX_ROWS_READ, MAX_STRETCH, PassedOver
from trainmaster.adapters.dynamodb.reading import readable_jobs
from trainmaster.adapters.dynamodb.rows import keyed, place
from trainmaster.adapters.dynamodb.table import Table
from trainmaster.domain.capacity.catalogue import Catalogue
from trainmaster.domain.capacity.read_limits import FIRST, ReadLimits
from trainmaster.domain.policy.settings import Policy, Share

LIMITING = Policy(shares={"team": Share(name="team", max_per_user={b.P5: 1})})
USERS = ("ada", "bob", "eve")
HEADS, ROOM, STRETCH = 5, 20, 5
LATER = timedelta(seconds=1)


def of(user, number, **fields):
    return b.a_job(f"{user}{number:05d}", entry_time=b.at(number), share="team", submitted_by=user, **fields)


def holding(user):
    return b.a_running_job(f"held-by-{user}", share="team", submitted_by=user)


class Clock:
    def __init__(self):
        self.time = b.NOW

    def __call__(self):
        return self.time


class Lane:
    """One lane, and the walks of one store through it."""

    def __init__(self, client):
        self.engine = DynamoEngine(client)
        self.table = Table(client, self.engine.name, Event().wait)
        self.clock, self.jobs = Clock(), []
        self.memory = PassedOver(self.table, self.clock, max_rows_read=ROOM, max_stretch=STRETCH)
        self.rows_read, self.heads = 0, HEADS

    def close(self):
        self.engine.client.delete_table(TableName=self.engine.name)

    def add(self, jobs):
        self.jobs = sorted([*self.jobs, *jobs], key=lambda job: job.order)
        write(self.engine, jobs)

    def remove(self, job):
        self.jobs.remove(job)
        self.engine.client.delete_item(TableName=self.engine.name, Key=keyed(place(job)))

    def _counted(self, rows):
        for row in rows:
            self.rows_read += 1
            yield from readable_jobs([row])

    def walk(self, full):
        """The jobs of a walk, those of one without a memory or a bound, and whether it admits that there are more."""
        active, pools = [holding(user) for user in full], b.pools_of(b.a_pool())
        limits = ReadLimits(pools, active, {}, Catalogue(), self.clock(), LIMITING)
        lanes = read_heads(self.table, lambda _: self.heads)
        self.rows_read = 0
        (lane,) = self.memory.read_past(lanes, limits, consistent=True, jobs_of=self._counted)
        expected, more = limits.heads(self.jobs, self.heads) if len(self.jobs) > self.heads else (self.jobs, False)
        return lane.jobs, expected, lane.cut >= more

    def settle(self, full):
        """Walk as often as it takes to have read every row, within the time for which they are known."""
        for _ in range(len(self.jobs) // ROOM + 1):
            found = self.walk(full)
        return found


@pytest.fixture
def lane(dynoxide_client):
    lane = Lane(dynoxide_client)
    yield lane
    lane.close()


users = st.sampled_from(USERS)
fulls = st.sets(users, min_size=1)
steps = st.one_of(
    st.tuples(st.just("full"), fulls),
    st.tuples(st.just("append"), st.lists(users, min_size=1, max_size=12)),
    st.tuples(st.just("insert"), st.tuples(users, st.integers(1, 3))),
    st.tuples(st.just("back off"), st.lists(st.tuples(users, st.integers(1, 120)), min_size=1, max_size=12)),
    st.tuples(st.just("remove"), st.integers(0, 10**6)),
    st.tuples(st.just("heads"), st.integers(HEADS, 4 * HEADS)),
    st.tuples(st.just("wait"), st.integers(1, 90)),
)


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(users, min_size=HEADS + 1, max_size=60), fulls, st.lists(steps, max_size=12))
def test_in_a_minute_at_most_a_walk_finds_what_one_without_a_memory_does(dynoxide_client, waiting, full, changes):
    lane = Lane(dynoxide_client)
    lane.add([of(user, number) for number, user in enumerate(waiting)])
    number, inserted = len(waiting), False
    for kind, value in changes:
        if kind == "full":
            full = value
        elif kind == "append":
            lane.add([of(user, number + later) for later, user in enumerate(value)])
            number += len(value)
        elif kind == "back off":
            retries = [(user, lane.clock.time + timedelta(seconds=seconds)) for user, seconds in value]
            lane.add([of(user, number + later, retry_at=at) for later, (user, at) in enumerate(retries)])
            number += len(value)
        elif kind == "insert":
            lane.add([of(value[0], number, priority=value[1])])
            number, inserted = number + 1, True
        elif kind == "remove" and len(lane.jobs) > HEADS + 1:
            lane.remove(lane.jobs[value % len(lane.jobs)])
        elif kind == "heads":
            lane.heads = value
        elif kind == "wait":
            lane.clock.time += timedelta(seconds=value)
        found, expected, cut = lane.walk(full)
        assert cut
        assert all(one.order < other.order for one, other in pairwise(found))
        if not inserted:
            assert found == expected[: len(found)], "it may lack some that it has yet to reach, and no others"
            found, expected, _ = lane.settle(full)
            assert found == expected
    lane.clock.time += KNOWN_FOR + LATER
    found, expected, _ = lane.settle(full)
    assert found == expected
    lane.close()


def test_rows_of_full_users_are_read_once_a_minute(lane):
    lane.add([of("ada", number) for number in range(15)])
    assert lane.walk({"ada"})[:2] == (lane.jobs[:HEADS], lane.jobs[:HEADS])
    assert lane.rows_read == 15 - HEADS
    for _ in range(3):
        lane.clock.time += timedelta(seconds=20)
        lane.walk({"ada"})
        assert lane.rows_read == 0
    lane.clock.time += LATER
    lane.walk({"ada"})
    assert lane.rows_read == 15 - HEADS
    found, expected, _ = lane.walk({"bob"})
    assert found == expected == lane.jobs[:HEADS]
    lane.walk({"ada"})
    assert lane.rows_read == 0, "a walk that need not go far leaves what is known behind it"


def test_a_walk_that_begins_behind_known_rows_reads_none_twice(lane):
    lane.add([of("ada", number) for number in range(15)])
    lane.add([of("bob", number) for number in range(15, 25)])
    lane.walk({"ada"})
    lane.heads = 18
    found, expected, _ = lane.walk({"ada"})
    assert found == expected == lane.jobs


def test_a_stretch_is_read_again_as_soon_as_one_of_its_users_may_start_a_job(lane):
    lane.add([of("ada", number) for number in range(9)])
    lane.add([of("bob" if number == 21 else "ada", number) for number in range(9, 40)])
    found, _, cut = lane.settle({"ada", "bob"})
    assert (found, cut) == (lane.jobs[:HEADS], True)
    found, expected, _ = lane.walk({"ada"})
    assert found == expected == [*lane.jobs[:HEADS], lane.jobs[21]]
    assert lane.rows_read == STRETCH, "the others are known"


def test_a_long_lane_is_read_over_several_walks_and_what_is_old_in_turns(lane):
    lane.add([of("ada", number) for number in range(3 * ROOM)])
    lane.add([of("bob", 3 * ROOM)])
    seen = [(len(lane.walk({"ada"})[0]), lane.rows_read) for _ in range(4)]
    assert seen == [(HEADS, ROOM), (HEADS, ROOM), (HEADS + 1, 3 * ROOM - HEADS + 1 - 2 * ROOM), (HEADS + 1, 1)]
    lane.clock.time += KNOWN_FOR + LATER
    again = []
    for _ in range(4):
        assert len(lane.walk({"ada"})[0]) == HEADS + 1, "a walk relies on what is old if that is too much to read"
        again.append(lane.rows_read)
    assert again == [ROOM + 1, ROOM + 1, 3 * ROOM - HEADS - 2 * ROOM + 1, 1]


def test_a_warm_store_reads_no_more_behind_a_sweep_than_without_it(dynoxide_engine, dynoxide_client):
    clock = Clock()
    store, meter = dynoxide_engine.open(policy=LIMITING, now=clock), Meter(dynoxide_client)
    with meter.measured() as alone:
        store.begin_pass()
    write(dynoxide_engine, [of("ada", number) for number in range(MAX_ROWS_READ + 1_000)])
    write(dynoxide_engine, [holding("ada"), of("bob", 20_000)])
    names = [of("ada", number).name for number in range(FIRST)]
    with meter.measured() as first:
        assert [job.name for job in store.begin_pass().waiting] == names
    assert [job.name for job in store.begin_pass().waiting] == [*names, "bob20000"]
    with meter.measured() as usual:
        assert [job.name for job in store.begin_pass().waiting] == [*names, "bob20000"]
    assert first.read_units > 500
    assert usual.read_units < alone.read_units + 10
    with meter.measured() as moment:
        store.read_snapshot()
    assert moment.read_units < 20
    assert dynoxide_engine.open(policy=LIMITING).begin_pass().cut_lanes == {of("ada", 0).lane}
    assert -(-MAX_ROWS_READ // MAX_STRETCH) == 40
