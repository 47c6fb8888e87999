"""Sweeps in a queue: submitted, followed, stopped early, cancelled, and read again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_api import FakeApi, a_request, an_attempt
from fake_metrics import FakeMetrics
from trainmaster.client.api.client import ApiClient
from trainmaster.client.api.errors import Conflict, Forbidden, NotFound, Refused
from trainmaster.client.sweeps.metrics import FinalMetrics, MetricCurves
from trainmaster.client.sweeps.run import SweepProgress, SweepRun
from trainmaster.client.sweeps.space import Categorical
from trainmaster.client.sweeps.stopping import MIN_COMPLETED, MIN_POINTS, median_rule
from trainmaster.client.sweeps.sweep import Objective, Sweep
from trainmaster.client.sweeps.trials import objective_of, read_trials, results_of, varied

STARTED = datetime(2026, 11, 20, 12, 1, tzinfo=timezone.utc)
LOSS = Objective("loss")


def a_sweep(values: int = 6, **changes: Any) -> Sweep:
    space = {"n": Categorical(*map(str, range(values)))}
    request = a_request("base", HyperParameters={"epochs": "3"})
    return Sweep(**{"name": "s", "request": request, "space": space, "strategy": "grid", "objective": LOSS} | changes)


def by_value(sweep: Sweep) -> dict[str, str]:
    """Names of the trials by the value of their hyperparameter."""
    return {trial.values["n"]: trial.name for trial in sweep.planned()}


class Clock:
    """A clock that only sleeping advances; then the next thing happens."""

    def __init__(self, *happens: Callable[[], object]) -> None:
        self.at, self.happens = STARTED, list(happens)

    def now(self) -> datetime:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)
        assert self.happens, "the sweep waits for something that the test does not foresee"
        self.happens.pop(0)()


def a_run(client: ApiClient, sweep: Sweep, clock: Clock, metrics: FakeMetrics | None = None) -> SweepRun:
    metrics = metrics or FakeMetrics(STARTED)
    return SweepRun(client, sweep, client=lambda _: metrics, sleep=clock.sleep, now=clock.now)


def end(world: FakeApi, metrics: FakeMetrics, name: str, loss: float, state: str = "completed") -> None:
    if not world.jobs[name]["attempts"]:
        world.start(name)
    metrics.finals[world.jobs[name]["trainingJobName"]] = {"loss": loss}
    world.end(name, state)


def test_all_trials_are_submitted_at_once_and_a_second_time_none(client: ApiClient, world: FakeApi) -> None:
    sweep = a_sweep(20, max_concurrent=3)
    answers = client.sweep(sweep).submit()
    assert {answer["jobName"] for answer in answers} == set(world.jobs) == set(by_value(sweep).values())
    assert all(answer["submittedBefore"] for answer in answers)
    assert len(world.jobs) == 20
    client.sweep(a_sweep(21, max_concurrent=3))
    assert len(world.jobs) == 21, "one more value, one more trial"


def test_an_invalid_request_is_refused_once(client: ApiClient, world: FakeApi) -> None:
    with pytest.raises(Refused):
        client.sweep(a_sweep(request=a_request("base", RoleArn="other")))
    assert [call[1] for call in world.calls] == ["/add-job"]


def test_a_name_that_another_sweep_has_is_a_conflict_that_says_so(client: ApiClient) -> None:
    client.sweep(a_sweep())
    with pytest.raises(Conflict) as caught:
        client.sweep(a_sweep(max_concurrent=2))
    assert "give this one another name" in (caught.value.hint or "")


def test_a_wait_shows_progress_and_returns_the_best_first(client: ApiClient, world: FakeApi) -> None:
    sweep, metrics, seen = a_sweep(4), FakeMetrics(STARTED), list[SweepProgress]()
    names = by_value(sweep)
    clock = Clock(
        lambda: (world.start(names["0"]), world.start(names["1"]), world.preempt(names["1"])),
        lambda: (end(world, metrics, names["0"], 0.5), world.start(names["1"]), world.end(names["3"], "cancelled")),
        lambda: (end(world, metrics, names["1"], 0.25), end(world, metrics, names["2"], 0.1, "failed")),
    )
    run = a_run(client, sweep, clock, metrics)
    run.submit()
    results = run.wait(15, seen.append)
    assert [(each.values["n"], each.state, each.metric) for each in results] == [
        ("1", "completed", 0.25),
        ("0", "completed", 0.5),
        ("2", "failed", 0.1),
        ("3", "cancelled", None),
    ]
    assert [(each.states["running"], each.states["completed"], each.total) for each in seen] == [
        (0, 0, 4),
        (1, 0, 4),
        (1, 1, 4),
        (0, 2, 4),
    ]
    assert [each.best and each.best.values["n"] for each in seen] == [None, None, "0", "1"]
    assert [each.done for each in seen] == [False, False, False, True]


def test_polling_asks_for_open_trials_in_pages_and_once_for_each_that_ends(client: ApiClient, world: FakeApi) -> None:
    world.page_length = 100
    sweep = a_sweep(8, objective=None)
    names = list(by_value(sweep).values())
    run = a_run(client, sweep, Clock())
    run.submit()
    world.calls.clear()
    run.step()
    assert [call[1] for call in world.calls] == ["/jobs"]
    for name in names[:3]:
        world.end(name)
    run.step()
    run.step()
    assert sorted(call[1] for call in world.calls) == sorted(["/jobs"] * 3 + [f"/jobs/{name}" for name in names[:3]])


def test_the_metric_is_that_of_the_newest_attempt_that_has_it(client: ApiClient, world: FakeApi) -> None:
    metrics = FakeMetrics(STARTED)
    attempts = [an_attempt("a", number, endedAt="2026-11-20T13:00:00Z") for number in (1, 2, 3)]
    job: Any = world.add("a", "completed", attempts=attempts)
    metrics.finals |= {"a": {"loss": 3.0}, "a-qstamp-2": {"loss": 2.0}, "a-qstamp-3": {"other": 1.0}}
    final = FinalMetrics(lambda: metrics)
    assert [final.value(job, "loss") for _ in range(2)] == [2.0, 2.0]
    assert metrics.described == ["a-qstamp-3", "a-qstamp-2"], "each ended attempt is read once"
    assert FinalMetrics(lambda: metrics).value(world.add("b", "completed", attempts=[an_attempt("b")]), "loss") is None


def test_a_missing_permission_is_named(world: FakeApi) -> None:
    metrics = FakeMetrics(STARTED)
    metrics.denied = True
    job: Any = world.add("a", "running", attempts=[an_attempt("a")])
    with pytest.raises(Forbidden) as caught:
        FinalMetrics(lambda: metrics).value(job, "loss")
    assert "sagemaker:DescribeTrainingJob" in (caught.value.hint or "")
    with pytest.raises(Forbidden) as caught:
        MetricCurves(metrics, "loss").read([job], STARTED)
    assert "cloudwatch:GetMetricData" in (caught.value.hint or "")


def test_a_curve_goes_on_over_the_attempts_of_a_job(world: FakeApi) -> None:
    metrics = FakeMetrics(STARTED)
    first = an_attempt("a", 1, endedAt="2026-11-20T12:11:00Z", outcome="preempted")
    second = an_attempt("a", 2, startedAt="2026-11-20T13:01:00Z")
    job: Any = world.add("a", "running", attempts=[first, second])
    metrics.curves = {"a": [(1, 0.9), (9, 0.8)], "a-qstamp-2": [(61, 0.7)]}
    curves = MetricCurves(metrics, "loss").read([job], STARTED)
    assert curves == {"a": [(60.0, 0.9), (540.0, 0.8), (660.0, 0.7)]}


def test_curves_of_ended_trials_are_read_once_and_many_in_parts(world: FakeApi) -> None:
    metrics = FakeMetrics(STARTED)
    jobs: list[Any] = [world.add(f"j{n}", "running", attempts=[an_attempt(f"j{n}")]) for n in range(501)]
    jobs[0]["endedAt"] = "2026-11-20T13:00:00Z"
    curves = MetricCurves(metrics, "loss")
    curves.read(jobs, STARTED)
    assert sorted(map(len, metrics.queried)) == [1, 500]
    metrics.queried.clear()
    assert curves.read(jobs[:2], STARTED) == {"j0": [], "j1": []}
    assert metrics.queried == [["j1"]]


CURVES = st.lists(st.floats(-10, 10), max_size=8).map(lambda values: [(60.0 * n, v) for n, v in enumerate(values)])


@given(CURVES, st.lists(CURVES, max_size=8), st.sampled_from(["Minimize", "Maximize"]))
def test_the_median_rule_stops_only_what_is_strictly_worse_than_half(curve: Any, others: Any, goal: Any) -> None:
    objective = Objective("m", goal)
    verdict = median_rule(curve, {str(n): other for n, other in enumerate(others)}, objective)
    mirrored = median_rule(
        [(at, -value) for at, value in curve],
        {str(n): [(at, -value) for at, value in other] for n, other in enumerate(others)},
        Objective("m", "Maximize" if goal == "Minimize" else "Minimize"),
    )
    assert (verdict is None) == (mirrored is None)
    if verdict is not None:
        better = [
            other
            for other in others
            if other
            and objective.is_better(sum(v for _, v in other[: len(curve)]) / len(other[: len(curve)]), verdict.best)
        ]
        assert 2 * len(better) >= len([other for other in others if other]) >= MIN_COMPLETED
        assert len(curve) >= MIN_POINTS


def test_the_median_rule_compares_at_the_same_age() -> None:
    completed = {str(n): [(60.0, 1.0), (120.0, 1.0), (180.0, 1.0), (3600.0, 0.0)] for n in range(MIN_COMPLETED)}
    young = [(60.0, 1.1), (120.0, 1.0), (180.0, 1.2)]
    assert median_rule(young, completed, LOSS) is None, "by its age its best is no worse than the others' averages"
    old = [*young, (3600.0, 0.9)]
    verdict = median_rule(old, completed, LOSS)
    assert verdict is not None
    assert (verdict.best, verdict.median, verdict.seconds, verdict.compared) == (0.9, 0.75, 3600.0, MIN_COMPLETED)
    assert median_rule(old, dict(list(completed.items())[1:]), LOSS) is None, "too few to compare with"


def test_worse_trials_are_stopped_early_with_the_reason(client: ApiClient, world: FakeApi) -> None:
    sweep, metrics = a_sweep(6, early_stopping=True), FakeMetrics(STARTED)
    names = by_value(sweep)
    curve = [(minute, 0.5) for minute in range(5)]

    def run_four() -> None:
        for value in "0123":
            world.start(names[value])
            metrics.curves[names[value]] = curve
            end(world, metrics, names[value], 0.5)
        for value, loss in (("4", 0.9), ("5", 0.4)):
            world.start(names[value])
            metrics.curves[names[value]] = [(minute, loss) for minute in range(4)]
            metrics.finals[names[value]] = {"loss": loss}

    clock = Clock(
        run_four, lambda: None, lambda: (world.end(names["4"], "stopped"), end(world, metrics, names["5"], 0.4))
    )
    run = a_run(client, sweep, clock, metrics)
    run.submit()
    results = run.wait(60)
    assert list(run.stopped) == [names["4"]]
    cancels = [(path, body) for method, path, body in world.calls if method == "DELETE"]
    assert [path for path, _ in cancels] == [f"/jobs/{names['4']}"]
    assert cancels[0][1]["reason"] == (
        "early stop: its best loss was 0.9 after 3 minutes, worse than 0.5, the median of 4 completed trials"
    )
    assert (results[0].values["n"], results[0].state) == ("5", "completed")
    assert results[-1].state == "stopped"


def test_curves_are_compared_at_most_once_a_minute(client: ApiClient, world: FakeApi) -> None:
    sweep, metrics = a_sweep(2, early_stopping=True), FakeMetrics(STARTED)
    names = by_value(sweep)
    clock = Clock(*[lambda: None] * 9, lambda: end(world, metrics, names["1"], 1.0))
    run = a_run(client, sweep, clock, metrics)
    run.submit()
    end(world, metrics, names["0"], 1.0)
    world.start(names["1"])
    run.wait(15)
    assert len(metrics.queried) == 3, "after 0, 60 and 120 seconds"


def test_a_cancel_leaves_no_open_trial_and_cancels_waiting_ones_first(client: ApiClient, world: FakeApi) -> None:
    sweep = a_sweep(4)
    run = a_run(client, sweep, Clock())
    run.submit()
    names = list(by_value(sweep).values())
    world.start(names[0])
    end(world, FakeMetrics(STARTED), names[3], 1.0)
    assert run.cancel() == 3
    cancelled = [path for method, path, _ in world.calls if method == "DELETE"]
    assert sorted(cancelled) == sorted(f"/jobs/{name}" for name in names[:3])
    assert cancelled[-1] == f"/jobs/{names[0]}"


def test_only_trials_of_the_sweep_are_read(client: ApiClient, world: FakeApi) -> None:
    client.sweep(a_sweep(3))
    client.sweep(a_sweep(2, name="s-2"))
    world.add("s-0123456789", jobDetails=a_request("s-0123456789"))  # of that name, but in no group
    world.add("s-other")
    jobs = read_trials(client, "s")
    assert len(jobs) == 3
    assert objective_of(jobs) == LOSS
    assert varied(results_of(jobs, None, FinalMetrics(lambda: None))) == ["n"]
    with pytest.raises(NotFound, match="no trials of a sweep t"):
        read_trials(client, "t")
