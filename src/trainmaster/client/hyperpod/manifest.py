"""Converts a Kubernetes manifest of a training job to a CreateTrainingJob request, and lists what is not honored.

Fields have the meaning of their operators: HyperPod's training operator (`sagemaker.amazonaws.com`), Kubeflow's
(`kubeflow.org/v1`), Kubernetes' Jobs and JobSets. The queue validates the request.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainmaster.client.api.errors import Refused
from trainmaster.client.hyperpod.command import Command, has_reference, oversized, read_command
from trainmaster.client.hyperpod.environment import Environment, one_host_variables, read_environment
from trainmaster.client.hyperpod.kinds import JOB, JOB_SET, Layout, check_templates, layout_of
from trainmaster.client.hyperpod.launch_script import ENTRY_POINT, LaunchScript, channel_of, prefix_of
from trainmaster.client.hyperpod.node_types import instance_type_of
from trainmaster.client.hyperpod.resources import resources_of
from trainmaster.client.hyperpod.sizes import sizes_of
from trainmaster.client.hyperpod.unsupported import KNOWN_ANNOTATIONS, reason_for
from trainmaster.client.hyperpod.volumes import Mounts, read_mounts
from trainmaster.client.hyperpod.yaml_reader import ManifestReader, Path, format_path, invalid_field
from trainmaster.domain.elastic.sizes import Hook
from trainmaster.domain.requests.fields import part, shown
from trainmaster.domain.requests.tag_names import OPTION_PREFIX, PRIORITY_TAG, RESOURCES_TAG
from trainmaster.domain.requests.tags import gives, option_in

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
TIME_LABEL = "kueue.x-k8s.io/max-exec-time-seconds"
_REQUIRED = {"RoleArn": (), "OutputDataConfig": ("S3OutputPath",)}
_EXAMPLE = '{"RoleArn": "arn:aws:iam::111122223333:role/training", "OutputDataConfig": {"S3OutputPath": "s3://..."}}'
_NO_COMMAND = (
    "the image's own entry point starts without the variables of the operator, such as NNODES and MASTER_ADDR: set "
    "`command`"
)

_NOT_THE_WORKER = (
    "with --resize-by members, only trainmaster-run finds the other instances: set it as ContainerEntrypoint in "
    "--with, and leave the script and its arguments in args"
)


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A field that has no effect, or less effect than on a cluster.

    Attributes:
        field: its path.
        why: the reason.
        changes_result: whether the job can end differently without it.
    """

    field: str
    why: str
    changes_result: bool


@dataclass(frozen=True, slots=True)
class ConvertedManifest:
    """The result of converting a manifest.

    Attributes:
        request: a CreateTrainingJob request.
        not_honored: fields without their full effect; those that can change the result come first.
        uploads: texts by S3 URI that must be uploaded before the job starts; empty if the request contains all.
    """

    request: dict[str, Any]
    not_honored: tuple[Unsupported, ...] = ()
    uploads: Mapping[str, str] = field(default_factory=dict)


def convert_manifest(
    manifest: Mapping[str, Any],
    base: Mapping[str, Any] | None = None,
    companions: Sequence[Mapping[str, Any]] = (),
) -> ConvertedManifest:
    """Convert a manifest to a request.

    Args:
        manifest: a job of a supported kind.
        base: a part of a CreateTrainingJob request with members that a manifest lacks. It takes precedence over the
            manifest; tags and environment variables are merged by name.
        companions: other documents of the same file; ConfigMaps among them are used.

    Raises Refused for another kind, a field of the wrong type, two commands, and a job without role, output or image.
    """
    reader, base = ManifestReader(manifest), base or {}
    layout = layout_of(reader)
    check_templates(reader, layout)
    tags = _labels(reader)
    sizes, count = sizes_of(reader, layout)
    tags |= {OPTION_PREFIX + name: str(value) for name, value in sizes.items()}
    request = _job(reader, layout, manifest) | {"ResourceConfig": {"InstanceCount": count}}
    instance_type = _instance_type(reader, layout)
    if instance_type is not None:
        request["ResourceConfig"]["InstanceType"] = instance_type[0]
    elif "InstanceType" not in part(base, "ResourceConfig"):
        tags |= _resources(reader, layout)
    request["Tags"] = [{"Key": key, "Value": value} for key, value in tags.items()]
    script = _add_command(
        reader, layout, request, base, companions, is_distributed=_has_several_instances(merge_requests(request, base))
    )
    merged = _merged(reader, layout, request, base, None if instance_type is None else instance_type[1])
    _require_members(merged, layout)
    uploads = _add_script(merged, script) if script is not None else {}
    return ConvertedManifest(merged, _not_honored(reader, layout, companions), uploads)


