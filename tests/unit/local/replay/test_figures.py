"""Figures: by hand for a run that can be done by hand, and the laws of percentiles and of Jain's index."""

from __future__ import annotations

import statistics
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from trainmaster.local.replay.forecasts import StartEstimate, eta_figures
from trainmaster.local.replay.progress import Bar
from trainmaster.local.replay.report.figures import figures, jain, mean_of_worst, percentile
from trainmaster.local.replay.report.results import JobResult, Usage, usage_over_time
from trainmaster.local.replay.report.tables import comparison, duration, one_table
from trainmaster.local.replay.runs import Run
from trainmaster.local.replay.trace.trace import TraceJob

SMALL = JobResult(TraceJob("small", 10, 100, 2, "vision"), ((20, 120),))
LARGE = JobResult(TraceJob("large", 0, 80, 8, "speech"), ((0, 20), (120, 210)), lost=30)
RUN = [SMALL, LARGE]


def test_the_figures_of_a_run_done_by_hand():
    found = figures(RUN, cap=8)
    assert (found["jobs"], found["makespan_s"]) == (2, 210)
    assert found["avg_jct_s"] == (110 + 210) / 2
    assert found["p50_jct_s"] == 160
    assert found["p99_jct_s"] == 110 + 0.99 * 100
    assert found["avg_wait_s"] == (10 + 130) / 2
    assert found["avg_wait_large_s"] == found["p99_wait_large_s"] == found["worst5_wait_large_s"] == 130
    assert found["worst5_wait_s"] == 130
    assert found["utilization"] == pytest.approx((200 + 640) / (8 * 210), abs=1e-6)
    assert found["preemptions_per_job"] == 0.5
    assert found["lost_fraction"] == pytest.approx(240 / (200 + 880), abs=1e-6)
    assert found["lost_gpu_hours"] == pytest.approx(240 / 3600, abs=1e-3)
    rates = (100 / 110, 80 / 210)
    assert found["jain"] == pytest.approx(sum(rates) ** 2 / (2 * sum(rate**2 for rate in rates)), abs=1e-6)
    assert list(found["by_size"]) == ["2-7", "8-31"]
    assert found["by_size"]["8-31"]["avg_wait_s"] == 130


def test_the_queue_and_the_units_in_use_are_counted_at_each_change():
    assert usage_over_time(RUN) == [
        Usage(0, 0, 8),
        Usage(10, 1, 8),
        Usage(20, 1, 2),
        Usage(120, 0, 8),
        Usage(210, 0, 0),
    ]


def test_without_large_jobs_their_figures_are_none():
    found = figures([SMALL], cap=8)
    assert found["p99_wait_large_s"] is found["worst5_wait_large_s"] is None


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=60), st.floats(0.01, 1))
def test_the_mean_of_the_worst_lies_between_the_percentile_and_the_maximum(values, fraction):
    assert percentile(values, 1 - fraction) - 1e-6 <= mean_of_worst(values, fraction) <= max(values)
    assert mean_of_worst(values, 1) == pytest.approx(statistics.fmean(values))


def test_a_job_that_takes_no_time_divides_by_nothing():
    nothing = JobResult(TraceJob("nothing", 5, 0, 1), ((5, 5),))
    found = figures([nothing], cap=8)
    assert (found["utilization"], found["lost_fraction"], found["jain"]) == (0, 0, 1)


def test_a_job_that_starts_at_once_does_not_wait_less_than_zero():
    result = JobResult(TraceJob("fractions", 1.1, 0.2, 1), ((1.1, 1.1 + 0.2),))
    assert result.jct < 0.2
    assert str(result.wait) == "0.0"


@given(st.lists(st.floats(0, 1e9), min_size=2, max_size=50))
def test_percentiles_are_pythons_own_inclusive_ones(values):
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    assert percentile(values, 0.5) == pytest.approx(cuts[49])
    assert percentile(values, 0.99) == pytest.approx(cuts[98])


@given(st.lists(st.floats(0.001, 1e6), min_size=1, max_size=20))
def test_jains_index_lies_between_one_nth_and_one(values):
    assert 1 / len(values) - 1e-9 <= jain(values) <= 1 + 1e-9


def test_jains_index_is_one_for_equals_and_less_for_others():
    assert jain([3, 3, 3]) == pytest.approx(1)
    assert jain([1, 0, 0, 0]) == 0.25


# -- what was foretold

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def foretold(likely, low, high):
    return StartEstimate(EPOCH, *(EPOCH + timedelta(seconds=at) for at in (likely, low, high)))


def test_jobs_without_an_estimate_do_not_count_as_inside():
    found = eta_figures(RUN, {0: foretold(26, 20, 30), 1: StartEstimate(EPOCH)}, EPOCH)
    assert found == {
        "eta_asked": 2,
        "eta_known": 1,
        "eta_median_error_s": 6,
        "eta_median_width_s": 10,
        "eta_inside": 0.5,
        "eta_inside_all": 0.5,
    }


def test_jobs_that_started_at_once_are_told_apart():
    at_once = StartEstimate(EPOCH, started_at_once=True)
    found = eta_figures(RUN, {0: foretold(26, 25, 30), 1: at_once, 2: at_once, 3: at_once}, EPOCH)
    assert (found["eta_asked"], found["eta_inside"], found["eta_inside_all"]) == (1, 0, 0.75)
    assert eta_figures(RUN, {1: at_once}, EPOCH)["eta_inside"] is None


@pytest.mark.parametrize(("low", "high", "inside"), [(20, 20, 1), (0, 19.9, 0), (20.1, 99, 0)])
def test_a_range_holds_its_ends(low, high, inside):
    assert eta_figures(RUN, {0: foretold(20, low, high)}, EPOCH)["eta_inside"] == inside


def test_where_nothing_was_foretold_there_is_no_error():
    found = eta_figures(RUN, {1: StartEstimate(EPOCH)}, EPOCH)
    assert (found["eta_median_error_s"], found["eta_inside"]) == (None, 0)


# -- for people


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0, "0 s"), (59, "59 s"), (90, "1.5 min"), (5400, "1.5 h"), (129_600, "1.5 d"), (None, "-")]
)
def test_durations_are_said_as_people_say_them(seconds, shown):
    assert duration(seconds) == shown


def test_the_tables_hold_the_figures():
    run = Run("fifo", 8, RUN, 1.25)
    shown = one_table(run)
    assert "2 on 8 GPUs" in shown
    assert "22.2% (0.1 GPU-hours)" in shown
    reference = Run("baseline-skip", 8, [SMALL, JobResult(LARGE.job, ((0, 105),))], 0.1)
    row = comparison([reference, run]).splitlines()[-1]
    assert "3.5 min" in row
    assert "(1.90)" in row  # p99 JCT, 209 s of 110 s


# -- the bar


def test_the_bar_moves_on_a_terminal_and_leaves_nothing_behind():
    console = Console(force_terminal=True, width=80, record=True)
    with Bar(console) as bar:
        bar.begin("fifo", 1000)
        for done in range(0, 1001, 100):
            bar.at(done)
        bar.show("listing jobs", 5, None)
    shown = console.export_text()
    assert "listing jobs" in shown


def test_elsewhere_it_says_nothing():
    console = Console(force_terminal=False, record=True)
    with Bar(console) as bar:
        bar.begin("fifo", 10)
        bar.at(10)
    assert console.export_text() == ""
