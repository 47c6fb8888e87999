"""Builds botocore responses by passing JSON through botocore's own parser.

Parsing with the service model gives the same types, times and errors as a response from AWS.
"""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any, cast

from botocore.awsrequest import AWSResponse
from botocore.exceptions import ClientError
from botocore.parsers import create_parser

from trainmaster.client.api.errors import ApiError, Conflict, Forbidden, Refused, Unreachable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from botocore.model import OperationModel, Shape

# SageMaker's own codes: API reference, "Common Errors" and the errors of CreateTrainingJob.
_CODES: tuple[tuple[type[ApiError], str, int], ...] = (
    (Forbidden, "AccessDeniedException", 400),
    (Refused, "ValidationException", 400),
    (Conflict, "ResourceInUse", 400),
    (Unreachable, "ServiceUnavailable", 503),
)

BotoResponse = tuple[AWSResponse, dict[str, Any]]


def request_of(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the operation's input from a request that botocore has serialized (in a protocol with JSON bodies)."""
    body: dict[str, Any] = json.loads(params["body"] or b"{}")
    return body


def rewrite_request(params: dict[str, Any], **members: Any) -> None:
    """Change members of a serialized request before it is signed and sent; None removes one."""
    request = request_of(params) | members
    params["body"] = json.dumps({name: value for name, value in request.items() if value is not None}).encode()


def make_response(model: OperationModel, payload: Mapping[str, Any], status: int = 200) -> BotoResponse:
    """Return a response for botocore's `before-call` event; times in `payload` are epoch seconds."""
    headers = {"content-type": "application/x-amz-json-1.1", "x-amzn-requestid": str(uuid.uuid4())}
    raw = {"headers": headers, "status_code": status, "body": json.dumps(payload).encode(), "context": {}}
    parser = create_parser(model.service_model.resolved_protocol)
    parsed: dict[str, Any] = parser.parse(raw, cast("Shape", model.output_shape))
    error_shape = model.service_model.shape_for_error_code(parsed["Error"]["Code"]) if "Error" in parsed else None
    if error_shape is not None:  # botocore's endpoint adds the members of modeled errors, which some code reads
        parsed.update(parser.parse(raw, error_shape))
    parsed.setdefault("ResponseMetadata", {})["RetryAttempts"] = 0
    return AWSResponse("", status, cast("Any", headers), None), parsed


def make_error_response(model: OperationModel, error: ApiError) -> BotoResponse:
    """Return the API's error as a SageMaker error, with the hint in the message."""
    code, status = _code_of(error)
    return make_response(model, {"__type": code, "message": str(error)}, status)


def to_client_error(error: ApiError, operation: str) -> ClientError:
    """Return the API's error as a ClientError, for code that raises instead of returning responses."""
    code, status = _code_of(error)
    response: Any = {
        "Error": {"Code": code, "Message": str(error)},
        "ResponseMetadata": {"HTTPStatusCode": status, "RetryAttempts": 0},
    }
    return ClientError(response, operation)


def overwrite_response(http: AWSResponse, parsed: dict[str, Any], new: BotoResponse) -> None:
    """Replace a response in place (in `after-call`, which cannot return one)."""
    http.status_code = new[0].status_code
    parsed.clear()
    parsed.update(new[1])


def _code_of(error: ApiError) -> tuple[str, int]:
    return next(
        ((code, status) for kind, code, status in _CODES if isinstance(error, kind)),
        ("ValidationException", 400),
    )
