"""Requests of the jobs of a trace, and the facts of it that the queue may know."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from trainmaster.domain.capacity.units import Pool
from trainmaster.local.replay.trace.requests import POOL, admit_job, default_max_runtime, index_of, name_of, request_of
from trainmaster.local.replay.trace.trace import TraceJob

POOLS = {POOL: Pool(POOL, 8)}
NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAY = 86_400


def job(duration=100.0, max_runtime=None):
    return TraceJob("a", 0, duration, 2, "vision", max_runtime)


def admit(trace_job):
    return admit_job(request_of(trace_job, 3), trace_job, default_max_runtime([trace_job]), POOLS, NOW)


def test_names_sort_as_the_trace_does_and_lead_back_to_it():
    names = [name_of(index) for index in (0, 9, 10, 999_999)]
    assert names == sorted(names)
    assert [index_of(name) for name in names] == [0, 9, 10, 999_999]


def test_a_job_is_let_in_with_its_share_and_as_many_units_as_gpus():
    made = admit(job())
    assert (made.name, made.share, made.entry_time) == ("job-0000003", "vision", NOW)
    assert made.demand.alternatives == ({POOL: 2},)
    assert made.preemptible


def test_only_the_simulators_variable_has_the_run_time():
    short, long = admit(job(100.0)), admit(job(200_000.0))
    assert (short.max_runtime, short.priority, short.demand) == (long.max_runtime, long.priority, long.demand)


def test_the_limit_is_sagemakers_longest_or_what_the_trace_tells():
    assert admit(job()).max_runtime == timedelta(days=28)
    assert admit(job(max_runtime=3600.0)).max_runtime == timedelta(hours=1)
    assert admit(job(max_runtime=0.0)).max_runtime == timedelta(seconds=1)


def test_a_limit_beyond_sagemakers_is_the_traces():
    assert admit(job(54.0 * DAY, max_runtime=60.0 * DAY)).max_runtime == timedelta(days=60)
    request = request_of(job(max_runtime=60.0 * DAY), 3)
    assert request["StoppingCondition"] == {"MaxRuntimeInSeconds": 28 * DAY}


def test_no_job_outlives_its_limit_however_long_the_trace_has_it():
    assert admit(job(54.0 * DAY)).max_runtime == timedelta(days=56)
    assert default_max_runtime([job(28.0 * DAY)]) == timedelta(days=28)
    assert default_max_runtime([]) == timedelta(days=28)
