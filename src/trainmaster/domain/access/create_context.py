"""The condition keys with which IAM decides about a CreateTrainingJob request.

Source: service authorization reference, "Actions, resources, and condition keys for Amazon SageMaker".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trainmaster.domain.requests.fields import entries, part, text, whole
from trainmaster.domain.requests.resources import CONFIG, named_types
from trainmaster.domain.requests.tag_names import OPTION_PREFIX
from trainmaster.domain.requests.training_job import DEFAULT_RUNTIME

Object = Mapping[str, object]
Context = dict[str, list[str]]

CREATE = "sagemaker:CreateTrainingJob"
CALLED_VIA = {"aws:CalledVia": ["trainmaster"]}
"""Sent with each question, and never by a direct call: a policy that requires it allows jobs of the queue alone."""


def create_contexts(request: Object, region: str) -> Iterator[Context]:
    """Yield the condition keys of a request as it goes to SageMaker, apart for each file system that it mounts.

    A switch that the request omits is false, as for SageMaker. The queue's own tags are not the caller's, so they are
    left out; so are keys of the connection, such as `aws:SourceIp`.
    """
    common = {**_texts(request), **_numbers(request), **_switches(request), **_tags(request), **CALLED_VIA}
    common |= {"aws:RequestedRegion": [region], "aws:SecureTransport": ["true"]}
    systems = [part(channel, "DataSource", "FileSystemDataSource") for channel in entries(request, "InputDataConfig")]
    contexts = [common | _file_system(system) for system in systems if system] or [common]
    seen: list[Context] = []
    for context in contexts:
        if context not in seen:
            seen.append(context)
            yield context


def _texts(request: Object) -> Context:
    vpc = part(request, "VpcConfig")
    volume, output = part(request, CONFIG).get("VolumeKmsKeyId"), part(request, "OutputDataConfig").get("KmsKeyId")
    values = {
        "sagemaker:InstanceTypes": sorted(set(named_types(request).values())),
        "sagemaker:VpcSubnets": _listed(vpc.get("Subnets")),
        "sagemaker:VpcSecurityGroupIds": _listed(vpc.get("SecurityGroupIds")),
        # IAM has replaced the names without "Arn", which policies still have.
        "sagemaker:VolumeKmsKey": _listed([volume]),
        "sagemaker:VolumeKmsKeyArn": _listed([volume]),
        "sagemaker:OutputKmsKey": _listed([output]),
        "sagemaker:OutputKmsKeyArn": _listed([output]),
    }
    return {key: listed for key, listed in values.items() if listed}


def _numbers(request: Object) -> Context:
    runtime = whole(part(request, "StoppingCondition"), "MaxRuntimeInSeconds") or DEFAULT_RUNTIME
    kept = whole(part(request, CONFIG), "KeepAlivePeriodInSeconds")
    found = {"sagemaker:MaxRuntimeInSeconds": [str(runtime)]}
    return found | ({} if kept is None else {"sagemaker:KeepAlivePeriod": [str(kept)]})


def _switches(request: Object) -> Context:
    values = {
        "sagemaker:NetworkIsolation": request.get("EnableNetworkIsolation"),
        "sagemaker:InterContainerTrafficEncryption": request.get("EnableInterContainerTrafficEncryption"),
        "sagemaker:EnableRemoteDebug": part(request, "RemoteDebugConfig").get("EnableRemoteDebug"),
    }
    return {key: ["true" if value is True else "false"] for key, value in values.items()}


def _tags(request: Object) -> Context:
    tags = {text(tag, "Key") or "": text(tag, "Value") or "" for tag in entries(request, "Tags")}
    own = {key: value for key, value in tags.items() if not key.startswith(OPTION_PREFIX)}
    found = {f"aws:RequestTag/{key}": [value] for key, value in own.items()}
    return found | ({"aws:TagKeys": sorted(own)} if own else {})


def _file_system(system: Object) -> Context:
    names = ("FileSystemId", "FileSystemAccessMode", "FileSystemType")
    found = {f"sagemaker:{name}": _listed([text(system, name)]) for name in names}
    found["sagemaker:FileSystemDirectoryPath"] = _listed([text(system, "DirectoryPath")])
    return {key: listed for key, listed in found.items() if listed}


def _listed(values: object) -> list[str]:
    return [each for each in values if isinstance(each, str) and each] if isinstance(values, list | tuple) else []
