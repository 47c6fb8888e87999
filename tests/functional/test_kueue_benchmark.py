"""Load of Kueue's baseline: the jobs that Kueue submits, run to their end, and a sheet whose rounding is neutral."""

from __future__ import annotations

from collections import Counter

import pytest
from benchmarks.kueue.run import Run
from benchmarks.kueue.tables import COLUMNS, rows
from benchmarks.kueue.workload import CLASSES, JOBS, NOMINAL, SHARES_OF_A_POOL, arrivals, policy, pools

from trainmaster.local.memory.store import MemoryStore
from trainmaster.local.simulator.clock import EPOCH

FEW = 300


def test_it_submits_what_kueues_baseline_does():
    coming = arrivals(JOBS)
    by_share = Counter((arrival.share, arrival.job_class.name) for arrival in coming)
    assert len(coming) == JOBS
    assert set(by_share.values()) == {350, 100, 50}
    assert len({share for share, _ in by_share}) == 30
    assert {(kind.units, kind.runs, kind.every, kind.priority) for kind in CLASSES} == {
        (1, 0.2, 0.1, 50),
        (5, 0.5, 0.5, 100),
        (20, 1.0, 1.2, 200),
    }
    assert max(arrival.at for arrival in coming) == pytest.approx(49 * 1.2)
    assert {pool.cap for pool in pools().values()} == {120}
    assert {(dict(s.nominal)[pool], s.borrows[pool]) for s in policy().shares.values() for pool in s.nominal} == {
        (20, 100)
    }


def test_fewer_jobs_are_still_of_every_class_and_share():
    assert set(Counter((arrival.share, arrival.job_class.name) for arrival in arrivals(30)).values()) == {1}


def play(*, timed):
    coming = arrivals(FEW)
    store = MemoryStore(default_pools=pools(), policy=policy(), now=lambda: EPOCH)
    run = Run(coming, store, timed=timed, on_progress=lambda _: None)
    run.play()
    return coming, run


def test_every_job_starts_and_ends_and_time_stands_still_for_the_queue():
    coming, run = play(timed=False)
    assert set(run.started) == {arrival.name for arrival in coming}
    assert all(run.started[arrival.name] >= arrival.at for arrival in coming)
    work = sum(arrival.job_class.units * arrival.job_class.runs for arrival in coming)
    assert run.end >= work / (NOMINAL * SHARES_OF_A_POOL * 5)
    # All that happens is at multiples of a tenth of a second.
    assert all(start * 10 == pytest.approx(round(start * 10)) for start in run.started.values())


def test_in_a_timed_run_jobs_wait_for_the_queues_own_time_as_well():
    coming, run = play(timed=True)
    assert set(run.started) == {arrival.name for arrival in coming}
    first = min(run.started[arrival.name] for arrival in coming if arrival.at == 0)
    assert first > 0
    assert run.end >= sum(run.busy.values()) * 0.9


def test_the_sheet_has_every_run_what_was_skipped_and_kueues_own_figures():
    one = {
        "store": "in memory",
        "timed": False,
        "jobs": 15_000,
        "jobs_per_s": 99.99,
        "jobs_per_processor_s": 200.0,
        "waits_s": {"small": 45.8, "medium": 11.0, "large": 0.1},
        "makespan_s": 66.1,
        "used": 0.998,
        "passes": 884,
        "preemptions": 2_236,
    }
    made = list(rows({"kueue": {"runs": [one], "skipped": "no engine"}}))
    assert [len(row) for row in made] == [len(COLUMNS)] * 3
    assert made[0][5:8] == ("0.1", "11.0", "45.8")
    assert "no engine" in made[1][0]
    assert made[2][3:8] == ("42.7", "", "16.5", "76.8", "215.5")
