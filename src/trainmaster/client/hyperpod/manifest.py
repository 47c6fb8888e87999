"""Turns a HyperPodPyTorchJob manifest into a CreateTrainingJob request, and names all of it that is not honoured.

Fields and their meaning are those of the training operator's custom resource, `sagemaker.amazonaws.com/v1`. It must
not ask anybody, nor check what the queue checks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainmaster.client.api.errors import Refused
from trainmaster.client.hyperpod.resources import resources_of
from trainmaster.client.hyperpod.unsupported import OTHERWISE, REASONS
from trainmaster.client.hyperpod.yaml_reader import Path, Reader, wrong
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
_TIMES = {
    "scalingTimeoutInSeconds": "scaling-timeout",
    "gracefulShutdownTimeoutInSeconds": "graceful-shutdown-timeout",
    "faultyScaleDownTimeoutInSeconds": "faulty-scale-down-timeout",
}
_NEEDED = {"RoleArn": (), "OutputDataConfig": ("S3OutputPath",)}
_EXAMPLE = '{"RoleArn": "arn:aws:iam::111122223333:role/training", "OutputDataConfig": {"S3OutputPath": "s3://..."}}'
_NOT_ELASTIC = "the job is not elastic: it has neither maxReplicas nor replicaDiscreteValues"
_RUNNER = "hyperpodrun"


@dataclass(frozen=True, slots=True)
class Converted:
    """What a manifest becomes.

    Attributes:
        request: a CreateTrainingJob request.
        not_honoured: path and reason of each field that has no effect, or not all that it would have there.
    """

    request: dict[str, Any]
    not_honoured: tuple[tuple[str, str], ...]


def is_manifest(value: Mapping[str, Any]) -> bool:
    """Whether that is a Kubernetes manifest, of whatever kind, and no request."""
    return "apiVersion" in value and "kind" in value


def converted(manifest: Mapping[str, Any], base: Mapping[str, Any] | None = None) -> Converted:
    """The request of a manifest.

    Args:
        manifest: a HyperPodPyTorchJob.
        base: a part of a CreateTrainingJob request, for what a manifest does not say. It goes before the manifest;
            tags and environment variables are joined by their names.

    Raises Refused for another kind, a field of the wrong type, and a job without role or output.
    """
    reader, base = Reader(manifest), base or {}
    if (reader.take(str, "apiVersion"), reader.take(str, "kind")) != (VERSION, KIND):
        told = f"{manifest.get('kind')} of {manifest.get('apiVersion')}"
        raise wrong(("kind",), f"is {told}, not {KIND} of {VERSION}", "Give such a manifest, or a request in JSON.")
    tags = _labels(reader)
    sizes, count = _sizes(reader)
    tags |= {OPTION_PREFIX + name: str(value) for name, value in sizes.items()}
    request = _job(reader) | {"ResourceConfig": {"InstanceCount": count}}
    kind = reader.take(str, *_POD, "nodeSelector", TYPE_LABEL)
    if kind is not None:
        request["ResourceConfig"]["InstanceType"] = kind
    elif "InstanceType" not in part(base, "ResourceConfig") and (asked := resources_of(reader, _CONTAINER)):
        tags[RESOURCES_TAG] = asked
    made = merged({**request, "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}, base)
    _check(made)
    _note_commands(reader, part(made, "AlgorithmSpecification"))
    return Converted(made, tuple(reader.left(REASONS, OTHERWISE)))


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Both together: objects member by member, tags by their keys; otherwise what is above."""
    result = dict(below)
    for name, value in above.items():
        there = result.get(name)
        if name == "Tags" and isinstance(there, list) and isinstance(value, list):
            keys = [tag.get("Key") for tag in value if isinstance(tag, dict)]
            result[name] = [*(tag for tag in there if tag["Key"] not in keys), *value]
        elif isinstance(there, dict) and isinstance(value, dict):
            result[name] = merged(there, value)
        else:
            result[name] = value
    return result


