"""The Dagster example: a training job that completes, fails, is terminated, and is found again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster_job import training

from conftest import EXAMPLES
from fake_api import FakeApi, a_request

REQUEST = a_request("train", OutputDataConfig={"S3OutputPath": "s3://bucket/out"})
CONFIG = {"ops": {"train": {"config": {"request": REQUEST, "poll_seconds": 0.05}}}}
pytestmark = pytest.mark.filterwarnings("ignore")


def execute(world: FakeApi, happens: Callable[[str], object]) -> Any:
    """Execute the job in this process; once it has submitted its job, something happens to that."""

    def later() -> None:
        world.await_calls(2)
        happens(next(iter(world.jobs)))

    thread = threading.Thread(target=later)
    thread.start()
    with dg.DagsterInstance.ephemeral() as instance:
        result = training.execute_in_process(run_config=CONFIG, instance=instance, raise_on_error=False)
    thread.join()
    return result


def test_a_completed_job_is_a_successful_op_with_its_facts(world: FakeApi, environ: Any) -> None:
    result = execute(world, lambda name: (world.start(name), world.end(name)))
    assert result.success
    (name,) = world.jobs
    assert name == f"train-{result.run_id[:8]}-0"
    assert result.output_for_node("train") == f"s3://bucket/out/{name}/output/model.tar.gz"
    assert {"Key": "dagster:run", "Value": result.run_id} in world.jobs[name]["jobDetails"]["Tags"]
    (output,) = [event for event in result.all_events if event.event_type_value == "STEP_OUTPUT"]
    metadata = {key: value.value for key, value in output.event_specific_data.metadata.items()}
    assert metadata["trainmaster.job"] == name
    assert metadata["trainmaster.attempts"] == 1


def test_a_failed_job_fails_the_op_with_its_reason(world: FakeApi, environ: Any) -> None:
    result = execute(world, lambda name: world.end(name, "failed", "AlgorithmError: no data"))
    assert not result.success
    (failure,) = [event for event in result.all_events if event.event_type_value == "STEP_FAILURE"]
    data = failure.event_specific_data.user_failure_data
    assert "failed: AlgorithmError: no data" in data.description
    assert data.metadata["trainmaster.state"].value == "failed"


def test_a_terminated_run_cancels_the_job(world: FakeApi, environ: dict[str, str], tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(CONFIG))
    (tmp_path / "dagster.yaml").write_text("")
    program = [sys.executable, "-m", "dagster", "job", "execute", "-f", str(EXAMPLES / "dagster_job.py")]
    command = [*program, "-j", "training", "-c", str(config)]
    with subprocess.Popen(
        command, env=environ | {"DAGSTER_HOME": str(tmp_path)}, stderr=subprocess.PIPE, text=True
    ) as process:
        world.await_calls(2, seconds=90)
        process.send_signal(signal.SIGINT)
        _, log = process.communicate(timeout=60)
    assert process.returncode != 0, log
    assert [job["jobState"] for job in world.jobs.values()] == ["cancelled"], log
