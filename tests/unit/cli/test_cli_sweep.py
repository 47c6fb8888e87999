"""`trainmaster sweep`: trials submitted, shown, followed and cancelled."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from contextlib import redirect_stderr
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NoReturn

import pytest

from cli_terminal import Terminal
from doc_blocks import blocks
from fake_api import FakeApi, a_request
from fake_metrics import FakeMetrics
from hostile_api import HOSTILE
from trainmaster.cli.common.context import CliContext
from trainmaster.cli.sweeps.output import progress_display
from trainmaster.client.api.errors import NotConfigured
from trainmaster.client.sweeps import search
from trainmaster.client.sweeps.run import SweepProgress

METRICS = FakeMetrics(datetime(2026, 11, 20, 12, 1, tzinfo=timezone.utc))
PAGES = ("sweeps.md", "tuners-and-pipelines.md")
RANGES = ("--integer", "n=1:3", "--strategy", "grid", "--minimize", "loss")


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "job.json"
    path.write_text(json.dumps(a_request("tune", HyperParameters={"epochs": "3"})))
    return str(path)


@pytest.fixture
def metrics(run: Terminal) -> FakeMetrics:
    metrics = FakeMetrics(METRICS.started)
    run.services |= {"sagemaker": metrics, "cloudwatch": metrics}
    return metrics


def names(world: FakeApi) -> dict[str, str]:
    """Names of the trials by the value of `n`."""
    return {job["jobDetails"]["HyperParameters"]["n"]: name for name, job in world.jobs.items()}


def end(world: FakeApi, metrics: FakeMetrics, value: str, loss: float, state: str = "completed") -> None:
    name = names(world)[value]
    world.start(name)
    metrics.finals[name] = {"loss": loss}
    world.end(name, state)


def test_a_sweep_is_submitted_and_the_same_command_submits_nothing_more(
    run: Terminal, world: FakeApi, file: str
) -> None:
    first = run(
        "sweep", "submit", file, *RANGES, "--max-concurrent", "2", "--priority", "3", "--option", "share=vision"
    )
    assert first.exit_code == 0, first.output
    assert first.stdout == (
        "Submitted 3 trials of tune.\nAt most 2 run at once. `trainmaster sweep show tune` shows them.\n"
    )
    assert first.stderr.count("Warning") == 1, "one for all trials"
    assert set(names(world)) == {"1", "2", "3"}
    assert {job["priority"] for job in world.jobs.values()} == {3}
    assert {job["share"] for job in world.jobs.values()} == {"vision"}
    again = run(
        "sweep", "submit", file, *RANGES, "--max-concurrent", "2", "--priority", "3", "--option", "share=vision"
    )
    assert "Submitted 0 trials of tune; 3 were in the queue already." in again.stdout


def test_the_table_has_the_best_first_and_the_values_that_differ(
    run: Terminal, world: FakeApi, file: str, metrics: FakeMetrics
) -> None:
    run("sweep", "submit", file, *RANGES)
    end(world, metrics, "1", 0.5)
    end(world, metrics, "2", 0.123456789)
    lines = run("sweep", "show", "tune").stdout.splitlines()
    assert lines[0].split() == ["Trial", "State", "loss", "n", "Attempts", "Ran"]
    assert [line.split()[1:4] for line in lines[2:4]] == [["completed", "0.123457", "2"], ["completed", "0.5", "1"]]
    assert lines[4].split()[1:] == ["pending", "3"]
    best_is_highest = run("sweep", "show", "tune", "--maximize", "loss").stdout.splitlines()
    assert best_is_highest[2].split()[3] == "1"
    shown = json.loads(run("sweep", "show", "tune", "--json").stdout)
    assert shown["objective"] == {"metric": "loss", "goal": "Minimize"}
    assert [trial["metric"] for trial in shown["trials"]] == [0.123456789, 0.5, None]
    assert shown["trials"][0]["hyperParameters"] == {"epochs": "3", "n": "2"}
    rows = list(csv.DictReader(io.StringIO(run("sweep", "show", "tune", "-o", "csv").stdout)))
    assert [row["loss"] for row in rows] == ["0.123456789", "0.5", ""]


def test_without_a_metric_no_service_but_the_queue_is_asked(run: Terminal, file: str) -> None:
    run("sweep", "submit", file, *RANGES[:4])
    assert run("sweep", "show", "tune").stdout.split()[:4] == ["Trial", "State", "n", "Attempts"]


def test_a_wait_prints_a_line_for_each_change_and_ends_with_the_table(
    run: Terminal, world: FakeApi, file: str, metrics: FakeMetrics
) -> None:
    run.meanwhile = [
        lambda: end(world, metrics, "2", 0.5),
        lambda: None,
        lambda: (end(world, metrics, "1", 0.25), end(world, metrics, "3", 1.0, "failed")),
    ]
    result = run("sweep", "submit", file, *RANGES, "--wait")
    assert result.exit_code == 1, "a trial failed"
    best, last = names(world)["2"], names(world)["1"]
    assert [line for line in result.stderr.splitlines() if line.startswith("tune:")] == [
        "tune: 0 of 3 trials have ended, 0 at work, 3 waiting.",
        f"tune: 1 of 3 trials have ended (1 completed), 0 at work, 2 waiting; best so far 0.5 of {best}.",
        f"tune: 3 of 3 trials have ended (2 completed, 1 failed), 0 at work, 0 waiting; best so far 0.25 of {last}.",
    ]
    assert [line.split()[3] for line in result.stdout.splitlines()[3:]] == ["1", "2", "3"]


def test_early_stops_are_no_failures_and_need_no_wait_option(
    run: Terminal, world: FakeApi, file: str, metrics: FakeMetrics
) -> None:
    def run_all() -> None:
        for value in ("1", "2", "3", "4", "5"):
            name = names(world)[value]
            metrics.curves[name] = [(minute, 9.0 if value == "5" else 1.0) for minute in range(4)]
            if value == "5":
                world.start(name)
            else:
                end(world, metrics, value, 1.0)

    run.meanwhile = [run_all, lambda: None, lambda: world.end(names(world)["5"], "stopped")]
    ranges = ("--integer", "n=1:5", "--strategy", "grid", "--minimize", "loss")
    result = run("sweep", "submit", file, *ranges, "--early-stop", "--interval", "60")
    assert result.exit_code == 0, result.output
    assert ("DELETE", f"/jobs/{names(world)['5']}") in [call[:2] for call in world.calls]


@pytest.mark.parametrize("moment", ["submission", "wait"])
def test_ctrl_c_leaves_the_trials_and_says_how_to_go_on(run: Terminal, world: FakeApi, file: str, moment: str) -> None:
    def interrupt() -> NoReturn:
        raise KeyboardInterrupt

    answer = world.post_add_job

    def interrupted(request: dict[str, Any]) -> tuple[int, Any]:
        return answer(request) if not world.jobs else interrupt()

    if moment == "submission":
        world.post_add_job = interrupted  # type: ignore[method-assign]
    run.meanwhile = [interrupt]
    result = run("sweep", "submit", file, *RANGES, "--wait")
    assert result.exit_code == 130
    assert "he same command continues" in result.stderr
    assert not [call for call in world.calls if call[0] == "DELETE"]


def test_a_cancel_ends_the_open_trials_and_a_second_one_finds_none(run: Terminal, world: FakeApi, file: str) -> None:
    run("sweep", "submit", file, *RANGES)
    result = run("sweep", "cancel", "tune")
    assert result.exit_code == 0
    assert {job["jobState"] for job in world.jobs.values()} == {"cancelled"}
    assert len(result.stdout.splitlines()) == 3
    assert run("sweep", "cancel", "tune").stderr == "All trials had ended.\n"
    assert run("sweep", "cancel", "other").exit_code == 3


def test_a_cancel_says_that_running_trials_stop(run: Terminal, world: FakeApi, file: str) -> None:
    run("sweep", "submit", file, *RANGES)
    first = min(world.jobs)
    world.start(first)
    lines = run("sweep", "cancel", "tune").stdout.splitlines()
    assert f"{first}: Stopping; it will not be resumed." in lines


def test_a_dry_run_shows_the_trials_and_calls_nothing(run: Terminal, world: FakeApi, file: str) -> None:
    shown = run("sweep", "submit", file, *RANGES, "--dry-run").stdout
    assert [line.split()[1] for line in shown.splitlines()[2:]] == ["1", "2", "3"]
    requests = json.loads(run("sweep", "submit", file, *RANGES, "--dry-run", "--json").stdout)
    assert [request["HyperParameters"]["n"] for request in requests] == ["1", "2", "3"]
    assert world.calls == []


def test_a_tuning_job_names_what_has_no_effect(run: Terminal, tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "tuning-job.json"
    ranges = {"ContinuousParameterRanges": [{"Name": "lr", "MinValue": "0", "MaxValue": "1"}]}
    limits = {"MaxNumberOfTrainingJobs": 2, "MaxParallelTrainingJobs": 1, "MaxRuntimeInSeconds": 60}
    config = {"Strategy": "Random", "ResourceLimits": limits, "ParameterRanges": ranges}
    definition = {name: value for name, value in a_request("x").items() if name not in ("TrainingJobName", "Tags")}
    tuning = {"HyperParameterTuningJobName": "t", "HyperParameterTuningJobConfig": config}
    path.write_text(json.dumps(tuning | {"TrainingJobDefinition": definition}))
    monkeypatch.chdir(tmp_path)
    commands = {page: [each.text for each in blocks() if each.page == f"docs/how-to/{page}"] for page in PAGES}
    assert all("trainmaster sweep submit tuning-job.json\n" in texts for texts in commands.values())
    result = run("sweep", "submit", "tuning-job.json")
    assert result.exit_code == 0, result.output
    assert "Warning: Without effect on the sweep: MaxRuntimeInSeconds." in result.stderr
    assert "Submitted 2 trials of t." in result.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--continuous", "lr"), "'lr' is no range: use NAME=RANGE"),
        (("--continuous", "lr=1"), "'1' is not MIN:MAX or MIN:MAX:SCALING"),
        (("--continuous", "lr=0:1:log"), "A logarithmic range cannot begin at 0.0."),
        (("--integer", "n=1:2:cubic"), "'1:2:cubic' is not MIN:MAX or MIN:MAX:SCALING"),
        (("--integer", "n=1:2", "--categorical", "n=a,b"), "there are two ranges of n"),
        (("--minimize", "a", "--maximize", "b"), "a sweep has one metric"),
        ((), "The sweep has no ranges."),
        (("--integer", "n=1:2"), "The number of trials is missing."),
        (("--integer", "n=1:2", "--name", "a b"), "cannot be the name of a sweep"),
        (("--integer", "n=1:2", "--strategy", "optuna", "--trials", "3"), "metric to compare trials by is missing"),
    ],
)
def test_wrong_options_are_refused_in_words(
    run: Terminal, world: FakeApi, file: str, arguments: tuple[str, ...], words: str
) -> None:
    result = run("sweep", "submit", file, *arguments)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())
    assert world.calls == []


def test_without_optuna_the_command_says_what_to_install(run: Terminal, file: str) -> None:
    given = ("--strategy", "optuna", "--trials", "3", "--max-concurrent", "1", "--storage", "sqlite://")
    result = run("sweep", "submit", file, "--integer", "n=1:2", "--minimize", "loss", *given)
    assert result.exit_code == 2
    assert "pip install 'trainmaster[optuna]'" in result.stderr


def test_the_search_is_the_one_that_is_not_installed_here() -> None:
    with pytest.raises(NotConfigured, match="Optuna is not installed"):
        search._optuna()


@pytest.mark.parametrize("form", ["table", "csv", "json", "yaml"])
def test_hostile_hyperparameters_have_no_effect(run: Terminal, world: FakeApi, metrics: FakeMetrics, form: str) -> None:
    tags = [{"Key": "trainmaster:group", "Value": "tune"}]
    for name, values in (("tune-0123456789", {HOSTILE: "1", "n": "2"}), ("tune-0000000000", {"n": HOSTILE})):
        world.add(name, jobDetails=a_request(name, HyperParameters=values, Tags=tags))
    result = run("sweep", "show", "tune", "--minimize", HOSTILE, "-o", form)
    assert result.exit_code == 0
    assert result.stdout.replace("\n", "").isprintable()
    if form == "table":
        assert len(result.stdout.splitlines()) == 4


def test_a_terminal_shows_a_bar_that_it_removes() -> None:
    out = Tty()
    with redirect_stderr(out), progress_display(CliContext(environ={"TERM": "xterm"}), "[bold]s") as show:
        show(SweepProgress(Counter({"running": 1, "completed": 1}), 3, None, done=False))
    assert "[bold]s: 1 of 3 trials have ended (1 completed), 1 at work, 0 waiting." in out.getvalue().replace("\n", "")


class Tty(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True
