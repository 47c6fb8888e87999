"""The Prefect example: a training job that completes, fails, and is cancelled with its flow run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prefect.testing.utilities import prefect_test_harness
from prefect_flow import training

from conftest import EXAMPLES
from fake_api import FakeApi, a_request

REQUEST = a_request("train", OutputDataConfig={"S3OutputPath": "s3://bucket/out"})
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def _prefect() -> Iterator[None]:
    with prefect_test_harness(server_startup_timeout=120):
        yield


def flow(world: FakeApi, happens: Callable[[str], object]) -> Any:
    """Run the flow in this process; once it has submitted its job, something happens to that."""

    def later() -> None:
        world.await_calls(2)
        happens(next(iter(world.jobs)))

    thread = threading.Thread(target=later)
    thread.start()
    state = training(REQUEST, 0.05, return_state=True)
    thread.join()
    return state


@pytest.mark.usefixtures("_prefect")
def test_a_completed_job_is_a_completed_flow(world: FakeApi, environ: Any) -> None:
    state = flow(world, lambda name: (world.start(name), world.end(name)))
    assert state.is_completed()
    (name,) = world.jobs
    assert state.result() == f"s3://bucket/out/{name}/output/model.tar.gz"
    tags = {tag["Key"]: tag["Value"] for tag in world.jobs[name]["jobDetails"]["Tags"]}
    assert tags["prefect:flow-run"] == str(state.state_details.flow_run_id)
    assert name == f"train-{tags['prefect:flow-run'][:8]}-1"


@pytest.mark.usefixtures("_prefect")
def test_a_failed_job_fails_the_flow_with_its_reason(world: FakeApi, environ: Any) -> None:
    state = flow(world, lambda name: world.end(name, "failed", "AlgorithmError: no data"))
    assert state.is_failed()
    assert "failed: AlgorithmError: no data" in state.message


@pytest.mark.usefixtures("_prefect")
def test_a_cancelled_flow_run_cancels_the_job(world: FakeApi, environ: dict[str, str], tmp_path: Path) -> None:
    from prefect.settings import PREFECT_API_URL

    path = tmp_path / "job.json"
    path.write_text(json.dumps(REQUEST))
    command = [sys.executable, str(EXAMPLES / "prefect_flow.py"), str(path), "0.05"]
    variables = environ | {
        "PREFECT_API_URL": PREFECT_API_URL.value(),
        "PREFECT_HOME": os.environ.get("PREFECT_HOME", ""),
    }
    with subprocess.Popen(command, env=variables, stderr=subprocess.PIPE, text=True) as process:
        world.await_calls(2, seconds=90)
        process.send_signal(signal.SIGTERM)  # as Prefect's runner does
        _, log = process.communicate(timeout=60)
    assert process.returncode != 0, log
    assert [job["jobState"] for job in world.jobs.values()] == ["cancelled"], log
