"""Signs requests to the API with the caller's AWS credentials (Signature Version 4, service `execute-api`).

Only headers that no proxy rewrites are signed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import httpx

from trainmaster.client.api.credentials import credentials_error, login_hint
from trainmaster.client.api.errors import Forbidden

if TYPE_CHECKING:
    import boto3
    from botocore.credentials import Credentials, ReadOnlyCredentials

    from trainmaster.client.api.core_session import CoreSession

_SIGNED = ("host", "content-type", "x-apigw-api-id")


class SigV4(httpx.Auth):
    """An httpx.Auth that signs each attempt, so that a retry does not carry an expired signature.

    `credentials` is a boto3 session's `get_credentials`, called for every request because temporary credentials change;
    `session` is that session, for the profile in hints.
    """

    requires_request_body = True

    def __init__(
        self,
        credentials: Callable[[], Credentials | None],
        region: str,
        session: boto3.session.Session | CoreSession | None = None,
    ) -> None:
        self._credentials = credentials
        self._region = region
        self._session = session

    def auth_flow(self, request: httpx.Request) -> Iterator[httpx.Request]:  # type: ignore[override]
        """Add `Authorization`, `X-Amz-Date` and, for temporary credentials, `X-Amz-Security-Token`."""
        request.headers.update(self._signature_of(request))
        yield request

    def _frozen_credentials(self) -> ReadOnlyCredentials:
        """Return the credentials to sign with. Raises Forbidden, with the command to log in with."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            credentials = self._credentials()
            found = None if credentials is None else credentials.get_frozen_credentials()
        except (BotoCoreError, ClientError) as error:
            known = credentials_error(error, self._session)
            if known is None:
                raise
            raise known from error
        if found is None:
            raise Forbidden("No AWS credentials were found to sign the request.", hint=login_hint(self._session))
        return found

    def _signature_of(self, request: httpx.Request) -> dict[str, str]:
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest

        credentials = self._frozen_credentials()
        headers = {name: request.headers[name] for name in _SIGNED if name in request.headers}
        unsigned = AWSRequest(request.method, str(request.url), headers=headers, data=request.content)
        SigV4Auth(credentials, "execute-api", self._region).add_auth(unsigned)
        return dict(unsigned.headers.items())
