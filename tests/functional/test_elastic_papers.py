"""The papers' allocations in the benchmark with elastic jobs: small cases computed by hand."""

from __future__ import annotations

from itertools import pairwise

import pytest
from benchmarks.elastic.capacity_timeline import CapacityTimeline
from benchmarks.elastic.elasticflow import LOOSEST, TIGHTEST, ElasticFlow, deadlines
from benchmarks.elastic.pollux import STARVED, Pollux, Search
from benchmarks.elastic.pool_simulation import PoolSimulation
from benchmarks.elastic.results import Span
from benchmarks.elastic.workload import amdahl
from sized_jobs import a_job, rigid, spans, terms

PAPER_CURVE = {1: 1.0, 2: 1.5, 4: 2.0}
"""Job C of ElasticFlow's example of admission (figure 8 of the paper)."""


# -- ElasticFlow -----------------------------------------------------------------------------------------------------


def test_the_minimum_satisfactory_share_of_the_papers_example():
    # Of four GPUs, A has one and B two in the first unit of time. C has 3 to do by 2: it needs the share of 4, which
    # is one GPU at first, and four then; with a share of two it would do 1 + 1.5.
    future = CapacityTimeline(4, 0.0)
    for gpus in (1, 2):
        assert future.satisfy(rigid(gpus=gpus, duration=1.0), 1.0, 1.0) == gpus
    job = a_job(gpus=1, sizes=(1, 2, 4), speed=PAPER_CURVE.__getitem__)
    assert future.satisfy(job, 3.0, 1.9) is None
    assert future.satisfy(job, 3.0, 2.0) == 1
    # All four are taken until 2: no other job can have one.
    assert future.satisfy(rigid(gpus=1), 0.1, 2.0) is None
    assert future.satisfy(rigid(gpus=1), 0.1, 2.1) == 0


def test_a_share_that_is_not_enough_reserves_nothing():
    future = CapacityTimeline(4, 0.0)
    assert future.satisfy(a_job(), 100.0, 49.0) is None
    assert future.satisfy(a_job(), 100.0, 50.0) == 4


def test_the_least_share_that_ends_in_time_is_kept_and_the_rest_given_out():
    # Each needs two GPUs by second 100; no other job wants the other two, and with linear speed-up they cost nothing.
    jobs = [a_job("a"), rigid("b", duration=10.0)]
    first, second = spans(jobs, ElasticFlow([100.0, 100.0]))
    assert second == (Span(0, 10, 2),)
    assert first == (Span(0, 10, 2), Span(10, 55, 4))


def test_a_job_that_cannot_meet_its_deadline_runs_on_what_the_admitted_leave():
    jobs = [rigid("late", gpus=3), a_job("admitted", duration=10.0, sizes=(1, 2))]
    late, admitted = spans(jobs, ElasticFlow([50.0, 10.0]))
    assert admitted == (Span(0, 10, 2),)
    assert late == (Span(10, 110, 3),)


def test_an_admitted_job_takes_its_share_from_one_that_is_not():
    jobs = [rigid("late", gpus=4), rigid("admitted", submit=20.0, duration=10.0)]
    late, admitted = spans(jobs, ElasticFlow([50.0, 30.0]))
    assert admitted == (Span(20, 30, 2),)
    assert late == (Span(0, 20, 4), Span(30, 110, 4))


def test_leftover_gpus_go_where_they_cost_the_least_gpu_time():
    # The longer job would waste ten times as much on a second GPU.
    jobs = [
        a_job("long", duration=1000.0, gpus=1, sizes=(1, 2), speed=amdahl),
        a_job("short", duration=100.0, gpus=1, sizes=(1, 2), speed=amdahl),
    ]
    pool = PoolSimulation(jobs, terms(cap=3), ElasticFlow([1e9, 1e9]))
    long, short = pool.run()
    assert (long.spans[0].size, short.spans[0].size) == (1, 2)


