"""Runs of MLflow and Weights & Biases that a job of the queue belongs to, over all of its attempts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlflow
import pytest
import wandb

from doc_blocks import blocks
from fake_api import FakeApi, a_request
from trainmaster import ApiClient, run_job

pytestmark = pytest.mark.filterwarnings("ignore")
REQUEST = a_request("train", OutputDataConfig={"S3OutputPath": "s3://bucket/out"})
ATTEMPT = "import mlflow\nwith mlflow.start_run():\n    mlflow.log_metric('loss', {loss}, step={step})\n"
"""A training script that knows nothing of the queue."""


def block(word: str) -> str:
    """A block of docs/how-to/orchestrators.md."""
    (found,) = [
        each.text for each in blocks() if each.page.endswith("orchestrators.md") and f"import {word}" in each.text
    ]
    return found


@pytest.fixture
def _store(tmp_path: Path, monkeypatch: Any) -> Iterator[None]:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'mlflow.db'}")
    yield
    mlflow.set_tracking_uri("")


def run_block(word: str, client: ApiClient, world: FakeApi, attempt: Any) -> dict[str, Any]:
    """Run a block of the page with this queue; while it waits, the job runs in two attempts and ends."""

    def happens(_: float) -> None:
        (name,) = world.jobs
        variables = world.jobs[name]["jobDetails"]["Environment"]
        for number in (1, 2):
            world.start(name)
            attempt(variables, number)
            if number == 1:
                world.preempt(name)
        world.end(name)

    def run_here(queue: ApiClient, request: Any) -> Any:
        return run_job(client, request, sleep=happens)

    text = block(word).replace(
        "from trainmaster import ApiClient, job_facts, run_job", "from trainmaster import ApiClient, job_facts"
    )
    names: dict[str, Any] = {"request": REQUEST, "run_job": run_here}
    exec(compile(text, "orchestrators.md", "exec"), names)
    return names


@pytest.mark.usefixtures("_store", "environ")
def test_one_run_of_mlflow_has_the_metrics_of_all_attempts_and_the_facts(client: ApiClient, world: FakeApi) -> None:
    def attempt(variables: dict[str, str], number: int) -> None:
        program = ATTEMPT.format(loss=1 / number, step=number)
        subprocess.run([sys.executable, "-c", program], env=os.environ | variables, check=True, timeout=120)

    names = run_block("mlflow", client, world, attempt)
    run = mlflow.get_run(names["run"].info.run_id)
    history = mlflow.MlflowClient().get_metric_history(run.info.run_id, "loss")
    assert [(each.step, each.value) for each in history] == [(1, 1.0), (2, 0.5)]
    assert run.data.tags["trainmaster.job"] == "train"
    assert run.data.tags["trainmaster.attempts"] == "2"
    assert run.data.tags["sagemaker.training_job"] == "train-qstamp-2"


@pytest.mark.usefixtures("_store", "environ")
def test_each_attempt_continues_one_run_of_wandb_with_the_facts(
    client: ApiClient, world: FakeApi, tmp_path: Path
) -> None:
    seen: list[str] = []

    def attempt(variables: dict[str, str], number: int) -> None:
        assert variables["WANDB_RESUME"] == "allow"
        seen.append(variables["WANDB_RUN_ID"])

    names = run_block("wandb", client, world, attempt)
    assert len(seen) == 2
    assert {names["run_id"]} == set(seen)
    assert names["run"].id == seen[0]
    assert names["run"].config["trainmaster.attempts"] == 2
    assert [path.name.endswith(seen[0]) for path in (tmp_path / "wandb").glob("offline-run-*")] == [True]
    assert wandb.run is None, "the run is finished"