def _labels(reader: Reader) -> dict[str, str]:
    """The job's labels as tags; that of the local queue names the share."""
    found = {}
    labels = reader.look("metadata", "labels")
    for key in labels if isinstance(labels, Mapping) else ():
        if key in (PRIORITY_LABEL, PRIORITY_TAG):
            # A tag of the second name would be read as the job's priority.
            reader.note("classes are names, and the queue's priorities numbers: give --priority", *_label(key))
        elif (value := reader.take(str, *_label(key))) is not None:
            found[f"{OPTION_PREFIX}share" if key == QUEUE_LABEL else str(key)] = value
    return found


def _label(key: str) -> Path:
    return ("metadata", "labels", key)


def _sizes(reader: Reader) -> tuple[dict[str, Any], int]:
    """The options of its sizes, times and restarts, and how many instances it begins with."""
    specs = reader.items("spec", "replicaSpecs")
    if not specs:
        raise wrong(("spec", "replicaSpecs"), "is missing", "Give at least one, with its replicas and its template.")
    replicas = [reader.take(int, "spec", "replicaSpecs", at, "replicas") or 0 for at in range(len(specs))]
    values = _values(reader)
    most = _most(reader, replicas)
    least = reader.take(int, *_POLICY, "minReplicas") if values or most else None
    for at in range(len(specs)):
        reader.take(str, "spec", "replicaSpecs", at, "name")
        _no_effect(reader, 0, "spec", "replicaSpecs", at, "spares")
    if not values and most is None:
        for path in (_POLICY, _RESTARTS):
            reader.note(_NOT_ELASTIC, *path)
        return {}, sum(replicas) or 1
    least, most, count = _among(reader, values, least, most, sum(replicas))
    found = {
        "min-instances": least,
        "max-instances": most,
        "instance-step": reader.take(int, *_POLICY, "replicaIncrementStep"),
        "instance-values": "+".join(map(str, values)) or None,
        **{option: reader.take(int, *_POLICY, name) for name, option in _TIMES.items()},
        **_restarts(reader),
    }
    return {name: value for name, value in found.items() if value is not None}, count


def _among(
    reader: Reader, values: list[int], least: int | None, most: int | None, replicas: int
) -> tuple[int | None, int | None, int]:
    """Bounds and count; HyperPod takes such as are none of the values, and keeps to the values all the same."""
    if not values:
        least = least if least is not None else replicas or None
        return least, most, replicas or least or 1
    if least is not None and least < min(values):
        reader.note(f"the sizes are the discrete values, the least of them {min(values)}", *_POLICY, "minReplicas")
        least = None
    if most is not None and most > max(values):
        reader.note(f"the sizes are the discrete values, the largest of them {max(values)}", *_POLICY, "maxReplicas")
        most = None
    if replicas not in values and replicas:
        why = f"the sizes are the discrete values, so the job asks for {min(values)}"
        reader.note(why, "spec", "replicaSpecs", 0, "replicas")
    return least, most, replicas if replicas in values else min(values)


def _values(reader: Reader) -> list[int]:
    path = (*_POLICY, "replicaDiscreteValues")
    found = [reader.take(int, *path, at) for at in range(len(reader.items(*path)))]
    return [value for value in found if value is not None]


def _most(reader: Reader, replicas: list[int]) -> int | None:
    """The policy's bound, else that of the replica specifications together; None where none has one."""
    own = [("spec", "replicaSpecs", at, "maxReplicas") for at in range(len(replicas))]
    policy = reader.take(int, *_POLICY, "maxReplicas")
    given = any(reader.look(*path) is not None for path in own)
    if policy is not None and given:
        for path in own:
            reader.note("elasticPolicy.maxReplicas goes before it", *path)
    if policy is not None or not given:
        return policy
    bounds = [reader.take(int, *path) for path in own]
    return sum(count if bound is None else bound for count, bound in zip(replicas, bounds, strict=True))


