"""Client and service tell each other their versions."""

from __future__ import annotations

import json
import logging
import random
from typing import Any

import boto3
import httpx
import pytest

from trainmaster import __version__
from trainmaster.client.api.client import ApiClient
from trainmaster.client.api.errors import Refused
from trainmaster.client.api.retry import Retry
from trainmaster.domain.release import VERSION_HEADER
from trainmaster.handlers.api.app import answer
from world import Context


class Answering:
    """An API that answers everything, and counts."""

    def __init__(self) -> None:
        self.count = 0

    def resolve(self, event: Any, context: Any) -> dict[str, Any]:
        self.count += 1
        return {"statusCode": 200, "body": "{}", "multiValueHeaders": {"Content-Type": ["application/json"]}}


def answered(headers: dict[str, str] | None) -> tuple[int, dict[str, Any], dict[str, Any]]:
    event = {"httpMethod": "GET", "path": "/jobs", "headers": headers, "requestContext": {"requestId": "r1"}}
    made = answer(Answering, event, Context())  # type: ignore[arg-type]
    return made["statusCode"], made["multiValueHeaders"], json.loads(made["body"])


@pytest.mark.parametrize("headers", [None, {}, {VERSION_HEADER: __version__}, {"X-Trainmaster-Version": "99.0.0"}])
def test_every_response_has_the_version_of_the_service(headers):
    status, sent, _ = answered(headers)
    assert (status, sent[VERSION_HEADER]) == (200, [__version__])


def test_a_client_that_is_too_old_is_refused_with_the_versions():
    status, sent, body = answered({"X-Trainmaster-Version": "0.0.1"})
    assert (status, sent[VERSION_HEADER]) == (426, [__version__])
    assert body["error"]["type"] == "ClientTooOld"
    assert "0.0.1" in body["error"]["message"]


def a_client(version: str | None, status: int = 200, body: Any = None) -> tuple[ApiClient, list[httpx.Request]]:
    requests: list[httpx.Request] = []

    def respond(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        headers = {} if version is None else {VERSION_HEADER: version}
        return httpx.Response(status, json=body or {}, headers=headers)

    session = boto3.session.Session("AKIDEXAMPLE", "secret", region_name="us-east-1")
    retry = Retry(max_attempts=1, sleep=lambda _: None, rng=random.Random(1))
    client = ApiClient(
        "https://api.test/prod", session=session, transport=httpx.MockTransport(respond), retry=retry, environ={}
    )
    return client, requests


def test_the_client_sends_its_version_and_keeps_that_of_the_service():
    client, requests = a_client("0.2.7")
    with client:
        client.manager()
    assert requests[0].headers[VERSION_HEADER] == __version__
    assert client.service_version == "0.2.7"


@pytest.mark.parametrize(("version", "warnings"), [("99.0.0", 1), ("0.0.1", 1), (__version__, 0), (None, 0)])
def test_users_are_warned_once_of_a_service_that_does_not_fit(version, warnings, caplog):
    client, _ = a_client(version, body={"pools": []})
    with client, caplog.at_level(logging.WARNING):
        client.manager()
        client.pools()
    assert len([line for line in caplog.records if line.name == "trainmaster.client.api.client"]) == warnings


def test_a_refusal_for_the_version_says_what_to_do():
    error = {"type": "ClientTooOld", "message": "too old", "field": None, "hint": "pip install --upgrade trainmaster"}
    client, _ = a_client("9.0.0", 426, {"error": error})
    with client, pytest.raises(Refused, match="pip install --upgrade"):
        client.manager()
