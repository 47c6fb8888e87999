"""A Dagster job whose op runs a training job in the queue.

`dagster dev -f examples/dagster_job.py` shows it; its configuration has the CreateTrainingJob request. The op shows the
place in the queue in its log, fails with the job, and cancels the job if the run is terminated.
"""

from typing import Any

import dagster as dg

from trainmaster import ApiClient, JobFailed, job_facts, run_job


class TrainingRequest(dg.Config):
    """Configuration of the op."""

    request: dict[str, Any]
    poll_seconds: float = 15.0


@dg.op
def train(context: dg.OpExecutionContext, config: TrainingRequest) -> str:
    """Run a training job in the queue, and return the location of its model."""
    name = f"{config.request['TrainingJobName']}-{context.run_id[:8]}-{context.retry_number}"
    tags = [*config.request.get("Tags", []), {"Key": "dagster:run", "Value": context.run_id}]
    request = {**config.request, "TrainingJobName": name, "Tags": tags}
    with ApiClient() as queue:
        try:
            job = run_job(queue, request, show=context.log.info, poll_seconds=config.poll_seconds)
        except JobFailed as error:
            raise dg.Failure(str(error), metadata=job_facts(error.job)) from error
    context.add_output_metadata(job_facts(job))
    return str(job_facts(job)["sagemaker.model_artifacts"])


@dg.job
def training() -> None:
    """Run one training job."""
    train()


defs = dg.Definitions(jobs=[training])
