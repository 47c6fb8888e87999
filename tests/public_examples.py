"""Runs rewritten public examples through the queue of a deployed stack, and compares their requests with SageMaker's.

The SDKs' suites import it; `docs/reference/examples.md` lists the examples.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping
from copy import deepcopy
from http import HTTPStatus
from pathlib import Path
from typing import Any

import boto3
from botocore.awsrequest import AWSResponse

from trainmaster.client.views.states import ENDED
from trainmaster.client.views.wording import sentence_of

TRAIN = """\
import json, os, pathlib
found = sorted(os.listdir(os.environ["SM_INPUT_DIR"] + "/data")) if "SM_INPUT_DIR" in os.environ else []
print("trained with", json.dumps(json.loads(os.environ.get("SM_HPS", "{}")), sort_keys=True), found)
pathlib.Path(os.environ["SM_MODEL_DIR"], "model.txt").write_text("trained")
"""
"""In the place of an example's training script."""
BUCKET = "examples"
SOON = 60.0
"""Seconds."""
LOG_GROUP = "/aws/sagemaker/TrainingJobs"
RAN = "trained with"
"""Printed by the script."""
SIMULATED = "[simulated]"
"""In the log of a job whose container was not run."""
_REPLACED = ("TrainingJobName", "Tags")


class Recorder:
    """A boto3 session that keeps the CreateTrainingJob requests of its clients, as the SDK made them.

    `answers` has answers to operations that the local stack does not have, by name.
    """

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.session = boto3.session.Session()
        self.answers: dict[str, dict[str, Any]] = {}
        self.session.events.register("provide-client-params.sagemaker.CreateTrainingJob", self._record)
        self.session.events.register("before-call.sagemaker", self._answer)

    def _record(self, params: dict[str, Any], **_: object) -> None:
        self.requests.append(deepcopy(params))  # the SDKs change parts of it for the next job

    def _answer(self, model: Any, **_: object) -> tuple[AWSResponse, dict[str, Any]] | None:
        """Answer an operation that the local stack does not have."""
        if model.name not in self.answers:
            return None
        response = AWSResponse("", HTTPStatus.OK, {}, None)
        return response, {**self.answers[model.name], "ResponseMetadata": {"HTTPStatusCode": HTTPStatus.OK}}

    @property
    def request(self) -> dict[str, Any]:
        """The only request, or the last of equal ones."""
        return self.requests[-1]


def data(boto_session: Any, *channels: str) -> dict[str, str]:
    """Store an object for each channel; gives the channels' addresses."""
    s3 = boto_session.client("s3")
    s3.create_bucket(Bucket=BUCKET)
    for channel in channels:
        s3.put_object(Bucket=BUCKET, Key=f"data/{channel}/part-0", Body=b"1,2\n")
    return {channel: f"s3://{BUCKET}/data/{channel}" for channel in channels}


def script(folder: Path, name: str = "train.py", text: str = TRAIN) -> str:
    """Write a training script to a folder; gives its name."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return name


def repository(folder: Path, name: str, text: str = TRAIN) -> Path:
    """Make a git repository with a file, by default a training script; gives its folder."""
    path = folder / name
    script(path.parent, path.name, text)
    identity = ["-c", "user.name=example", "-c", "user.email=example@example.com"]
    for command in (["init", "-q", "-b", "main"], ["add", "."], [*identity, "commit", "-qm", "Add a file"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return folder


def cloned_from(repositories: Mapping[str, Path]) -> dict[str, str]:
    """Return variables with which git clones folders in the place of addresses."""
    variables = {"GIT_CONFIG_COUNT": str(len(repositories))}
    for number, (url, folder) in enumerate(repositories.items()):
        variables[f"GIT_CONFIG_KEY_{number}"] = f"url.file://{folder}.insteadOf"
        variables[f"GIT_CONFIG_VALUE_{number}"] = url
    return variables


def differences(asked: object, found: object, path: str = "") -> list[str]:
    """Return the members of a request that SageMaker did not get as they were."""
    if isinstance(asked, Mapping) and isinstance(found, Mapping):
        return [line for key, value in asked.items() for line in differences(value, found.get(key), f"{path}.{key}")]
    if isinstance(asked, list) and isinstance(found, list) and len(asked) == len(found):
        return [
            line for i, pair in enumerate(zip(asked, found, strict=True)) for line in differences(*pair, f"{path}[{i}]")
        ]
    return [] if asked == found else [f"{path}: {asked!r} became {found!r}"]


def has_printed(training_job: str, text: str) -> bool:
    """Return whether the log of a training job's first instance has the text."""
    logs = boto3.session.Session().client("logs")
    try:
        streams = logs.describe_log_streams(logGroupName=LOG_GROUP, logStreamNamePrefix=f"{training_job}/algo-1")
    except logs.exceptions.ResourceNotFoundException:
        return False
    return any(
        text in event["message"]
        for stream in streams["logStreams"]
        for event in logs.get_log_events(
            logGroupName=LOG_GROUP, logStreamName=stream["logStreamName"], startFromHead=True
        )["events"]
    )


def check_completed(queue: Any, request: Mapping[str, Any], status: str = "Completed") -> dict[str, Any]:
    """Require that the job ran once, with its request unchanged, to its end; gives SageMaker's own description."""
    sagemaker = boto3.session.Session().client("sagemaker")
    job = ended(queue, request["TrainingJobName"])
    outcomes = [attempt["outcome"] for attempt in job["attempts"]]
    assert (job["jobState"], outcomes) == (status.lower(), [status.lower()]), sentence_of(job)
    described: dict[str, Any] = sagemaker.describe_training_job(TrainingJobName=request["TrainingJobName"])
    changed = differences({key: value for key, value in request.items() if key not in _REPLACED}, described)
    assert changed == [], changed
    tags = sagemaker.list_tags(ResourceArn=described["TrainingJobArn"])["Tags"]
    lost = [tag for tag in request.get("Tags", []) if tag not in tags]
    assert lost == [], lost
    assert described["TrainingJobStatus"] == status, described
    return described


def ended(queue: Any, name: str) -> Any:
    """Return the job once the queue has seen its end, which it learns from an event."""
    deadline = time.monotonic() + SOON
    while (job := queue.job(name))["jobState"] not in ENDED:
        assert time.monotonic() < deadline, sentence_of(job)
        time.sleep(0.5)
    return job
