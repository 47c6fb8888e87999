"""A Prefect flow that runs a training job in the queue: `python examples/prefect_flow.py job.json`.

The task shows the place in the queue in its log, fails with the job, and cancels the job if the flow run is cancelled.
"""

import json
import sys
from pathlib import Path
from typing import Any

from prefect import flow, get_run_logger, task
from prefect.artifacts import create_table_artifact
from prefect.runtime import flow_run, task_run

from trainmaster import ApiClient, job_facts, run_job


@task
def train(request: dict[str, Any], poll_seconds: float = 15.0) -> str:
    """Run a training job in the queue, and return the location of its model. Raises JobFailed."""
    name = f"{request['TrainingJobName']}-{str(flow_run.id)[:8]}-{task_run.run_count}"
    tags = [*request.get("Tags", []), {"Key": "prefect:flow-run", "Value": str(flow_run.id)}]
    with ApiClient() as queue:
        show = get_run_logger().info
        job = run_job(queue, {**request, "TrainingJobName": name, "Tags": tags}, show=show, poll_seconds=poll_seconds)
    facts = job_facts(job)
    create_table_artifact([{"fact": fact, "value": value} for fact, value in facts.items()], key="training-job")
    return str(facts["sagemaker.model_artifacts"])


@flow
def training(request: dict[str, Any], poll_seconds: float = 15.0) -> str:
    """Run one training job."""
    return train(request, poll_seconds)


if __name__ == "__main__":
    print(training(json.loads(Path(sys.argv[1]).read_text()), *map(float, sys.argv[2:])))
