"""Finds the API's address: an explicit URL, the environment, or the outputs of the CloudFormation stack."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from trainmaster.client.api.credentials import credentials_error
from trainmaster.client.api.errors import NotConfigured

if TYPE_CHECKING:
    import boto3

    from trainmaster.client.api.core_session import CoreSession

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

    @property
    def is_encrypted(self) -> bool:
        """True if requests travel over TLS."""
        return self.url.startswith("https://")

    @property
    def is_of_this_machine(self) -> bool:
        """True if the host is `localhost` or a loopback address."""
        return _is_loopback(urlsplit(self.url).hostname or "")


def find_address(
    url: str | None,
    api_id: str | None,
    session: boto3.session.Session | CoreSession,
    environ: Mapping[str, str],
) -> Address:
    """Return the API's address from the argument, else the environment, else the stack outputs `ApiUrl` and `ApiId`.

    Raises Forbidden for expired credentials; NotConfigured if none of them is set, if the URL is invalid, or if it is
    `http://` and not of this machine.
    """
    given = given_address(url, api_id, environ)
    return given or _address_of_stack(session, environ.get(STACK_VARIABLE) or DEFAULT_STACK)


def given_address(url: str | None, api_id: str | None, environ: Mapping[str, str]) -> Address | None:
    """Return the API's address from the argument, else the environment; None without either. Raises NotConfigured."""
    environ_url, environ_id = environ.get(URL_VARIABLE), environ.get(ID_VARIABLE)
    if url and environ_url not in (None, "", url):
        environ_id = None  # it belongs to the other URL
    if url:
        checked = _checked(url, "the URL given (--api-url, or the argument of the client)")
        return Address(checked, api_id or environ_id or None)
    if environ_url:
        return Address(_checked(environ_url, URL_VARIABLE), api_id or environ_id or None)
    return None


def environment_address(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return what the environment says of the address: `api_url` with `api_id`, or `stack`; empty if nothing."""
    if url := environ.get(URL_VARIABLE):
        api_id = environ.get(ID_VARIABLE)
        return {"api_url": url} | ({"api_id": api_id} if api_id else {})
    stack = environ.get(STACK_VARIABLE)
    return {"stack": stack} if stack else {}


def _address_of_stack(session: boto3.session.Session | CoreSession, stack: str) -> Address:
    outputs = _outputs(session, stack)
    if "ApiUrl" not in outputs:
        raise NotConfigured(f"Stack {stack!r} has no output ApiUrl.", hint=_ADDRESS_HINT)
    return Address(_checked(outputs["ApiUrl"], f"output ApiUrl of stack {stack!r}"), outputs.get("ApiId") or None)


def _checked(url: str, setting: str) -> str:
    """Return the URL without a slash at its end. Raises NotConfigured, naming the setting that the URL comes from.

    Without TLS, anyone on the path can read a request, repeat it within the minutes that its signature is valid, and
    forge the answer. So `http://` is accepted only for this machine.
    """
    if not _URL.fullmatch(url):
        message = f"{url!r} is not a valid API URL: {setting}."
        raise NotConfigured(message, hint="It begins with https:// and ends in the stage.")
    if url.startswith("http://") and not _is_loopback(urlsplit(url).hostname or ""):
        message = f"{url!r} would send requests unencrypted: {setting}."
        raise NotConfigured(message, hint="Use https://; http:// is accepted only for this machine (localhost).")
    return url.rstrip("/")


def _is_loopback(host: str) -> bool:
    """Return whether the host is `localhost` or a loopback address; names that resolve to one do not count."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _outputs(session: boto3.session.Session | CoreSession, stack: str) -> dict[str, str]:
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        found = session.client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]
    except (BotoCoreError, ClientError) as error:
        if (known := credentials_error(error, session)) is not None:
            raise known from error
        raise _unread(stack, error, session.region_name) from error
    return {output["OutputKey"]: output["OutputValue"] for output in found.get("Outputs", [])}


def _unread(stack: str, error: Exception, region: str | None) -> NotConfigured:
    """Return the error of a stack whose outputs could not be read, with what is likely to be wrong."""
    from botocore.exceptions import EndpointConnectionError, InvalidRegionError, NoRegionError

    if "does not exist" in str(error):
        hint = f"Name another with --stack or {STACK_VARIABLE}, or its Region with --region, or set {URL_VARIABLE}."
        return NotConfigured(f"There is no stack {stack!r} in {region}.", hint=hint)
    message = f"Could not read the API's address from stack {stack!r} ({error})."
    if isinstance(error, NoRegionError):
        return NotConfigured(message, hint=f"{REGION_HINT} If {URL_VARIABLE} is set, no stack is read.")
    if isinstance(error, EndpointConnectionError | InvalidRegionError):
        return NotConfigured(message, hint=_region_hint(region or ""))
    return NotConfigured(message, hint=_ADDRESS_HINT)


def _region_hint(region: str) -> str:
    """Return what to do about a Region in which no CloudFormation answers."""
    from botocore.session import Session

    from trainmaster.domain.requests.fields import did_you_mean

    known = Session().get_available_regions("cloudformation")
    meant = None if region in known else did_you_mean(region, known)
    guess = f"Did you mean {meant}? " if meant else ""
    return f"{guess}Check that {region} is the AWS Region of the stack, and your network."
