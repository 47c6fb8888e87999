"""Sweeps whose search is Optuna's: asked, told, interrupted and continued."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import optuna
import pytest

from cli_terminal import Terminal
from doc_blocks import blocks, commands
from fake_api import ENDED, FakeApi, a_request
from fake_metrics import FakeMetrics
from trainmaster.client.api.client import ApiClient
from trainmaster.client.sweeps.run import SweepRun
from trainmaster.client.sweeps.space import Categorical, Continuous, Integer
from trainmaster.client.sweeps.sweep import Objective, Sweep

STARTED = datetime(2026, 11, 20, 12, 1, tzinfo=timezone.utc)
SPACE = {
    "lr": Continuous(1e-4, 1.0, "Logarithmic"),
    "momentum": Continuous(0.5, 0.999, "ReverseLogarithmic"),
    "dropout": Continuous(0.0, 0.5),
    "layers": Integer(1, 6),
    "optimizer": Categorical("adam", "sgd"),
}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)


@pytest.fixture
def storage(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'study.db'}"


def a_sweep(storage: str, **changes: Any) -> Sweep:
    about = {"strategy": "optuna", "trials": 12, "max_concurrent": 3, "objective": Objective("loss"), "seed": 1}
    return Sweep("s", a_request("base"), SPACE, **{**about, "storage": storage, **changes})


def a_study(storage: str) -> optuna.Study:
    return optuna.load_study(study_name="s", storage=storage)


def open_trials(world: FakeApi) -> list[str]:
    return [name for name, job in world.jobs.items() if job["jobState"] not in ENDED]


def end_all(world: FakeApi, metrics: FakeMetrics, states: dict[str, str] | None = None) -> None:
    """End all open trials; their loss follows from their hyperparameters."""
    for name in open_trials(world):
        values = world.jobs[name]["jobDetails"]["HyperParameters"]
        world.start(name)
        loss = abs(float(values.get("dropout", 0)) - 0.2) + int(values.get("layers", 1)) / 10
        metrics.finals[name] = {"loss": loss, "validation:accuracy": 1 - loss}
        world.end(name, (states or {}).get(name, "completed"))


def run_of(client: ApiClient, sweep: Sweep, metrics: FakeMetrics, happens: Any) -> SweepRun:
    return SweepRun(client, sweep, client=lambda _: metrics, sleep=lambda _: happens(), now=lambda: STARTED)


def test_the_search_asks_for_trials_as_others_end_and_never_for_more_than_allowed(
    client: ApiClient, world: FakeApi, storage: str
) -> None:
    metrics, at_once = FakeMetrics(STARTED), list[int]()

    def happens() -> None:
        at_once.append(len(open_trials(world)))
        end_all(world, metrics)

    run = run_of(client, a_sweep(storage), metrics, happens)
    run.submit()
    results = run.wait()
    assert at_once == [3, 3, 3, 3]
    assert sorted(world.jobs) == [f"s-{number:04d}" for number in range(12)]
    study = a_study(storage)
    assert study.best_value == results[0].metric
    assert results[0].name == f"s-{study.best_trial.number:04d}"
    for trial, name in zip(study.trials, sorted(world.jobs), strict=True):
        values = world.jobs[name]["jobDetails"]["HyperParameters"]
        assert float(values["lr"]) == trial.params["lr"]
        assert float(values["momentum"]) == pytest.approx(1 - trial.params["1 - momentum"])
        assert values["optimizer"] == trial.params["optimizer"]
        for hyperparameter, given in SPACE.items():
            if not isinstance(given, Categorical):
                assert given.low <= float(values[hyperparameter]) <= given.high + 1e-12


def test_stopped_trials_are_pruned_and_failed_ones_have_failed(client: ApiClient, world: FakeApi, storage: str) -> None:
    metrics = FakeMetrics(STARTED)
    states = {"s-0000": "stopped", "s-0001": "failed", "s-0002": "cancelled"}
    run = run_of(client, a_sweep(storage, trials=4), metrics, lambda: end_all(world, metrics, states))
    run.submit()
    assert len(run.wait()) == 4
    assert [trial.state.name for trial in a_study(storage).trials] == ["PRUNED", "FAIL", "FAIL", "COMPLETE"]


def test_an_interrupted_search_continues_with_the_trials_that_are_still_open(
    client: ApiClient, world: FakeApi, storage: str
) -> None:
    metrics, looks = FakeMetrics(STARTED), list[None]()

    def happens() -> None:
        looks.append(None)
        if len(looks) == 2:
            raise KeyboardInterrupt
        end_all(world, metrics)

    first = run_of(client, a_sweep(storage), metrics, happens)
    first.submit()
    with pytest.raises(KeyboardInterrupt):
        first.wait()
    assert sorted(open_trials(world)) == ["s-0003", "s-0004", "s-0005"]
    # One trial was asked for, and the process ended before its job was submitted.
    lost = world.jobs.pop("s-0005")
    second = run_of(client, a_sweep(storage), metrics, happens)
    second.submit()
    assert world.jobs["s-0005"]["jobDetails"] == lost["jobDetails"], "the same values under the same name"
    assert second.progress().total == 9
    second.wait()
    assert len(world.jobs) == 12
    assert {trial.state.name for trial in a_study(storage).trials} == {"COMPLETE"}
    third = run_of(client, a_sweep(storage), metrics, happens)
    third.submit()
    assert third.wait()[0].metric == a_study(storage).best_value, "nothing is left to do"
    assert len(world.jobs) == 12


def test_the_command_runs_the_search(run: Terminal, world: FakeApi, storage: str, tmp_path: Path) -> None:
    metrics = FakeMetrics(STARTED)
    run.services |= {"sagemaker": metrics}
    run.meanwhile = [lambda: end_all(world, metrics)] * 3
    path = tmp_path / "job.json"
    path.write_text(json.dumps(a_request("tune")))
    ranges = ("--continuous", "dropout=0:0.5", "--integer", "layers=1:6", "--maximize", "loss")
    limits = ("--trials", "6", "--max-concurrent", "2", "--strategy", "optuna", "--storage", storage)
    result = run("sweep", "submit", str(path), *ranges, *limits, "--json")
    assert result.exit_code == 0, result.output
    shown = json.loads(result.stdout)
    values = [trial["metric"] for trial in shown["trials"]]
    assert len(values) == 6
    assert values == sorted(values, reverse=True)
    assert shown["objective"] == {"metric": "loss", "goal": "Maximize"}
    assert "tune: 6 of 6 trials have ended (6 completed)" in result.stderr


def test_the_command_of_the_page_runs(run: Terminal, world: FakeApi, tmp_path: Path, monkeypatch: Any) -> None:
    """Runs the block of docs/how-to/sweeps.md."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.json").write_text(json.dumps(a_request("job")))
    (block,) = [each for each in blocks() if each.page.endswith("how-to/sweeps.md") and "--storage" in each.text]
    _, (_, *arguments) = commands(block)
    metrics = FakeMetrics(STARTED)
    run.services |= {"sagemaker": metrics}
    run.meanwhile = [lambda: end_all(world, metrics)] * 3
    short = [{"50": "4"}.get(argument, argument) for argument in arguments]
    assert run(*short).exit_code == 0
    assert len(world.jobs) == 4