def _has_several_instances(request: Mapping[str, Any]) -> bool:
    """Return whether a job can have several instances: by its count, its groups, or the options of an elastic job."""
    config = part(request, "ResourceConfig")
    count = option_in(request, "instances") or config.get("InstanceCount")
    is_one = count == 1 and not config.get("InstanceGroups")
    return not is_one or gives(request, "max-instances") or gives(request, "instance-values")


def _instance_type(reader: ManifestReader, layout: Layout) -> tuple[str, Path] | None:
    """Return the instance type and its path, from the first pods that name one."""
    found = [instance_type_of(reader, pod) for pod in layout.pods]
    return next((each for each in found if each is not None), None)


def _resources(reader: ManifestReader, layout: Layout) -> dict[str, str]:
    """Return the tag with the resources of the first pods that request some."""
    for pod in layout.pods:
        if found := resources_of(reader, (*pod, "containers", 0)):
            return {RESOURCES_TAG: found}
    return {}


def merge_requests(base: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two requests: objects by member, tags by key; otherwise `overrides` wins."""
    result = dict(base)
    for name, value in overrides.items():
        base_value = result.get(name)
        if name == "Tags" and isinstance(base_value, list) and isinstance(value, list):
            keys = [tag.get("Key") for tag in value if isinstance(tag, dict)]
            result[name] = [*(tag for tag in base_value if part(tag).get("Key") not in keys), *value]
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
        elif key != TIME_LABEL and (value := reader.take(str, *_label(key))) is not None:
            tags[f"{OPTION_PREFIX}share" if key == QUEUE_LABEL else str(key)] = value
    return tags


def _label(key: str) -> Path:
    return ("metadata", "labels", key)


def _limit(reader: ManifestReader, layout: Layout) -> int | None:
    """Return the shortest time limit in seconds: Kubernetes' own, or one of Kueue's. Raises Refused for a wrong one."""
    *texts, own = _limit_paths(layout)
    limits = [reader.take(int, *own)]
    for path in texts:
        text = None if reader.peek(*path) is None else reader.take(str, *path)
        if text is not None and not text.isdecimal():
            raise invalid_field(path, f"is {shown(text)}", "Specify a number of seconds.")
        limits.append(None if text is None else int(text))
    return min((limit for limit in limits if limit is not None), default=None)


def _limit_paths(layout: Layout) -> list[Path]:
    """Return the fields that limit the time of a job; all but the last are texts."""
    annotation = ("metadata", "annotations", "provreq.kueue.x-k8s.io/maxRunDurationSeconds")
    return [_label(TIME_LABEL), annotation, (*layout.run_policy, "activeDeadlineSeconds")]


def _job(reader: ManifestReader, layout: Layout, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return name, image and time limit."""
    limit = _limit(reader, layout)
    if KNOWN_ANNOTATIONS & (reader.peek("metadata", "annotations") or {}).keys():
        reader.mark_used("metadata", "annotations", "")  # so that they are reported one by one
    reader.accept_default(False, *layout.run_policy, "suspend")  # noqa: FBT003 - a value, no switch
    reader.items(*layout.pod, "containers")
    reader.take(str, *layout.container, "name")
    image = reader.take(str, *layout.container, "image")
    job = {
        "TrainingJobName": _name(reader, manifest),
        "AlgorithmSpecification": {"TrainingInputMode": "File"} | ({"TrainingImage": image} if image else {}),
        "StoppingCondition": {} if limit is None else {"MaxRuntimeInSeconds": limit},
    }
    return {name: value for name, value in job.items() if value}


def _name(reader: ManifestReader, manifest: Mapping[str, Any]) -> str | None:
    """Return the job's name; for `generateName` the same name for the same manifest."""
    name = reader.take(str, "metadata", "name")
    prefix = reader.take(str, "metadata", "generateName")
    if name is not None or prefix is None:
        return name
    digest = hashlib.sha256(json.dumps(manifest, sort_keys=True, default=str).encode()).hexdigest()
    return f"{prefix}{digest[:8]}"


def _add_command(  # noqa: PLR0913 - one parameter per source
    reader: ManifestReader,
    layout: Layout,
    request: dict[str, Any],
    base: Mapping[str, Any],
    companions: Sequence[Mapping[str, Any]],
    *,
    is_distributed: bool,
) -> LaunchScript | None:
    """Put command and environment into the request, or return the script that has them."""
    variables = part(base, "Environment")
    environment = read_environment(reader, layout, companions, variables, is_distributed=is_distributed)
    command = read_command(reader, layout, environment, part(base, "AlgorithmSpecification"))
    mounts = read_mounts(reader, layout, companions, base, has_command=bool(command.command))
    directory = reader.peek(*layout.container, "workingDir") if command.command else None
    script = _script(layout, command, environment, mounts, directory, is_distributed=is_distributed)
    if directory is not None:
        reader.mark_used(*layout.container, "workingDir")
    if option_in(merge_requests(request, base), "resize-by") is Hook.MEMBERS and not command.is_worker:
        names = [name for name in ("command", "args") if reader.peek(*layout.container, name) is not None]
        member = names[0] if names else "image"
        reader.mark_used(*layout.container, member)
        reader.note(_NOT_THE_WORKER, *layout.container, member)
    if not command.command:
        _check_without_command(reader, layout, command, environment, is_distributed=is_distributed)
    outside = script.environment if script is not None else {}
    if not is_distributed and layout.kind not in (JOB, JOB_SET) and command.command and not command.is_worker:
        environment.values = one_host_variables(reader, layout) | environment.values
    values = {name: value for name, value in environment.values.items() if name not in outside}
    if values:
        request["Environment"] = values
    entry = (*command.wrapper, *ENTRY_POINT) if script is not None else (*command.wrapper, *command.command)
    members = {"ContainerEntrypoint": list(entry), "ContainerArguments": [] if script is not None else [*command.args]}
    request["AlgorithmSpecification"] |= {name: words for name, words in members.items() if words}
    return script


def _script(  # noqa: PLR0913 - one parameter per source
    layout: Layout,
    command: Command,
    environment: Environment,
    mounts: Mounts,
    directory: str | None,
    *,
    is_distributed: bool,
) -> LaunchScript | None:
    """Return the launch script if the command needs one and is known."""
    values = oversized(environment.values)
    refers = has_reference(command.argv)
    operator_variables = layout.variables if is_distributed and (refers or not command.is_worker) else ()
    needs_script = (
        not command.fits
        or command.uses_hyperpodrun
        or refers
        or directory is not None
        or bool(values or mounts.directories or mounts.links or mounts.files)
        or operator_variables
    )
    if not command.command or not needs_script:
        return None
    return LaunchScript(
        argv=command.argv,
        operator_variables=operator_variables,
        environment=values,
        directory=directory,
        replaces_hyperpodrun=command.uses_hyperpodrun,
        directories=mounts.directories,
        links=mounts.links,
        files=mounts.files,
    )


def _check_without_command(
    reader: ManifestReader,
    layout: Layout,
    command: Command,
    environment: Environment,
    *,
    is_distributed: bool,
) -> None:
    """Check a job that runs the entry point of its image, which no script can start.

    Raises Refused if its arguments or variables cannot be in a request.
    """
    if not command.fits or has_reference(command.args):
        raise invalid_field(
            (*layout.container, "args"),
            "is longer than SageMaker accepts, or refers to variables of the container",
            "Set `command` too: then the queue can start both from a script.",
        )
    for name in oversized(environment.values):
        index = next(
            (i for i, each in enumerate(reader.items(*layout.container, "env")) if each.get("name") == name), 0
        )
        reader.note("SageMaker accepts no such variable: set `command`, so that a script can set it",
                    *layout.container, "env", index, "value")  # fmt: skip
        del environment.values[name]
    if is_distributed and layout.variables:
        reader.note(_NO_COMMAND, *layout.container, "image")


def _add_script(request: dict[str, Any], script: LaunchScript) -> dict[str, str]:
    """Add the script's channel to a request; return its files by S3 URI."""
    files = script.uploads()
    prefix = prefix_of(str(request["OutputDataConfig"]["S3OutputPath"]), files)
    request["InputDataConfig"] = [*request.get("InputDataConfig", []), channel_of(prefix)]
    return {prefix + name: text for name, text in files.items()}


def _merged(
    reader: ManifestReader,
    layout: Layout,
    request: dict[str, Any],
    base: Mapping[str, Any],
    type_path: Path | None,
) -> dict[str, Any]:
    """Return the request with the base request's members, and note the fields that those replace."""
    paths: list[tuple[tuple[str, ...], Path | None]] = [
        (("TrainingJobName",), ("metadata", "name")),
        (("AlgorithmSpecification", "TrainingImage"), (*layout.container, "image")),
        (("ResourceConfig", "InstanceType"), type_path),
        *((("StoppingCondition", "MaxRuntimeInSeconds"), path) for path in _limit_paths(layout)),
    ]
    for (*parents, member), path in paths:
        ours, theirs = part(request, *parents).get(member), part(base, *parents).get(member)
        if path is not None and None not in (ours, theirs) and ours != theirs:
            reader.note(f"--with sets {member}", *path)
    # The entry points are already combined.
    algorithm = {
        name: value
        for name, value in part(base, "AlgorithmSpecification").items()
        if name not in ("ContainerEntrypoint", "ContainerArguments")
    }
    others = {name: value for name, value in base.items() if name != "AlgorithmSpecification"}
    return merge_requests(request, others | ({"AlgorithmSpecification": algorithm} if algorithm else {}))


def _not_honored(
    reader: ManifestReader, layout: Layout, companions: Sequence[Mapping[str, Any]]
) -> tuple[Unsupported, ...]:
    """Return the fields and documents without effect: what can change the result first, and of that, the container."""
    found = []
    for path, note in reader.unused():
        why, changes = reason_for(path, layout)
        is_replaced = note is not None and note.startswith("--with sets")
        found.append(Unsupported(format_path(path), note or why, (changes or note is not None) and not is_replaced))
    for document in companions:
        if document.get("kind") != "ConfigMap":
            name = f"{document.get('kind')} {part(document, 'metadata').get('name')}"
            found.append(Unsupported(name, "the queue converts only the job", document.get("kind") == "Service"))
    return tuple(sorted(found, key=lambda each: (not each.changes_result, ".containers[" not in each.field)))


def _require_members(request: Mapping[str, Any], layout: Layout) -> None:
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
    if not {"TrainingImage", "AlgorithmName"} & part(request, "AlgorithmSpecification").keys():
        raise invalid_field(
            (*layout.container, "image"), "is empty", "Set it, or AlgorithmSpecification.TrainingImage in --with."
        )