def _restarts(reader: Reader) -> dict[str, int | None]:
    """The options of its restart budget."""
    before = reader.take(int, *_RESTARTS, "numRestartBeforeFullJobRestart")
    found = {
        "max-total-restarts": reader.take(int, *_RUN, "jobMaxRetryCount"),
        "scale-up-snooze": reader.take(int, *_RESTARTS, "scaleUpSnoozeTimeInSeconds"),
        "restarts-before-full": before,
    }
    counted = {"evalPeriodSeconds": "eval-period", "maxFullJobRestarts": "max-full-restarts"}
    for name, option in counted.items():
        if before is not None:
            found[option] = reader.take(int, *_RESTARTS, name)
        else:
            reader.note("without numRestartBeforeFullJobRestart there is nothing that it counts", *_RESTARTS, name)
    return found


def _job(reader: Reader) -> dict[str, Any]:
    """Name, image, command, environment and limit."""
    limit = reader.take(int, *_RUN, "activeDeadlineSeconds")
    _no_effect(reader, False, *_RUN, "suspend")  # noqa: FBT003 - a value, no switch
    reader.items(*_POD, "containers")
    reader.take(str, *_CONTAINER, "name")
    algorithm = {
        "TrainingImage": reader.take(str, *_CONTAINER, "image"),
        "TrainingInputMode": "File",
        "ContainerEntrypoint": _texts(reader, "command"),
        "ContainerArguments": _texts(reader, "args"),
    }
    made = {
        "TrainingJobName": reader.take(str, "metadata", "name"),
        "AlgorithmSpecification": {name: value for name, value in algorithm.items() if value},
        "Environment": _environment(reader),
        "StoppingCondition": {} if limit is None else {"MaxRuntimeInSeconds": limit},
    }
    return {name: value for name, value in made.items() if value}


def _texts(reader: Reader, name: str) -> list[str]:
    found = [reader.take(str, *_CONTAINER, name, at) for at in range(len(reader.items(*_CONTAINER, name)))]
    return [text for text in found if text is not None]


def _environment(reader: Reader) -> dict[str, str]:
    found = {}
    for at in range(len(reader.items(*_CONTAINER, "env"))):
        path = (*_CONTAINER, "env", at)
        name = reader.take(str, *path, "name")
        if name is not None and reader.look(*path, "valueFrom") is None:
            found[name] = reader.take(str, *path, "value") or ""
    per_node = reader.look("spec", "nprocPerNode")
    if per_node is not None:
        whole = isinstance(per_node, int)
        found["PET_NPROC_PER_NODE"] = str(reader.take(int if whole else str, "spec", "nprocPerNode"))
    return found


def _no_effect(reader: Reader, without: object, *path: str | int) -> None:
    """What says only that there is nothing special is honoured by doing nothing."""
    if reader.look(*path) == without:
        reader.take(type(without), *path)


def _check(request: Mapping[str, Any]) -> None:
    """Raises Refused, with all that a manifest cannot say and nobody has given."""
    lacking = []
    for name, inside in _NEEDED.items():
        value = request.get(name)
        has = all(isinstance(value, Mapping) and value.get(each) for each in inside)
        lacking += [] if value and has else [".".join((name, *inside))]
    if lacking:
        raise Refused(
            f"A training job needs {' and '.join(lacking)}, which a manifest does not have.",
            type="InvalidFile",
            field=lacking[0],
            hint=f"Give them in a file, --with base.json: {_EXAMPLE}",
        )


def _note_commands(reader: Reader, algorithm: Mapping[str, Any]) -> None:
    """What in the command means something to HyperPod or Kubernetes alone; what `base` has replaced does not matter."""
    for name, member in (("command", "ContainerEntrypoint"), ("args", "ContainerArguments")):
        kept = algorithm.get(member)
        given = reader.items(*_CONTAINER, name) if isinstance(kept, list) else ()
        for at, text in enumerate(given):
            if text not in (kept or ()):
                continue
            if _RUNNER in text:
                why = f"{_RUNNER} waits for HyperPod's operator, which is not there"
                reader.note(f"{why}: start the script with trainmaster-run instead", *_CONTAINER, name, at)
            elif "$(" in text:
                why = "SageMaker puts no variables into it, as Kubernetes does for $(NAME): let a shell do so"
                reader.note(why, *_CONTAINER, name, at)
