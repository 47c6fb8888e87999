"""Converts TrainingJob manifests of SageMaker's controllers for Kubernetes to CreateTrainingJob requests.

The specification is the request itself, in names of Kubernetes: `roleARN` of the ACK controller, `roleArn` of the
operator before it. The operator writes maps as lists of names and values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainmaster.client.hyperpod.kinds import TRAINING_JOB, kind_of
from trainmaster.client.hyperpod.manifest import ConvertedManifest, Unsupported, merge_requests
from trainmaster.client.hyperpod.yaml_reader import invalid_field
from trainmaster.domain.requests.fields import part

_NOT_HONORED = {
    "region": "the job runs in the Region of the queue",
    "sageMakerEndpoint": "the queue calls SageMaker at the endpoint of its Region",
}


def is_training_job_manifest(manifest: Mapping[str, Any]) -> bool:
    """Return whether a manifest is one of SageMaker's controllers."""
    return kind_of(manifest) == TRAINING_JOB


def convert_training_job(manifest: Mapping[str, Any], base: Mapping[str, Any]) -> ConvertedManifest:
    """Convert a manifest to a request; `base` is a part of a request that takes precedence. Raises Refused.

    Members that SageMaker does not have stay as they are, so that the queue names them.
    """
    spec = manifest.get("spec")
    if not isinstance(spec, Mapping):
        raise invalid_field(("spec",), "is not an object", "Specify the members of the request.")
    passed = {name: value for name, value in spec.items() if name not in _NOT_HONORED and value is not None}
    name = part(manifest, "metadata").get("name")
    request = ({"TrainingJobName": name} if name else {}) | _renamed(_request_shape(), passed)
    ignored = [Unsupported(f"spec.{name}", why, True) for name, why in _NOT_HONORED.items() if name in spec]  # noqa: FBT003 - a field of a value
    return ConvertedManifest(merge_requests(request, base), tuple(ignored))


def _request_shape() -> Any:
    from botocore.session import Session

    return Session().get_service_model("sagemaker").operation_model("CreateTrainingJob").input_shape


def _renamed(shape: Any, value: Any) -> Any:
    """Return a value with SageMaker's names of members, which differ in case only."""
    if shape.type_name == "structure" and isinstance(value, Mapping):
        names = {name.lower(): name for name in shape.members}
        named = {names.get(str(key).lower(), key): child for key, child in value.items()}
        return {
            key: _renamed(shape.members[key], child) if key in shape.members else child for key, child in named.items()
        }
    if shape.type_name == "list" and isinstance(value, list):
        return [_renamed(shape.member, child) for child in value]
    if shape.type_name == "map" and isinstance(value, list) and all(map(_is_pair, value)):
        return {pair["name"]: pair["value"] for pair in value}
    return value


def _is_pair(value: object) -> bool:
    return isinstance(value, Mapping) and value.keys() == {"name", "value"}
