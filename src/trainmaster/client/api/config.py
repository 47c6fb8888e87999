"""Where the API is: an explicit address, the environment, or the outputs of the CloudFormation stack.

It must not call the API, and keeps nothing between calls.
"""

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
_HOW = (
    f"Pass the address, set {URL_VARIABLE} (and {ID_VARIABLE} behind a VPC endpoint), "
    f"or name the deployed stack in {STACK_VARIABLE}."
)
NAME_REGION = "Name the AWS Region: with --region on the command line, in AWS_DEFAULT_REGION, or as the session's own."


@dataclass(frozen=True, slots=True)
class Address:
    """The API's URL with its stage, and its id where a PRIVATE API is reached through a VPC endpoint's own name.

    The id travels in the header `x-apigw-api-id`
    (AWS: API Gateway developer guide, "Invoke a private API", endpoint-specific public DNS host names).
    """

    url: str
    api_id: str | None = None

    @property
    def region(self) -> str | None:
        """The AWS Region that the host name tells, if it is one of AWS's own."""
        found = _REGION_IN_HOST.search(self.url)
        return found[1] if found else None


def find_address(
    url: str | None,
    api_id: str | None,
    session: boto3.session.Session,
    environ: Mapping[str, str],
) -> Address:
    """The API's address: the argument first, then the environment, then the stack's outputs `ApiUrl` and `ApiId`.

    Raises NotConfigured when none of them tells it, or when the address is no URL.
    """
    url_there, id_there = environ.get(URL_VARIABLE), environ.get(ID_VARIABLE)
    if url and url_there not in (None, "", url):
        id_there = None  # it belongs to the other address
    url = url or url_there
    if not url:
        return _address_of_stack(session, environ.get(STACK_VARIABLE) or DEFAULT_STACK)
    if not _URL.fullmatch(url):
        raise NotConfigured(f"{url!r} is not a URL of the API.", hint="It begins with https:// and ends in the stage.")
    return Address(url.rstrip("/"), api_id or id_there or None)


def _address_of_stack(session: boto3.session.Session, stack: str) -> Address:
    outputs = _outputs(session, stack)
    if "ApiUrl" not in outputs:
        raise NotConfigured(f"The stack {stack!r} has no output ApiUrl.", hint=_HOW)
    return Address(outputs["ApiUrl"].rstrip("/"), outputs.get("ApiId") or None)


def _outputs(session: boto3.session.Session, stack: str) -> dict[str, str]:
    from botocore.exceptions import BotoCoreError, ClientError, NoRegionError

    try:
        found = session.client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]
    except (BotoCoreError, ClientError) as error:
        hint = (
            f"{NAME_REGION} With the address in {URL_VARIABLE} no stack is asked."
            if isinstance(error, NoRegionError)
            else _HOW
        )
        raise NotConfigured(f"No address of the API: the stack {stack!r} tells none ({error}).", hint=hint) from error
    return {output["OutputKey"]: output["OutputValue"] for output in found.get("Outputs", [])}
