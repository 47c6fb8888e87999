"""TorchX's scheduler `trainmaster`: an app is a training job of the queue, with an instance for each replica.

TorchX discovers the module by its place in the namespace package `torchx_plugins.schedulers`.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

import yaml
from torchx.plugins import register
from torchx.schedulers.api import DescribeAppResponse, ListAppResponse, Scheduler, StructuredOpts
from torchx.specs import AppDef, AppDryRunInfo, AppState, CfgVal, ReplicaStatus, Role, RoleStatus, macros, runopts

from trainmaster import ApiClient
from trainmaster.client.api.errors import Conflict, NotFound
from trainmaster.client.views.wording import attempt_count, sentence_of

_STATES: Final[Mapping[str, AppState]] = {
    "pending": AppState.PENDING,
    "preempted": AppState.PENDING,
    "held": AppState.PENDING,
    "starting": AppState.PENDING,
    "running": AppState.RUNNING,
    "preempting": AppState.RUNNING,
    "resizing": AppState.RUNNING,
    "completed": AppState.SUCCEEDED,
    "failed": AppState.FAILED,
    "stopped": AppState.CANCELLED,
    "cancelled": AppState.CANCELLED,
}
_FIRST_HOST: Final = "algo-1"
"""SageMaker's name of the first instance."""
_REPLICA: Final = "TORCHX_REPLICA_ID"
_CONFIG: Final = "/opt/ml/input/config/resourceconfig.json"
_MAX_NAME: Final = 52
"""Length of a name that leaves room for the number of an attempt."""
_PART: Final = 500
"""Characters of the command in each variable; SageMaker allows 512 in a variable, and 256 in each word of a command."""
_MAX_PARTS: Final = 6


@dataclass
class TrainmasterOpts(StructuredOpts):
    """Options of the scheduler."""

    role: str
    """ARN of the role of the training job."""

    output_path: str
    """S3 URI for the output of the training job."""

    instance_type: str | None = None
    """Type of its instances; by default the queue chooses one with the resources of the app's role."""

    checkpoint_path: str | None = None
    """S3 URI for checkpoints, from which a preempted job resumes."""

    volume_gb: int = 30
    """Size of each instance's volume."""

    max_runtime_seconds: int = 86400
    """Time limit of the training job."""

    priority: int = 0
    """Priority in the queue; higher values start first."""

    share: str | None = None
    """Share whose quota the job uses."""


class TrainmasterScheduler(Scheduler[TrainmasterOpts]):
    """Submits apps to the queue, and reports and cancels them."""

    def __init__(self, session_name: str, api: ApiClient | None = None) -> None:
        super().__init__("trainmaster", session_name)
        self._api = api or ApiClient()

    def close(self) -> None:
        """Close the connections to the queue."""
        self._api.close()

    def schedule(self, dryrun_info: AppDryRunInfo) -> str:
        """Submit the request and return the name of its job."""
        return self._api.submit(dryrun_info.request)["jobName"]

    def _submit_dryrun(self, app: AppDef, cfg: TrainmasterOpts) -> AppDryRunInfo[Any, TrainmasterOpts]:
        if len(app.roles) != 1:
            raise ValueError(f"A training job has one role; {app.name} has {len(app.roles)}.")
        name = _job_name(app.name)
        return AppDryRunInfo(_request(name, app, app.roles[0], cfg), yaml.safe_dump)

    def _run_opts(self) -> runopts:
        return TrainmasterOpts.as_runopts()

    def describe(self, app_id: str) -> DescribeAppResponse | None:
        """Return the state of an app; None if the queue does not have it."""
        try:
            job = self._api.job(app_id)
        except NotFound:
            return None
        request, state = job["jobDetails"], _STATES[job["jobState"]]
        algorithm = request["AlgorithmSpecification"]
        tags = {tag["Key"]: tag["Value"] for tag in request.get("Tags", [])}
        role, count = tags.get("torchx:role", "app"), int(request.get("ResourceConfig", {}).get("InstanceCount", 1))
        count = int(tags.get("trainmaster:instances", count))
        statuses = [ReplicaStatus(id=index, role=role, state=state, hostname="") for index in range(count)]
        return DescribeAppResponse(
            app_id=app_id,
            state=state,
            num_restarts=max(attempt_count(job) - 1, 0),
            msg=sentence_of(job),
            roles=[Role(name=role, image=algorithm.get("TrainingImage", ""), num_replicas=count)],
            roles_statuses=[RoleStatus(role=role, replicas=statuses)],
        )

    def list(self, cfg: Mapping[str, CfgVal] | None = None) -> list[ListAppResponse]:  # noqa: ARG002 -- TorchX's own
        """Return the caller's own training jobs."""
        jobs = self._api.all_jobs(mine=True, kind="training")
        return [ListAppResponse(app_id=job["jobName"], state=_STATES[job["jobState"]]) for job in jobs]

    def _cancel_existing(self, app_id: str) -> None:
        try:
            self._api.cancel(app_id)
        except Conflict:  # it has ended, and to cancel twice is no error
            return


