"""Finds the API's address: an explicit URL, the environment, or the outputs of the CloudFormation stack."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainmaster.client.api.errors import NotConfigured

if TYPE_CHECKING:
    import boto3

URL_VARIABLE = "TRAINMASTER_API_URL"
ID_VARIABLE = "TRAINMASTER_API_ID"
STACK_VARIABLE = "TRAINMASTER_STACK"
DEFAULT_STACK = "trainmaster"

_URL = re.compile(r"https?://([\w.-]+|\[[0-9a-fA-F:]+\])(:\d{1,5})?(/[^\s?#]*)?", re.ASCII)
_REGION_IN_HOST = re.compile(r"\.execute-api\.([a-z0-9-]+)\.(?:vpce\.)?amazonaws\.com")
_ADDRESS_HINT = (
    f"Pass the URL, set {URL_VARIABLE} (and {ID_VARIABLE} behind a VPC endpoint), "
    f"or set {STACK_VARIABLE} to the name of the deployed stack."
)
REGION_HINT = "Set the AWS Region with --region or AWS_DEFAULT_REGION, or on the boto3 session."


@dataclass(frozen=True, slots=True)
class Address:
    """The API's URL with its stage, and the API ID if a private API is called through a VPC endpoint's own host name.

    The client sends the ID in the header `x-apigw-api-id`
    (AWS: API Gateway developer guide, "Invoke a private API", endpoint-specific public DNS host names).
    """

    url: str
    api_id: str | None = None

    @property
    def region(self) -> str | None:
        """The AWS Region in the host name, if it is an AWS host name."""
        found = _REGION_IN_HOST.search(self.url)
        return found[1] if found else None


def find_address(
    url: str | None,
    api_id: str | None,
    session: boto3.session.Session,
    environ: Mapping[str, str],
) -> Address:
    """Return the API's address from the argument, else the environment, else the stack outputs `ApiUrl` and `ApiId`.

    Raises NotConfigured if none of them is set, or if the URL is invalid.
    """
    environ_url, environ_id = environ.get(URL_VARIABLE), environ.get(ID_VARIABLE)
    if url and environ_url not in (None, "", url):
        environ_id = None  # it belongs to the other URL
    url = url or environ_url
    if not url:
        return _address_of_stack(session, environ.get(STACK_VARIABLE) or DEFAULT_STACK)
    if not _URL.fullmatch(url):
        raise NotConfigured(f"{url!r} is not a valid API URL.", hint="It begins with https:// and ends in the stage.")
    return Address(url.rstrip("/"), api_id or environ_id or None)


def _address_of_stack(session: boto3.session.Session, stack: str) -> Address:
    outputs = _outputs(session, stack)
    if "ApiUrl" not in outputs:
        raise NotConfigured(f"Stack {stack!r} has no output ApiUrl.", hint=_ADDRESS_HINT)
    return Address(outputs["ApiUrl"].rstrip("/"), outputs.get("ApiId") or None)


def _outputs(session: boto3.session.Session, stack: str) -> dict[str, str]:
    from botocore.exceptions import BotoCoreError, ClientError, NoRegionError

    try:
        found = session.client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]
    except (BotoCoreError, ClientError) as error:
        hint = (
            f"{REGION_HINT} If {URL_VARIABLE} is set, no stack is read."
            if isinstance(error, NoRegionError)
            else _ADDRESS_HINT
        )
        message = f"Could not read the API's address from stack {stack!r} ({error})."
        raise NotConfigured(message, hint=hint) from error
    return {output["OutputKey"]: output["OutputValue"] for output in found.get("Outputs", [])}
