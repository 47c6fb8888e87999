"""Programs that know nothing of the queue use it behind `trainmaster exec`: the AWS CLI, accelerate, JavaScript."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from client_stage import BUCKET, Stage
from client_world import ACCOUNT, REGION, ROLE, World, request_for

from doc_blocks import blocks

HERE = Path(__file__).parent
NODE = HERE.parents[1] / ".venv-exec" / "node"
Run = Callable[..., "subprocess.Popen[str]"]


def finished(process: subprocess.Popen[str], seconds: float = 120) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=seconds)
    return process.returncode, out, err


def await_job(world: World, process: subprocess.Popen[str]) -> str:
    """Return the name of the job, once there is one."""
    with world.changed:
        while not world.changed.wait_for(lambda: world.jobs, 0.5):
            assert process.poll() is None, finished(process)
    return next(iter(world.jobs))


@pytest.fixture
def job_file(tmp_path: Path) -> Path:
    """The file job.json of the documentation."""
    path = tmp_path / "job.json"
    path.write_text(json.dumps(request_for("job1")))
    return path


@pytest.mark.usefixtures("job_file")
def test_the_commands_of_the_page_are_those_of_the_tests() -> None:
    (page,) = [block for block in blocks() if block.page == "docs/how-to/other-programs.md" and block.language == "sh"]
    assert [line.split(" -- ")[1].split()[0] for line in page.text.splitlines()] == ["aws", "accelerate", "node"]


# -- the AWS CLI


@pytest.fixture
def aws(start: Run) -> Callable[..., Any]:
    """Runs the AWS CLI; returns its answer."""

    def run(line: str, *arguments: str, code: int = 0) -> Any:
        status, out, err = finished(start("aws", *line.split(), *arguments))
        assert status == code, err
        return json.loads(out) if out else err

    return run


@pytest.mark.usefixtures("job_file")
def test_the_aws_cli_creates_follows_and_stops_jobs(aws: Callable[..., Any], stage: Stage) -> None:
    arn = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/job1"
    assert aws("sagemaker create-training-job --cli-input-json file://job.json") == {"TrainingJobArn": arn}
    assert stage.world.trainings == {}
    described = aws("sagemaker describe-training-job --training-job-name job1")
    assert (described["TrainingJobStatus"], described["SecondaryStatus"]) == ("InProgress", "Pending")
    assert "Waiting in the queue" in described["SecondaryStatusTransitions"][0]["StatusMessage"]
    (listed,) = aws("sagemaker list-training-jobs --status-equals InProgress")["TrainingJobSummaries"]
    assert listed["TrainingJobName"] == "job1"
    tags = [{"Key": "priority", "Value": "11"}]
    assert aws(f"sagemaker add-tags --resource-arn {arn} --tags Key=priority,Value=11")["Tags"] == tags
    assert stage.world.jobs["job1"]["priority"] == 11
    stage.world.start("job1")
    stage.world.preempt("job1")
    stage.world.settle("job1")
    stage.world.start("job1")
    assert aws("sagemaker describe-training-job --training-job-name job1")["TrainingJobName"] == "job1"
    aws("sagemaker stop-training-job --training-job-name job1")
    assert stage.world.count("DELETE", "/jobs/job1") == 1
    assert "not found" in aws("sagemaker describe-training-job --training-job-name other", code=254 if _is_2() else 255)


def _is_2() -> bool:
    told = subprocess.run(["aws", "--version"], capture_output=True, text=True, check=True).stdout
    return told.startswith("aws-cli/2")


@pytest.mark.usefixtures("job_file")
def test_a_shell_script_waits_for_its_job(start: Run, stage: Stage) -> None:
    script = """set -e
