"""Converts a HyperPodPyTorchJob manifest to a CreateTrainingJob request, and lists the fields that are not honoured.

Fields have the meaning of the training operator's custom resource, `sagemaker.amazonaws.com/v1`. The queue validates
the request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainmaster.client.api.errors import Refused
from trainmaster.client.hyperpod.resources import resources_of
from trainmaster.client.hyperpod.unsupported import DEFAULT_REASON, REASONS
from trainmaster.client.hyperpod.yaml_reader import ManifestReader, Path, invalid_field
from trainmaster.domain.requests.fields import part
from trainmaster.domain.requests.tag_names import OPTION_PREFIX, PRIORITY_TAG, RESOURCES_TAG

KIND = "HyperPodPyTorchJob"
VERSION = "sagemaker.amazonaws.com/v1"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
TYPE_LABEL = "node.kubernetes.io/instance-type"
_POLICY: Path = ("spec", "elasticPolicy")
_RUN: Path = ("spec", "runPolicy")
_RESTARTS: Path = (*_RUN, "restartPolicy")
_POD: Path = ("spec", "replicaSpecs", 0, "template", "spec")
_CONTAINER: Path = (*_POD, "containers", 0)
_TIMEOUTS = {
    "scalingTimeoutInSeconds": "scaling-timeout",
    "gracefulShutdownTimeoutInSeconds": "graceful-shutdown-timeout",
    "faultyScaleDownTimeoutInSeconds": "faulty-scale-down-timeout",
}
_REQUIRED = {"RoleArn": (), "OutputDataConfig": ("S3OutputPath",)}
_EXAMPLE = '{"RoleArn": "arn:aws:iam::111122223333:role/training", "OutputDataConfig": {"S3OutputPath": "s3://..."}}'
_NOT_ELASTIC = "the job is not elastic: it has neither maxReplicas nor replicaDiscreteValues"
_RUNNER = "hyperpodrun"


@dataclass(frozen=True, slots=True)
class ConvertedManifest:
    """The result of converting a manifest.

    Attributes:
        request: a CreateTrainingJob request.
        not_honoured: path and reason of each field that has no effect, or less effect than on HyperPod.
    """

    request: dict[str, Any]
    not_honoured: tuple[tuple[str, str], ...]


def is_manifest(value: Mapping[str, Any]) -> bool:
    """Return whether the value is a Kubernetes manifest of any kind, rather than a request."""
    return "apiVersion" in value and "kind" in value


def convert_manifest(manifest: Mapping[str, Any], base: Mapping[str, Any] | None = None) -> ConvertedManifest:
    """Convert a manifest to a request.

    Args:
        manifest: a HyperPodPyTorchJob.
        base: a part of a CreateTrainingJob request with members that a manifest lacks. It takes precedence over the
            manifest; tags and environment variables are merged by name.

    Raises Refused for another kind, a field of the wrong type, and a job without role or output.
    """
    reader, base = ManifestReader(manifest), base or {}
    if (reader.take(str, "apiVersion"), reader.take(str, "kind")) != (VERSION, KIND):
        actual = f"{manifest.get('kind')} of {manifest.get('apiVersion')}"
        raise invalid_field(
            ("kind",), f"is {actual}, not {KIND} of {VERSION}", f"Provide a {KIND}, or a request in JSON."
        )
    tags = _labels(reader)
    sizes, count = _elastic_options(reader)
    tags |= {OPTION_PREFIX + name: str(value) for name, value in sizes.items()}
    request = _job(reader) | {"ResourceConfig": {"InstanceCount": count}}
    instance_type = reader.take(str, *_POD, "nodeSelector", TYPE_LABEL)
    if instance_type is not None:
        request["ResourceConfig"]["InstanceType"] = instance_type
    elif "InstanceType" not in part(base, "ResourceConfig") and (resources := resources_of(reader, _CONTAINER)):
        tags[RESOURCES_TAG] = resources
    merged = merge_requests({**request, "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}, base)
    _require_members(merged)
    _note_unsupported_commands(reader, part(merged, "AlgorithmSpecification"))
    return ConvertedManifest(merged, tuple(reader.unused(REASONS, DEFAULT_REASON)))


def merge_requests(base: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two requests: objects by member, tags by key; otherwise `overrides` wins."""
    result = dict(base)
    for name, value in overrides.items():
        base_value = result.get(name)
        if name == "Tags" and isinstance(base_value, list) and isinstance(value, list):
            keys = [tag.get("Key") for tag in value if isinstance(tag, dict)]
            result[name] = [*(tag for tag in base_value if tag["Key"] not in keys), *value]
        elif isinstance(base_value, dict) and isinstance(value, dict):
            result[name] = merge_requests(base_value, value)
        else:
            result[name] = value
    return result