def test_a_running_job_grows_only_where_it_gains_more_time_than_the_pause():
    jobs = [a_job("a", duration=100.0), rigid("b", duration=50.0)]
    first, _ = spans(jobs, ElasticFlow([1e9, 1e9]), resize_cost=26)
    assert first == (Span(0, 100, 2),)
    first, _ = spans(jobs, ElasticFlow([1e9, 1e9]), resize_cost=24)
    assert first == (Span(0, 50, 2), Span(50, 99, 4))


def test_deadlines_are_the_papers():
    jobs = [a_job(str(n), submit=7.0) for n in range(200)]
    factors = [(deadline - 7.0) / 100 for deadline in deadlines(jobs)]
    assert min(factors) >= TIGHTEST
    assert max(factors) <= LOOSEST
    assert max(factors) - min(factors) > 0.9


# -- Pollux ----------------------------------------------------------------------------------------------------------


def searched(jobs, sizes, *, cap=4, now=100.0, resized=0, resize_cost=10.0, bounds=99):
    pool = PoolSimulation(jobs, terms(cap=cap, resize_cost=resize_cost), Pollux())
    pool.now = now
    pool.left = {index: job.trace.duration for index, job in enumerate(jobs)}
    pool.sizes = dict(sizes)
    pool.resized = [resized] * len(jobs)
    return Search(pool, dict.fromkeys(pool.left, bounds))


def test_a_speed_up_is_against_a_fair_share_of_the_pool():
    search = searched([a_job("a"), a_job("b")], {0: 2, 1: 1})
    # A fair share is two GPUs.
    assert search.cost(0, 2) == 1
    assert search.cost(1, 1) == 2
    assert search.cost(0, 0) == 1 / STARVED


def test_a_reallocation_counts_as_the_paper_says():
    search = searched([a_job("a"), a_job("b")], {0: 2, 1: 2}, resized=1)
    # (T - R d) / (T + d) for T = 100, R = 1, d = 10.
    assert search.cost(0, 4) == pytest.approx(0.5 * 110 / 90)


def test_a_job_of_one_size_has_a_fair_share_of_the_time():
    assert searched([rigid("a", gpus=8), a_job("b")], {0: 8}, cap=8).cost(0, 8) == 0.5


def test_free_gpus_go_to_waiting_jobs_first_and_are_then_shared_evenly():
    search = searched([a_job("a"), a_job("b"), rigid("c", gpus=1)], {}, cap=7)
    search.fill()
    assert search.sizes == {0: 3, 1: 3, 2: 1}


def test_others_shrink_for_a_job_that_has_nothing():
    search = searched([a_job("a"), rigid("b")], {0: 4})
    search.fill()
    assert search.sizes == {0: 4}
    search.make_room()
    assert search.sizes == {0: 2, 1: 2}


def test_a_job_that_runs_at_its_only_size_keeps_it():
    search = searched([rigid("a", gpus=4), a_job("b")], {0: 4})
    search.make_room()
    search.exchange()
    assert search.sizes == {0: 4}


def test_gpus_move_to_jobs_that_gain_more_than_the_reallocation_costs():
    jobs = [a_job("a", sizes=range(1, 9)), a_job("b", sizes=range(1, 9))]
    search = searched(jobs, {0: 7, 1: 1}, cap=8, now=1000.0)
    search.exchange()
    assert search.sizes == {0: 4, 1: 4}
    search = searched(jobs, {0: 7, 1: 1}, cap=8, now=5.0, resize_cost=300.0)
    search.exchange()
    assert search.sizes == {0: 7, 1: 1}


def test_no_job_more_than_doubles_its_largest_size():
    # Asked at 0: the least size, then on the grid once something has changed, or after an hour.
    jobs = [a_job("a", duration=20_000.0, gpus=1, sizes=range(1, 9))]
    (result,) = PoolSimulation(jobs, terms(cap=8), Pollux()).run()
    assert [span.size for span in result.spans][:3] == [1, 2, 4]
    assert all(after.size <= 2 * before.size for before, after in pairwise(result.spans))
