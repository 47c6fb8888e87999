"""SageMaker endpoints as AWS describes them, with their tags; implements `images.ports.Endpoints`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trainmaster.adapters.aws_errors import AWS_ERRORS, AwsError, code_of, message_of
from trainmaster.adapters.sagemaker.errors import call_error
from trainmaster.domain.errors import InvalidRequest
from trainmaster.images.domain.endpoint import Endpoint, Variant
from trainmaster.images.domain.limits import tagged

if TYPE_CHECKING:
    from mypy_boto3_sagemaker import SageMakerClient

log = logging.getLogger(__name__)

_MAX_PAGES = 10
"""An endpoint has at most 50 tags; a page has at least one."""


class SageMakerEndpoints:
    """Describes endpoints of this account, and of others by role.

    Args:
        client_of: a SageMaker client under a role, the queue's own for None; raises `Throttled`, `Unavailable`,
            `NotPermitted` if the role cannot be assumed.
    """

    def __init__(self, client_of: Callable[[str | None], SageMakerClient]) -> None:
        self._client_of = client_of

    def describe(self, key: str, *, role: str | None = None) -> Endpoint:
        """Return an endpoint; see `images.ports.Endpoints`.

        If its tags cannot be read the result says so (`Endpoint.tags_unread`): the number of instances counts without
        them.
        """
        # Names have no colon; a prefix before one is the account of the role (`endpoint.key_of`).
        name = key.rpartition(":")[2]
        client = self._client_of(role)
        try:
            answer: Mapping[str, Any] = client.describe_endpoint(EndpointName=name)
        except AWS_ERRORS as error:
            if _is_missing(error):
                raise InvalidRequest(
                    f"SageMaker has no endpoint {name}.",
                    field="imageProcessor.name",
                    hint="It must be in the queue's Region, and in the account of assumedRole if the request has one.",
                ) from error
            raise call_error(error) from error
        variants = tuple(map(_variant, answer.get("ProductionVariants", ())))
        status, asynchronous = str(answer.get("EndpointStatus", "")), bool(answer.get("AsyncInferenceConfig"))
        seen = Endpoint(key=key, variants=variants, role=role, status=status, asynchronous=asynchronous)
        return _with_tags(client, seen, str(answer.get("EndpointArn", "")))


def _variant(summary: Mapping[str, Any]) -> Variant:
    """Return one variant of the answer; a missing number, as during creation, counts as the least possible."""
    serverless = summary.get("CurrentServerlessConfig") or summary.get("DesiredServerlessConfig")
    instances = summary.get("CurrentInstanceCount", summary.get("DesiredInstanceCount", 1))
    return Variant(
        name=summary["VariantName"],
        weight=float(summary.get("CurrentWeight", summary.get("DesiredWeight", 1.0))),
        instances=0 if serverless else int(instances),
        max_concurrency=int(serverless["MaxConcurrency"]) if serverless else None,
    )


def _with_tags(client: SageMakerClient, endpoint: Endpoint, arn: str) -> Endpoint:
    try:
        read, wrong = tagged(endpoint, _tags(client, arn))
    except AWS_ERRORS as error:
        log.warning("an endpoint's tags cannot be read", extra={"endpoint": endpoint.key, "cause": message_of(error)})
        return replace(endpoint, tags_unread=True)
    for problem in wrong:
        cause = f"{problem.message} {problem.hint}"
        log.warning(
            "an endpoint's tag is invalid; the default applies", extra={"endpoint": endpoint.key, "cause": cause}
        )
    return read


def _tags(client: SageMakerClient, arn: str) -> dict[str, str]:
    tags: dict[str, str] = {}
    asked: dict[str, Any] = {}
    for _ in range(_MAX_PAGES):
        answer = client.list_tags(ResourceArn=arn, **asked)
        tags |= {tag["Key"]: tag["Value"] for tag in answer["Tags"]}
        if not answer.get("NextToken"):
            break
        asked = {"NextToken": answer["NextToken"]}
    return tags


def _is_missing(error: AwsError) -> bool:
    """Return whether the endpoint is unknown: a ValidationException with this text (SageMaker API reference)."""
    return (
        code_of(error) in {"ValidationException", "ResourceNotFound"} and "could not find" in message_of(error).lower()
    )