@register.scheduler(name="trainmaster")
def trainmaster(session_name: str, **kwargs: Any) -> Scheduler:
    """Return the scheduler. TorchX passes further parameters of its runner, which have no meaning here."""
    return TrainmasterScheduler(session_name, kwargs.get("api"))


def _job_name(app: str) -> str:
    """Return a new name that begins with the app's."""
    stem = "".join(character if character.isalnum() and character.isascii() else "-" for character in app)
    return f"{stem[: _MAX_NAME - 9].strip('-') or 'app'}-{uuid4().hex[:8]}"


def _request(name: str, app: AppDef, role: Role, cfg: TrainmasterOpts) -> dict[str, Any]:
    """Return the CreateTrainingJob request of an app."""
    values = macros.Values(img_root="", app_id=name, replica_id=f"${_REPLICA}", rank0_env="TORCHX_RANK0_HOST")
    role = values.apply(role)
    entry, variables = _command([role.entrypoint, *role.args])
    resources: dict[str, Any] = {"VolumeSizeInGB": cfg.volume_gb}
    if cfg.instance_type is not None:
        resources |= {"InstanceType": cfg.instance_type, "InstanceCount": role.num_replicas}
    request = {
        "TrainingJobName": name,
        "RoleArn": cfg.role,
        "AlgorithmSpecification": {
            "TrainingImage": role.image,
            "TrainingInputMode": "File",
            "ContainerEntrypoint": entry,
        },
        "Environment": {**role.env, **variables, "TORCHX_RANK0_HOST": _FIRST_HOST},
        "OutputDataConfig": {"S3OutputPath": cfg.output_path},
        "ResourceConfig": resources,
        "StoppingCondition": {"MaxRuntimeInSeconds": cfg.max_runtime_seconds},
        "Tags": [{"Key": key, "Value": value} for key, value in _tags(app, role, cfg).items()],
    }
    return request | ({"CheckpointConfig": {"S3Uri": cfg.checkpoint_path}} if cfg.checkpoint_path else {})


def _tags(app: AppDef, role: Role, cfg: TrainmasterOpts) -> dict[str, str]:
    """Return the tags of a job: its place in the queue, and the resources or sizes of the app's role."""
    tags = {"priority": str(cfg.priority), "torchx:app": app.name, "torchx:role": role.name}
    if cfg.share is not None:
        tags["trainmaster:share"] = cfg.share
    if cfg.instance_type is None:
        wanted = {"accelerators": role.resource.gpu, "vcpus": role.resource.cpu}
        wanted["memory_gib"] = -(-role.resource.memMB // 1024)
        tags["trainmaster:resources"] = "+".join(f"{key}={value}" for key, value in wanted.items() if value > 0)
        tags["trainmaster:instances"] = str(role.num_replicas)
    if role.min_replicas is not None:
        tags["trainmaster:min-instances"] = str(role.min_replicas)
        tags["trainmaster:max-instances"] = str(role.num_replicas)
    if role.max_retries > 0:
        tags["trainmaster:retry-algorithm"] = str(role.max_retries)
    return tags


def _command(words: list[str]) -> tuple[list[str], dict[str, str]]:
    """Return the entry point that runs a command, and the variables that hold it. Raises ValueError if it is too long.

    The shell sets the number of the replica first, since only the container knows it.
    """
    text = " ".join(_quoted(word) for word in words)
    parts = [text[start : start + _PART] for start in range(0, len(text), _PART)]
    if len(parts) > _MAX_PARTS:
        raise ValueError(f"The command has {len(text)} characters; at most {_PART * _MAX_PARTS} fit into a request.")
    variables = {f"TORCHX_CMD{index}": part for index, part in enumerate(parts)}
    number = f"c=$(tr -d ' \\n\"' <{_CONFIG});c=${{c#*current_host:algo-}};export {_REPLICA}=$((${{c%%[!0-9]*}}-1))"
    run = 'eval "exec ' + "".join(f"${{{name}}}" for name in variables) + '"'
    return ["/bin/sh", "-c", f"{number};{run}"], variables


def _quoted(word: str) -> str:
    """Return a word for the shell, in which the number of the replica alone is a variable."""
    parts = [shlex.quote(part) if part else "" for part in word.split(f"${_REPLICA}")]
    return f'"${_REPLICA}"'.join(parts) or "''"
