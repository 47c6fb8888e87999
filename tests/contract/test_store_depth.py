"""Deep queues: a rare match costs several calls, not one long one; and memory stays quick."""

from __future__ import annotations

import random
import time
from itertools import pairwise

import pytest
from listing_contract import walk

import builders as b
from trainmaster.adapters.dynamodb.rows import row_of
from trainmaster.domain.capacity.read_limits import FIRST
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import JobState
from trainmaster.domain.jobs.listing import Filter
from trainmaster.domain.paging import MAX_EXAMINED
from trainmaster.domain.policy.settings import Policy, Share
from trainmaster.local.memory.sorted_keys import SortedKeys

RARE = b.a_preempted_job("rare", entry_time=b.at(100_000))


def write(engine, jobs):
    """Rows without the store, to save time."""
    for start in range(0, len(jobs), 25):
        writes = [{"PutRequest": {"Item": row_of(job)}} for job in jobs[start : start + 25]]
        engine.client.batch_write_item(RequestItems={engine.name: writes})


def stored(engine, store, jobs):
    """The store, with these jobs."""
    if hasattr(engine, "client"):
        write(engine, jobs)
    else:
        for job in jobs:
            store.submit(job, {})
    return store


@pytest.fixture(params=["memory", "dynoxide"])
def engine(request):
    return request.getfixturevalue(f"{request.param}_engine")


@pytest.fixture
def deep(engine):
    """A store with 2,500 pending jobs and a preempted one behind them."""
    return stored(engine, engine.open(), [*(b.a_job(f"job{n:05d}", entry_time=b.at(n)) for n in range(2_500)), RARE])


def test_a_rare_match_is_found_over_several_short_pages(deep):
    pages = walk(deep, Filter(states=frozenset({JobState.PREEMPTED})), 10)
    assert [list(page) for page in pages] == [[], [], [RARE]]
    assert MAX_EXAMINED == 1_000


def test_a_page_looks_no_further_than_it_needs_to(deep):
    page = deep.list_jobs(Filter(states=frozenset({JobState.PENDING})), limit=5)
    assert [job.name for job in page.jobs] == [f"job{n:05d}" for n in range(5)]
    assert page.cursor is not None


def test_the_job_of_another_is_found_behind_thousands_of_a_user_at_his_limit(engine):
    limiting = Policy(shares={"team": Share(name="team", max_per_user={b.P5: 1})})
    ada, bob = ({"share": "team", "submitted_by": name} for name in ("ada", "bob"))
    sweep = [b.a_job(f"sweep{n:05d}", entry_time=b.at(n), **ada) for n in range(2_500)]
    jobs = [b.a_running_job("held", **ada), *sweep, b.a_job("other", entry_time=b.at(2_500), **bob)]
    snapshot = stored(engine, engine.open(policy=limiting), jobs).begin_pass()
    assert [job.name for job in snapshot.waiting] == [*(job.name for job in sweep[:FIRST]), "other"]
    assert snapshot.cut_lanes == {sweep[0].lane}


def test_a_pass_reads_at_most_a_thousand_of_a_lane_however_large_its_pool(deep):
    deep.set_settings(pools=[b.a_pool(cap=5_000)])
    snapshot = deep.begin_pass()
    assert [job.name for job in snapshot.waiting] == [f"job{n:05d}" for n in range(1_000)]
    assert snapshot.cut_lanes == {RARE.lane}


def test_more_active_jobs_than_one_query_returns_are_all_seen(dynoxide_engine):
    """A query returns at most 1 MB."""
    noise = random.Random(7)
    jobs = [b.a_running_job(f"job{n:04d}", submitted_by=noise.randbytes(1_000).hex()) for n in range(1_300)]
    assert sum(len(next(iter(row_of(job)["job"].values()))) for job in jobs) > 1.2 * 2**20
    write(dynoxide_engine, jobs)
    snapshot = dynoxide_engine.open().begin_pass()
    assert snapshot.active == tuple(jobs)
    assert len(dynoxide_engine.open().list_jobs(Filter(), limit=1_000).jobs) == 1_000


def test_memory_reads_a_pass_in_an_instant_however_many_wait(memory_engine):
    store = memory_engine.open()
    for n in range(50_000):
        store.submit(b.a_job(f"job{n:05d}", entry_time=b.at(n), priority=n % 7, share=f"share{n % 3}"), {})
    began = time.process_time()
    snapshot = store.begin_pass()
    assert time.process_time() - began < 0.1, "it takes about a millisecond on a quiet machine"
    assert len(snapshot.waiting) == 3 * 32
    assert all(one.order < other.order for one, other in pairwise(snapshot.waiting))
    for job in snapshot.waiting:
        assert store.transition([(job, lifecycle.hold(job, b.NOW, "ada"))])


class TestOrdered:
    def test_it_keeps_keys_in_order_through_many_chunks(self):
        keys = [(n * 7_919) % 10_007 for n in range(10_000)]
        ordered = SortedKeys[int]()
        for key in keys:
            ordered.add(key)
        assert list(ordered.after()) == sorted(keys)
        assert list(ordered.before()) == sorted(keys, reverse=True)
        for key in keys[::2]:
            ordered.remove(key)
        left = sorted(keys[1::2])
        assert list(ordered.after()) == left
        assert len(ordered) == len(left)
        for place in (left[0] - 1, left[0], left[2_500], left[2_500] + 1, left[-1], left[-1] + 1):
            assert list(ordered.after(place)) == [key for key in left if key > place]
            assert list(ordered.before(place)) == [key for key in reversed(left) if key < place]

    def test_it_is_false_when_empty_and_knows_what_it_has_not(self):
        ordered = SortedKeys[str]()
        assert not ordered
        assert list(ordered.after()) == list(ordered.before()) == list(ordered.before("a")) == []
        ordered.add("a")
        with pytest.raises(KeyError):
            ordered.remove("b")
        with pytest.raises(KeyError):
            ordered.remove("")
        ordered.remove("a")
        assert not ordered
