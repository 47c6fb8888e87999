"""The benchmark with elastic jobs: jobs, pool and figures in small cases, and the queue beside the papers."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from benchmarks.elastic.__main__ import _options, tasks
from benchmarks.elastic.pictures import draw
from benchmarks.elastic.pool_simulation import PoolSettings, PoolSimulation
from benchmarks.elastic.results import JobResult, Span, figures, timeline
from benchmarks.elastic.runs import (
    ELASTICFLOW,
    ORDERS,
    POLICIES,
    POLLUX,
    SHIPPED,
    Task,
    run_replay,
    save_run,
    saved_runs,
)
from benchmarks.elastic.tables import make_tables
from benchmarks.elastic.workload import amdahl, linear, workload
from sized_jobs import ScriptedAllocator, a_job, rigid, spans, terms

from trainmaster.domain.elastic.sizes import Hook
from trainmaster.domain.jobs.attempt_totals import MAX_PAST_ATTEMPTS
from trainmaster.local.replay.trace.trace import TraceJob

# -- the jobs --------------------------------------------------------------------------------------------------------


def test_half_of_the_jobs_with_several_gpus_are_elastic_and_the_same_ones_for_every_curve():
    jobs = [TraceJob(str(n), n, 10, 1 + n % 3) for n in range(30)]
    made = workload(jobs, 5, linear)
    assert sum(job.elastic for job in made) == 10
    assert all(job.sizes == (1,) for job in made if job.trace.gpus == 1)
    assert {job.sizes for job in made if job.elastic} == {(1, 2, 3, 4), (1, 2, 3, 4, 5)}
    assert [job.sizes for job in workload(jobs, 5, amdahl)] == [job.sizes for job in made]
    assert [job.sizes for job in workload(jobs, 5, linear, seed=1)] != [job.sizes for job in made]


def test_a_job_at_its_nominal_size_works_as_fast_as_in_the_trace():
    assert a_job(speed=amdahl).pace(2) == 1
    assert a_job().pace(4) == 2
    assert a_job(gpus=1, sizes=(1, 16), speed=amdahl).pace(16) == pytest.approx(1 / (0.05 + 0.95 / 16))
    assert a_job().at_most(9) == 4
    assert rigid(gpus=3).at_most(2) == 0


# -- the pool --------------------------------------------------------------------------------------------------------


def test_a_job_takes_twice_as_long_on_half_of_its_gpus():
    assert spans([a_job()], ScriptedAllocator((0, {0: 1}))) == [(Span(0, 200, 1),)]


def test_a_resize_pauses_a_job_which_then_does_the_rest_at_its_new_pace():
    # 50 s on one GPU are 25 s of work; then 10 s of pause; the other 75 s of work take 37.5 on four.
    jobs = [a_job(), rigid("clock", submit=50.0, duration=1.0, gpus=1)]
    pool = PoolSimulation(jobs, terms(cap=5, resize_cost=10), ScriptedAllocator((0, {0: 1}), (50, {0: 4, 1: 1})))
    first, _ = pool.run()
    assert first.spans == (Span(0, 50, 1), Span(50, 97.5, 4))
    assert (first.lost, first.resizes, first.preemptions) == (40, 1, 0)
    assert first.held == 50 + 4 * 47.5


def test_going_on_after_holding_nothing_costs_a_restart():
    jobs = [a_job(), rigid("clock", submit=50.0, duration=20.0, gpus=4)]
    pool = PoolSimulation(jobs, terms(restart_cost=30), ScriptedAllocator((0, {0: 2}), (50, {1: 4}), (70, {0: 2})))
    first, _ = pool.run()
    assert first.spans == (Span(0, 50, 2), Span(70, 150, 2))
    assert (first.lost, first.resizes, first.preemptions) == (60, 0, 1)


@pytest.mark.parametrize(("sizes", "said"), [({0: 5}, "5 GPUs are allocated"), ({0: 0}, "cannot have 0")])
def test_an_allocator_cannot_give_what_there_is_not(sizes, said):
    with pytest.raises(ValueError, match=said):
        spans([a_job()], ScriptedAllocator((0, sizes)))


def test_an_allocator_that_gives_nothing_is_found_out():
    with pytest.raises(ValueError, match="gives them no GPUs"):
        spans([a_job()], ScriptedAllocator((0, {})))


def test_an_allocator_with_a_period_is_asked_on_its_grid_alone():
    told = ScriptedAllocator((0, {0: 2}), idle=1000)
    told.period = 60.0
    assert spans([a_job(submit=61.0, duration=30.0)], told) == [(Span(120, 150, 2),)]


# -- all queues ------------------------------------------------------------------------------------------------------


def one_waits():
    """An elastic job that could have the whole pool for 10,000 s, and one that comes in the middle of it."""
    return [a_job("a", duration=20_000.0), rigid("b", submit=5000.0, duration=5000.0)]


BY_MEMBERS = [(policy, Hook.MEMBERS) for policy in SHIPPED]


def some_jobs(speed):
    shapes = [(0, 4000, 4), (10, 900, 1), (600, 3000, 8), (620, 500, 2), (700, 2500, 4), (1500, 100, 1), (2000, 900, 6)]
    return workload([TraceJob(f"j{n}", *shape) for n, shape in enumerate(shapes)], 8, speed, seed=2)


@pytest.mark.parametrize(("policy", "hook"), [*((policy, Hook.RESTART) for policy in POLICIES), *BY_MEMBERS])
@pytest.mark.parametrize("speed", [linear, amdahl])
def test_every_job_does_all_of_its_work_and_no_gpu_is_held_twice(policy, hook, speed):
    jobs = some_jobs(speed)
    results = run_replay(policy, jobs, PoolSettings(cap=8, resize_cost=20.0, restart_cost=300.0), hook=hook)
    assert [result.job for result in results] == jobs
    for result in results:
        worked = sum((span.end - span.start) * result.job.pace(span.size) for span in result.spans)
        pauses = worked - result.job.trace.duration
        most = 20.0 * result.resizes + 300.0 * result.preemptions
        assert -1e-3 <= pauses <= most * result.job.pace(result.job.sizes[-1]) + 1e-3
        assert (result.lost > 0) == (pauses > 1e-3)
        sizes = result.job.sizes if policy not in ORDERS else (result.job.trace.gpus,)
        assert all(span.size in sizes for span in result.spans)
    changes = Counter[float]()
    for span in (span for result in results for span in result.spans):
        changes[span.start] += span.size
        changes[span.end] -= span.size
    held = 0
    for at in sorted(changes):
        held += changes[at]
        assert held <= 8


def test_the_queue_gives_idle_gpus_to_an_elastic_job_and_the_same_order_without_leaves_them():
    jobs = [a_job("a", duration=1000.0, gpus=2)]
    cost = PoolSettings(cap=4, resize_cost=20.0)
    assert run_replay("backfill, elastic", jobs, cost)[0].spans == (Span(0, 500, 4),)
    assert run_replay("backfill", jobs, cost)[0].spans == (Span(0, 1000, 2),)


def test_the_queue_shrinks_an_equal_for_a_job_that_waits_where_the_policy_says_so():
    cost = PoolSettings(cap=4, resize_cost=20.0)
    assert run_replay("backfill, elastic", one_waits(), cost)[1].spans[0].start == 10_000
    shrunk, started = run_replay("backfill, elastic, equals shrink", one_waits(), cost)
    assert started.spans[0].start == 5000
    assert [(span.start, span.size) for span in shrunk.spans] == [(0, 4), (5000, 2), (10_000, 4)]
    assert shrunk.lost == 20.0 * 2 + 20.0 * 4


def test_a_course_has_every_size_that_a_job_had_however_often_it_was_resized():
    """The queue itself keeps its newest attempts only."""
    others = [rigid(f"r{n}", submit=10_000.0 * (n + 1), duration=5_000.0) for n in range(40)]
    jobs = [a_job("a", duration=400_000.0, gpus=2), *others]
    first = run_replay("backfill, elastic, equals shrink", jobs, PoolSettings(cap=4, resize_cost=20.0))[0]
    assert first.resizes > MAX_PAST_ATTEMPTS
    assert first.held == pytest.approx(2 * 400_000 + first.lost)


def test_reports_teach_the_queue_to_divide_idle_gpus():
    """The jobs scale badly: each with the whole pool would be hardly faster than with half of it."""
    flat = lambda gpus: gpus if gpus < 1 else 1 / (0.5 + 0.5 / gpus)  # noqa: E731 -- one line
    made = workload([TraceJob(f"j{n}", 9_000.0 * n, 20_000.0, 2) for n in range(12)], 8, flat)
    jobs, cost = [replace(job, sizes=tuple(range(1, 9))) for job in made], PoolSettings(cap=8, resize_cost=20.0)
    told, untold = (
        run_replay("backfill, elastic, equals shrink", jobs, cost, reports=reports) for reports in (True, False)
    )
    mean = lambda results: sum(result.finish - result.job.trace.submit for result in results) / len(jobs)  # noqa: E731
    assert mean(told) < 0.95 * mean(untold)


def test_members_come_and_go_as_the_queue_says_and_the_base_works_at_the_pace_of_all():
    cost = PoolSettings(cap=4, resize_cost=20.0)
    # Members that come with a start may come by the next tick only, and interrupt it then.
    first = run_replay("backfill, elastic", one_waits(), cost, hook=Hook.MEMBERS)[0]
    assert 10_000 <= first.finish <= 10_100
    shrunk, started = run_replay("backfill, elastic, equals shrink", one_waits(), cost, hook=Hook.MEMBERS)
    assert started.spans[0].start == 5000
    assert [(span.start, span.size) for span in shrunk.spans][-2:] == [(5000, 2), (10_000, 4)]
    assert shrunk.lost >= 20.0 * 2 + 20.0 * 4


# -- what is told ----------------------------------------------------------------------------------------------------


def run(policy, jct, curve="linear", cost=5.0, vc="t"):
    result = JobResult(a_job(duration=jct), (Span(0, jct, 2),))
    other = JobResult(rigid(submit=1.0), (Span(1, 101, 2),))
    found = figures([result, other], 4) | {"timeline": timeline([result, other], 10)}
    hook = "restart" if policy in SHIPPED else None
    names = {"vc": vc, "policy": policy, "curve": curve, "resize_cost": cost, "hook": hook, "wall_s": 0.1}
    return names | found


def test_figures_and_timeline_of_two_jobs():
    results = [
        JobResult(a_job(), (Span(0, 50, 1), Span(50, 90, 4)), lost=8.0),
        JobResult(rigid(submit=100.0), (Span(100, 200, 2),)),
    ]
    found = figures(results, 4)
    assert (found["avg_jct_s"], found["avg_jct_elastic_s"], found["avg_jct_rigid_s"]) == (95, 90, 100)
    assert (found["used"], found["used_while_jobs_come"]) == (pytest.approx(410 / 800), pytest.approx(210 / 400))
    assert found["useful"] == pytest.approx(400 / 800)
    assert (found["resizes_per_elastic_job"], found["lost_fraction"]) == (1, pytest.approx(8 / 410, abs=1e-6))
    line = timeline(results, 10)
    assert line["elastic"] == [1] * 5 + [4] * 4 + [0]
    assert line["waiting"] == [0] * 10


def test_ratios_are_to_the_same_order_and_to_both_papers():
    runs = [run("backfill", 300.0, None, None), run("backfill, elastic", 200.0)]
    summary, every = make_tables({"runs": [*runs, run(ELASTICFLOW, 150.0), run(POLLUX, 100.0)]})
    row = dict(zip(summary.columns, summary.rows[0], strict=True))
    assert row["vs. not elastic"] == f"{(200 + 100) / (300 + 100):.3f}"
    assert row["vs. elasticflow-style"] == f"{(200 + 100) / (150 + 100):.3f}"
    assert row["vs. pollux-style"] == f"{(200 + 100) / (100 + 100):.3f}"
    assert [line[4] for line in every.rows] == ["backfill", "backfill, elastic", ELASTICFLOW, POLLUX]


def test_a_goal_is_met_if_the_average_is_small_enough_on_every_trace():
    ours = [run("gittins, elastic", time, vc=vc) for vc, time in (("s", 100.0), ("t", 120.0))]
    other = [run(POLLUX, 100.0, vc=vc) for vc in ("s", "t")]
    missed = make_tables({"runs": [*ours, *other]})[0]
    row = dict(zip(missed.columns, missed.rows[0], strict=True))
    assert (row["s"], row["t"], row["met"]) == ("1.000", f"{220 / 200:.3f}", "no")
    assert make_tables({"runs": [ours[0], other[0]]})[0].rows[0][-1] == "yes"
    assert make_tables({"runs": [ours[0], *other]})[0].rows[0][-1] == "where run"


def test_completion_times_and_held_gpus_are_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    runs = [run("backfill", 100.0, None, None), run(POLLUX, 90.0)]
    files = draw(runs, 4, tmp_path, ("svg", "png"))
    assert {path.name for path in files} == {"completion.svg", "completion.png", "gpus-t.svg", "gpus-t.png"}
    text = (tmp_path / "gpus-t.svg").read_text()
    assert all(policy in text for policy in ("backfill", POLLUX))


def test_an_order_without_elastic_jobs_is_played_once_for_all_curves_and_costs():
    wanted = list(tasks(_options(["--trace", "7f04ca"])))
    assert Counter(task.policy for task in wanted) == {
        policy: 1 if policy in ORDERS else 8 if policy in SHIPPED else 4 for policy in POLICIES
    }


def test_runs_that_a_file_has_are_not_made_again(tmp_path):
    file = tmp_path / "runs.jsonl"
    made = list(tasks(_options(["--trace", "ee9e8c", "--cost", "5"])))
    assert dict(saved_runs(None)) == dict(saved_runs(file)) == {}
    for number, task in enumerate(made):
        save_run(None, task, {})
        save_run(file, task, {"wall_s": number})
    runs = dict(saved_runs(file))
    assert list(runs) == made
    assert all(isinstance(task, Task) and runs[task] == {"wall_s": number} for number, task in enumerate(made))
