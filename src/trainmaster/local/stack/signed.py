"""Clients of the local stack: signed requests to the queue's API, and clients of its AWS services.

They ignore the caller's profiles and configuration files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import botocore.session
import httpx
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from trainmaster.local.stack.address import ACCOUNT, REGION, SECRET

_KEYS = Credentials(ACCOUNT, SECRET)
_SECONDS = 30.0
"""The first call waits for the function's cold start."""


def get(url: str) -> httpx.Response:
    """Send a signed GET. Raises httpx.TransportError if there is no response."""
    return _request("GET", url, b"", {})


def send(method: str, url: str, body: Mapping[str, Any], keys: Credentials = _KEYS) -> httpx.Response:
    """Send a signed request with JSON. Raises httpx.TransportError if there is no response."""
    return _request(method, url, json.dumps(body).encode(), {"Content-Type": "application/json"}, keys)


def _request(
    method: str, url: str, body: bytes, headers: Mapping[str, str], keys: Credentials = _KEYS
) -> httpx.Response:
    request = AWSRequest(method, url, headers=dict(headers), data=body)
    SigV4Auth(keys, "execute-api", REGION).add_auth(request)
    return httpx.request(method, url, headers=dict(request.headers.items()), content=body, timeout=_SECONDS)


def client(service: str, endpoint: str) -> Any:
    """Return a client of one of the stack's services."""
    nothing = {"profile": (None, None, None, None), "config_file": (None, None, os.devnull, None)}
    return botocore.session.Session(session_vars=nothing).create_client(
        service,
        REGION,
        endpoint_url=endpoint,
        aws_access_key_id=_KEYS.access_key,
        aws_secret_access_key=_KEYS.secret_key,
    )