aws sagemaker create-training-job --cli-input-json file://job.json > /dev/null
aws sagemaker wait training-job-completed-or-stopped --training-job-name job1
aws sagemaker describe-training-job --training-job-name job1 --query TrainingJobStatus
"""
    process = start("sh", "-c", script, options=("--option", "share=vision"))
    assert await_job(stage.world, process) == "job1"
    stage.world.start("job1")
    stage.world.end("job1")
    status, out, err = finished(process)
    assert (status, out) == (0, '"Completed"\n'), err
    tags = {tag["Key"]: tag["Value"] for tag in stage.world.jobs["job1"]["jobDetails"]["Tags"]}
    assert tags == {"priority": "7", "trainmaster:share": "vision"}
    assert err.splitlines()[0] == "trainmaster: Submitted training job job1 to the queue"


def test_the_aws_cli_submits_service_jobs(aws: Callable[..., Any], stage: Stage) -> None:
    payload = json.dumps({key: value for key, value in request_for("x").items() if key != "Tags"})
    line = (
        "batch submit-service-job --job-queue sagemaker-queue --service-job-type SAGEMAKER_TRAINING --job-name my-job"
    )
    submitted = aws(line, "--service-request-payload", payload, "--scheduling-priority", "3")
    assert submitted["jobName"] == "my-job"
    assert [job["priority"] for job in stage.world.jobs.values()] == [3]
    described = aws(f"batch describe-service-job --job-id {submitted['jobArn']}")
    assert (described["status"], described["jobQueue"].rpartition("/")[2]) == ("RUNNABLE", "sagemaker-queue")
    aws(f"batch terminate-service-job --job-id {submitted['jobId']}", "--reason", "wrong data")
    (ended,) = aws("batch list-service-jobs --job-queue sagemaker-queue --job-status FAILED")["jobSummaryList"]
    assert ended["jobId"] == submitted["jobId"]


# -- accelerate

CONFIG = f"""compute_environment: AMAZON_SAGEMAKER
base_job_name: accelerate-test
distributed_type: DATA_PARALLEL
ec2_instance_type: ml.p4d.24xlarge
iam_role_name: {ROLE}
image_uri: {ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com/image:1
mixed_precision: 'no'
num_machines: 1
profile: null
py_version: py310
pytorch_version: 2.0.0
region: {REGION}
sagemaker_inputs_file: null
sagemaker_metrics_file: null
transformers_version: 4.28.1
use_cpu: false
"""


def test_accelerate_launches_on_the_queue_and_waits_through_a_preemption(
    start: Run, stage: Stage, tmp_path: Path
) -> None:
    (tmp_path / "accelerate.yaml").write_text(CONFIG)
    settings = tmp_path / "sagemaker.yaml"  # of the SDK; without a bucket, it asks STS at a fixed address
    modules = {"Session": {"DefaultS3Bucket": BUCKET}, "TelemetryOptOut": True}
    settings.write_text(json.dumps({"SchemaVersion": "1.0", "SageMaker": {"PythonSDK": {"Modules": modules}}}))
    (tmp_path / "train.py").write_text("print('hello')\n")
    keys = ["--aws_access_key_id", "AKIDEXAMPLE", "--aws_secret_access_key", "wJalrXUtnFEMI"]
    process = start("accelerate", "launch", "--config_file", "accelerate.yaml", *keys, "train.py", "--lr", "0.1")
    name = await_job(stage.world, process)
    assert stage.world.trainings == {}
    stage.world.start(name)
    stage.asked(name)  # the SDK asks every ten seconds
    stage.world.preempt(name)
    stage.world.settle(name)
    stage.asked(name)
    stage.world.start(name)
    stage.world.end(name)

    status, out, err = finished(process)

    assert status == 0, err
    assert "You can find your model data at:" in out
    request = stage.world.jobs[name]["jobDetails"]
    assert (request["HyperParameters"]["lr"], request["Environment"]["ACCELERATE_USE_SAGEMAKER"]) == ("0.1", "true")
    assert len(stage.world.trainings) == 2
    assert f"trainmaster: Submitted training job {name} to the queue" in err


# -- JavaScript


def test_a_program_in_javascript_uses_the_queue(start: Run, stage: Stage) -> None:
    request = json.dumps(request_for("job1"))
    process = start("node", str(HERE / "program.mjs"), str(NODE), request, options=("--option", "share=vision"))
    assert process.stderr is not None
    told = [""]
    while told[-1] != "waiting\n":
        told.append(process.stderr.readline())
        assert told[-1], told
    stage.world.start("job1")
    stage.world.end("job1")
    status, out, err = finished(process)
    assert status == 0, err
    answers = json.loads(out)
    message = answers["taken"].pop()
    assert message.startswith("NameTaken: job1 was submitted with another request")
    assert answers == {
        "created": f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/job1",
        "status": ["InProgress", "Pending", True],
        "listed": ["job1"],
        "taken": ["ResourceInUse"],
        "missing": "ValidationException",
        "waited": "SUCCESS",
        "different": True,
        "batch": ["RUNNABLE", "my_job", "number"],
        "tags": "7",
        "statuses": ["FAILED", "RUNNABLE"],
    }
    assert {job["share"] for job in stage.world.jobs.values()} == {"vision"}
