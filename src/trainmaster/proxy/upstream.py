"""Sends requests to AWS, signed with the user's credentials for the Region that the program signed for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest, AWSResponse
from botocore.config import Config
from botocore.exceptions import NoCredentialsError

if TYPE_CHECKING:
    import boto3
    from botocore.awsrequest import AWSPreparedRequest
    from botocore.credentials import ReadOnlyCredentials

    from trainmaster.proxy.wire import Call

_CONNECT_SECONDS: Final = 10
_MAX_CONNECTIONS: Final = 64
_Send = Callable[["AWSPreparedRequest"], AWSResponse]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The endpoint of a service in a Region: its URL without a slash at the end, and what sends a request."""

    url: str
    signing_name: str
    send: _Send


class Upstream:
    """AWS, or what the user's environment and profile name instead (`AWS_ENDPOINT_URL_SAGEMAKER`, `endpoint_url`).

    Each request is sent once: the program's SDK repeats what failed. `send` replaces the network. Thread-safe.
    """

    def __init__(self, session: boto3.session.Session, send: _Send | None = None) -> None:
        self._session, self._send = session, send
        self._endpoints: dict[tuple[str, str], Endpoint] = {}
        self._lock = Lock()

    def endpoint(self, service: str, region: str) -> Endpoint:
        """Return the endpoint that a client of botocore would call. Raises BotoCoreError."""
        with self._lock:
            if (service, region) not in self._endpoints:
                self._endpoints[service, region] = self._found(service, region)
            return self._endpoints[service, region]

    def credentials(self) -> ReadOnlyCredentials:
        """Return the user's present credentials. Raises BotoCoreError."""
        found = self._session.get_credentials()
        if found is None:
            raise NoCredentialsError
        return found.get_frozen_credentials()

    def send(self, call: Call, region: str) -> AWSResponse:
        """Return the answer to a call. Raises BotoCoreError."""
        endpoint = self.endpoint(call.service, region)
        url = endpoint.url + call.path + (f"?{call.query}" if call.query else "")
        request = AWSRequest(call.method, url, headers=_headers(call), data=call.body)
        SigV4Auth(self.credentials(), endpoint.signing_name, region).add_auth(request)
        return endpoint.send(request.prepare())

    def _found(self, service: str, region: str) -> Endpoint:
        config = Config(connect_timeout=_CONNECT_SECONDS, max_pool_connections=_MAX_CONNECTIONS)
        name: Any = service
        client: Any = self._session.client(name, region_name=region, config=config)
        # Proxies, certificates and time limits of the user's environment; botocore has no public name for this.
        send: _Send = self._send or client._endpoint.http_session.send  # noqa: SLF001
        return Endpoint(client.meta.endpoint_url.rstrip("/"), client.meta.service_model.signing_name, send)


def _headers(call: Call) -> Mapping[str, str]:
    return {**call.headers, "accept-encoding": "identity"}  # handlers read some of the answers