def _labels(reader: ManifestReader) -> dict[str, str]:
    """Return the job's labels as tags; the label of the local queue sets the share."""
    tags = {}
    labels = reader.peek("metadata", "labels")
    for key in labels if isinstance(labels, Mapping) else ():
        if key in (PRIORITY_LABEL, PRIORITY_TAG):
            # The queue would read a tag with the second key as the job's priority.
            reader.note(
                "priority classes are names, but the queue's priorities are numbers: use --priority", *_label(key)
            )
        elif (value := reader.take(str, *_label(key))) is not None:
            tags[f"{OPTION_PREFIX}share" if key == QUEUE_LABEL else str(key)] = value
    return tags


def _label(key: str) -> Path:
    return ("metadata", "labels", key)


def _elastic_options(reader: ManifestReader) -> tuple[dict[str, Any], int]:
    """Return the options for sizes, timeouts and restarts, and the initial instance count."""
    specs = reader.items("spec", "replicaSpecs")
    if not specs:
        raise invalid_field(
            ("spec", "replicaSpecs"), "is missing", "Specify at least one replica spec with replicas and a template."
        )
    replicas = [reader.take(int, "spec", "replicaSpecs", index, "replicas") or 0 for index in range(len(specs))]
    values = _discrete_values(reader)
    maximum = _max_replicas(reader, replicas)
    minimum = reader.take(int, *_POLICY, "minReplicas") if values or maximum else None
    for index in range(len(specs)):
        reader.take(str, "spec", "replicaSpecs", index, "name")
        _accept_default(reader, 0, "spec", "replicaSpecs", index, "spares")
    if not values and maximum is None:
        for path in (_POLICY, _RESTARTS):
            reader.note(_NOT_ELASTIC, *path)
        return {}, sum(replicas) or 1
    minimum, maximum, count = _fit_discrete_values(reader, values, minimum, maximum, sum(replicas))
    options = {
        "min-instances": minimum,
        "max-instances": maximum,
        "instance-step": reader.take(int, *_POLICY, "replicaIncrementStep"),
        "instance-values": "+".join(map(str, values)) or None,
        **{option: reader.take(int, *_POLICY, name) for name, option in _TIMEOUTS.items()},
        **_restarts(reader),
    }
    return {name: value for name, value in options.items() if value is not None}, count


def _fit_discrete_values(
    reader: ManifestReader, values: list[int], minimum: int | None, maximum: int | None, replicas: int
) -> tuple[int | None, int | None, int]:
    """Return bounds and count; HyperPod accepts bounds outside the discrete values and uses only the values."""
    if not values:
        minimum = minimum if minimum is not None else replicas or None
        return minimum, maximum, replicas or minimum or 1
    if minimum is not None and minimum < min(values):
        reader.note(f"replicaDiscreteValues sets the sizes; the smallest is {min(values)}", *_POLICY, "minReplicas")
        minimum = None
    if maximum is not None and maximum > max(values):
        reader.note(f"replicaDiscreteValues sets the sizes; the largest is {max(values)}", *_POLICY, "maxReplicas")
        maximum = None
    if replicas not in values and replicas:
        reason = f"replicaDiscreteValues sets the sizes, so the job requests {min(values)}"
        reader.note(reason, "spec", "replicaSpecs", 0, "replicas")
    return minimum, maximum, replicas if replicas in values else min(values)


def _discrete_values(reader: ManifestReader) -> list[int]:
    path = (*_POLICY, "replicaDiscreteValues")
    values = [reader.take(int, *path, index) for index in range(len(reader.items(*path)))]
    return [value for value in values if value is not None]


def _max_replicas(reader: ManifestReader, replicas: list[int]) -> int | None:
    """Return the policy's maximum, else the sum over the replica specs; None if there is none."""
    paths = [("spec", "replicaSpecs", index, "maxReplicas") for index in range(len(replicas))]
    policy = reader.take(int, *_POLICY, "maxReplicas")
    has_bounds = any(reader.peek(*path) is not None for path in paths)
    if policy is not None and has_bounds:
        for path in paths:
            reader.note("elasticPolicy.maxReplicas takes precedence", *path)
    if policy is not None or not has_bounds:
        return policy
    bounds = [reader.take(int, *path) for path in paths]
    return sum(count if bound is None else bound for count, bound in zip(replicas, bounds, strict=True))


