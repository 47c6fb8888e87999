"""The protocol AWS JSON 1.1, from botocore's service model: parses and checks requests, and serializes responses.

It is the same for all operations, which `simulator` implements.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any

from botocore.loaders import Loader
from botocore.model import ListShape, MapShape, ServiceModel, Shape, StructureShape

from trainmaster.domain.compat import UTC
from trainmaster.local.simulator.wire.constraints import check_request
from trainmaster.local.simulator.wire.errors import ApiError

TARGET_PREFIX = "SageMaker."
CONTENT_TYPE = "application/x-amz-json-1.1"


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP answer."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": CONTENT_TYPE})


@lru_cache(maxsize=1)
def service_model() -> ServiceModel:
    """SageMaker's model as this machine's botocore has it."""
    return ServiceModel(Loader().load_service_model("sagemaker", "service-2"), "sagemaker")


def answer(operation: str, body: bytes, call: Callable[[str, dict[str, Any]], Mapping[str, Any]]) -> Reply:
    """Read a request, have it carried out by `call`, and write the answer or the error that it raised down."""
    try:
        model = service_model().operation_model(operation)
        request = read(body, model.input_shape)
        result = call(operation, request)
        # StopTrainingJob has no output shape: the service then answers an empty object.
        written = write(result, model.output_shape) if model.output_shape else {}
        return Reply(200, json.dumps(written).encode())
    except ApiError as error:
        return error_reply(error)


def error_reply(error: ApiError) -> Reply:
    """Return an error in the service's form."""
    return Reply(error.status, json.dumps({"__type": error.code, "message": error.message}).encode())


def read(body: bytes, shape: Shape | None) -> dict[str, Any]:
    """Return a request body as checked values. Raises `ApiError` for what the service would not accept."""
    try:
        raw = json.loads(body or b"{}")
    except ValueError as error:
        raise ApiError("SerializationException", "The request body is no JSON.") from error
    if shape is None:
        return {}
    request = _read(raw, shape)
    check_request(request, shape)
    return dict(request)


def write(value: Any, shape: Shape) -> Any:
    """Values as JSON of the shape; times become epoch seconds."""
    if isinstance(shape, StructureShape):
        return {name: write(each, shape.members[name]) for name, each in value.items()}
    if isinstance(shape, ListShape):
        return [write(each, shape.member) for each in value]
    if isinstance(shape, MapShape):
        return {key: write(each, shape.value) for key, each in value.items()}
    return value.timestamp() if shape.type_name == "timestamp" else value


def _read(raw: Any, shape: Shape) -> Any:
    """JSON as values of the shape; a null is a member that is not there. Wrong types are left for the check."""
    if isinstance(shape, StructureShape) and isinstance(raw, dict):
        members = shape.members
        return {
            name: _read(each, members[name]) if name in members else each
            for name, each in raw.items()
            if each is not None
        }
    if isinstance(shape, ListShape) and isinstance(raw, list):
        return [_read(each, shape.member) for each in raw]
    if isinstance(shape, MapShape) and isinstance(raw, dict):
        return {key: _read(each, shape.value) for key, each in raw.items()}
    if shape.type_name == "timestamp" and isinstance(raw, (int, float)):
        return datetime.fromtimestamp(raw, UTC)
    return raw
