"""Attacks on the endpoint: other users of the machine, web pages, and requests that would lead elsewhere."""

from __future__ import annotations

import json
import logging
import socket
from typing import Any

import pytest
from client_world import World, request_for
from proxy_wire import Aws, Wire, authorization

from trainmaster.proxy.app import MAX_BODY_BYTES

CREATE = {"Authorization": authorization(), "X-Amz-Target": "SageMaker.CreateTrainingJob"}
BODY = json.dumps(request_for("job1")).encode()


@pytest.fixture(autouse=True)
def nothing_happens(wire: Wire, world: World, aws: Aws) -> Any:
    """No attack reaches the queue or AWS."""
    yield
    assert (world.calls, aws.requests) == ([], [])


def test_it_listens_on_loopback_only(wire: Wire) -> None:
    assert wire.proxy.server.socket.getsockname()[0] == "127.0.0.1"
    assert wire.proxy.server.socket.family == socket.AF_INET


def test_a_token_cannot_be_guessed(wire: Wire) -> None:
    token = wire.path().split("/")[1]
    assert len(token) >= 43
    assert wire.path("batch").split("/")[1] == token


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize(
    "path", ["/", "/sagemaker/", "//sagemaker/", "/x/sagemaker/", "/%00/sagemaker/", "/%ff/batch/v1/tags/a"]
)
def test_without_the_token_nothing_is_answered(wire: Wire, method: str, path: str) -> None:
    assert wire.ask(f"{method} {path}", BODY, CREATE).status in (400, 403)


@pytest.mark.parametrize("changed", [lambda token: token[:-1], lambda token: token + "A", str.swapcase, lambda _: ""])
def test_a_similar_token_is_none(wire: Wire, changed: Any) -> None:
    token = wire.path().split("/")[1]
    assert wire.ask(f"POST /{changed(token)}/sagemaker/", BODY, CREATE).status == 403


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost",
        "[::1]:{port}",
        "169.254.169.254",
        "",
    ],
)
def test_a_name_that_resolves_to_this_machine_does_not_lead_here(wire: Wire, host: str) -> None:
    """A page that binds its own name to 127.0.0.1 has that name in the header Host."""
    given = host.format(port=wire.proxy.server.server_port) or " "
    answer = wire.ask(f"POST {wire.path()}/", BODY, CREATE, host=given)
    assert answer.status == 403
    assert "--allowed-host" not in answer.content.decode()


@pytest.mark.parametrize(
    "header",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:{port}"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_no_web_page_is_answered(wire: Wire, header: dict[str, str]) -> None:
    """Not even one of this origin: the endpoint has none."""
    given = {name: value.format(port=wire.proxy.server.server_port) for name, value in header.items()}
    assert wire.ask(f"POST {wire.path()}/", BODY, CREATE | given).status == 403


def test_answers_are_for_no_web_page(wire: Wire) -> None:
    headers = wire.ask("GET /", headers={"Origin": "https://evil.example"}).headers
    assert not [name for name in headers if name.startswith("access-control")]
    assert "Python" not in headers["server"]


@pytest.mark.parametrize("method", ["OPTIONS", "HEAD", "TRACE", "CONNECT", "PROPFIND"])
def test_other_methods_are_refused(wire: Wire, method: str) -> None:
    assert wire.ask(f"{method} {wire.path()}/", headers=CREATE).status == 501


@pytest.mark.parametrize(
    ("service", "method"), [("sagemaker", "GET"), ("sagemaker", "DELETE"), ("batch", "PUT"), ("batch", "PATCH")]
)
def test_methods_that_a_service_does_not_have_are_refused(wire: Wire, service: str, method: str) -> None:
    assert wire.ask(f"{method} {wire.path(service)}/", headers=CREATE).status in (400, 405)


def test_a_large_body_is_refused_before_it_is_read(wire: Wire) -> None:
    length = {"Content-Length": str(MAX_BODY_BYTES + 1)}
    assert wire.ask(f"POST {wire.path()}/", headers=CREATE | length).status == 413


def test_a_stranger_cannot_have_a_body_read(wire: Wire) -> None:
    """The body that is announced never comes: an endpoint that waited for it would answer after ten seconds."""
    length = {"Content-Length": str(MAX_BODY_BYTES)}
    assert wire.ask("POST /x/sagemaker/", headers=CREATE | length).status == 403


def test_bodies_are_not_chunked(wire: Wire) -> None:
    assert wire.ask(f"POST {wire.path()}/", headers=CREATE | {"Transfer-Encoding": "chunked"}).status == 411


@pytest.mark.parametrize("path", ["../x", "%2e%2e/x", "v1/../../x", "v1/%2e%2e/tags", "./v1"])
@pytest.mark.parametrize("service", ["sagemaker", "batch"])
def test_no_path_leads_elsewhere(wire: Wire, service: str, path: str) -> None:
    assert wire.ask(f"POST {wire.path(service)}/{path}", b"{}", CREATE).status == 400


@pytest.mark.parametrize("target", ["http://evil.example/", "http://{host}{path}/", "*", "evil.example:443"])
def test_it_is_no_proxy_of_other_addresses(wire: Wire, target: str) -> None:
    line = target.format(host=wire.host, path=wire.path())
    assert wire.ask(f"POST {line}", BODY, CREATE).status == 400


@pytest.mark.parametrize("service", ["s3", "sts", "", "SAGEMAKER", "sagemaker%2f..%2fbatch"])
def test_other_services_are_not_served(wire: Wire, service: str) -> None:
    assert wire.ask(f"POST {wire.path().rpartition('/')[0]}/{service}", BODY, CREATE).status == 404


def test_another_protocol_cannot_slip_past_the_queue(wire: Wire) -> None:
    """An operation that is not understood could be one of the queue."""
    cbor = {"smithy-protocol": "rpc-v2-cbor", "Content-Type": "application/cbor", "Authorization": authorization()}
    assert wire.ask(f"POST {wire.path()}/service/SageMaker/operation/CreateTrainingJob", b"\xa0", cbor).status == 400
    assert wire.ask(f"POST {wire.path()}/?Action=CreateTrainingJob", b"{}", CREATE).status == 400
    other = {"X-Amz-Target": "Kinesis.CreateTrainingJob"}
    assert wire.ask(f"POST {wire.path()}/", b"{}", CREATE | other).status == 400


def test_neither_the_token_nor_credentials_are_logged(wire: Wire, caplog: pytest.LogCaptureFixture, capfd: Any) -> None:
    token = wire.path().split("/")[1]
    with caplog.at_level(logging.DEBUG):
        wire.ask(f"POST /{token}x/sagemaker/", BODY, CREATE | {"X-Amz-Security-Token": "of-the-program"})
        wire.ask(f"BAD {wire.path()}", BODY, CREATE)
        wire.call("CreateTrainingJob", b"{", X_Amz_Security_Token="of-the-program")
    told = caplog.text + "".join(capfd.readouterr())
    assert [secret for secret in (token, "of-the-program", "secret", "Signature") if secret in told] == []