def _restarts(reader: ManifestReader) -> dict[str, int | None]:
    """Return the options of the restart budget."""
    threshold = reader.take(int, *_RESTARTS, "numRestartBeforeFullJobRestart")
    options = {
        "max-total-restarts": reader.take(int, *_RUN, "jobMaxRetryCount"),
        "scale-up-snooze": reader.take(int, *_RESTARTS, "scaleUpSnoozeTimeInSeconds"),
        "restarts-before-full": threshold,
    }
    counters = {"evalPeriodSeconds": "eval-period", "maxFullJobRestarts": "max-full-restarts"}
    for name, option in counters.items():
        if threshold is not None:
            options[option] = reader.take(int, *_RESTARTS, name)
        else:
            reader.note("it has no effect without numRestartBeforeFullJobRestart", *_RESTARTS, name)
    return options


def _job(reader: ManifestReader) -> dict[str, Any]:
    """Return name, image, command, environment and time limit."""
    limit = reader.take(int, *_RUN, "activeDeadlineSeconds")
    _accept_default(reader, False, *_RUN, "suspend")  # noqa: FBT003 - a value, no switch
    reader.items(*_POD, "containers")
    reader.take(str, *_CONTAINER, "name")
    algorithm = {
        "TrainingImage": reader.take(str, *_CONTAINER, "image"),
        "TrainingInputMode": "File",
        "ContainerEntrypoint": _strings(reader, "command"),
        "ContainerArguments": _strings(reader, "args"),
    }
    job = {
        "TrainingJobName": reader.take(str, "metadata", "name"),
        "AlgorithmSpecification": {name: value for name, value in algorithm.items() if value},
        "Environment": _environment(reader),
        "StoppingCondition": {} if limit is None else {"MaxRuntimeInSeconds": limit},
    }
    return {name: value for name, value in job.items() if value}


def _strings(reader: ManifestReader, name: str) -> list[str]:
    strings = [reader.take(str, *_CONTAINER, name, index) for index in range(len(reader.items(*_CONTAINER, name)))]
    return [text for text in strings if text is not None]


def _environment(reader: ManifestReader) -> dict[str, str]:
    environment = {}
    for index in range(len(reader.items(*_CONTAINER, "env"))):
        path = (*_CONTAINER, "env", index)
        name = reader.take(str, *path, "name")
        if name is not None and reader.peek(*path, "valueFrom") is None:
            environment[name] = reader.take(str, *path, "value") or ""
    processes = reader.peek("spec", "nprocPerNode")
    if processes is not None:
        whole = isinstance(processes, int)
        environment["PET_NPROC_PER_NODE"] = str(reader.take(int if whole else str, "spec", "nprocPerNode"))
    return environment


def _accept_default(reader: ManifestReader, default: object, *path: str | int) -> None:
    """Mark a field as used if its value is the default, which needs no support."""
    if reader.peek(*path) == default:
        reader.take(type(default), *path)


def _require_members(request: Mapping[str, Any]) -> None:
    """Raise Refused, naming all required members that neither the manifest nor `base` has."""
    missing = []
    for name, members in _REQUIRED.items():
        value = request.get(name)
        has_members = all(isinstance(value, Mapping) and value.get(member) for member in members)
        missing += [] if value and has_members else [".".join((name, *members))]
    if missing:
        raise Refused(
            f"A training job requires {' and '.join(missing)}, which a manifest does not have.",
            type="InvalidFile",
            field=missing[0],
            hint=f"Provide them in a file with --with base.json: {_EXAMPLE}",
        )


def _note_unsupported_commands(reader: ManifestReader, algorithm: Mapping[str, Any]) -> None:
    """Note parts of the command that work only on HyperPod or Kubernetes, unless `base` replaces them."""
    for name, member in (("command", "ContainerEntrypoint"), ("args", "ContainerArguments")):
        command = algorithm.get(member)
        entries = reader.items(*_CONTAINER, name) if isinstance(command, list) else ()
        for index, text in enumerate(entries):
            if text not in (command or ()):
                continue
            if _RUNNER in text:
                reason = f"{_RUNNER} needs HyperPod's operator, which is not available"
                reader.note(f"{reason}: start the script with trainmaster-run instead", *_CONTAINER, name, index)
            elif "$(" in text:
                reason = "SageMaker does not expand $(NAME) as Kubernetes does: expand it in a shell"
                reader.note(reason, *_CONTAINER, name, index)
