"""`trainmaster --version` and `trainmaster version`: with a service, without one, and with one that does not answer."""

from __future__ import annotations

import json
import random
import threading
from typing import Any

import httpx
import pytest

from aws_clients import aws_session
from cli_terminal import Terminal
from trainmaster import __version__
from trainmaster.cli.common.context import CliContext
from trainmaster.cli.queue.versions import quick_lines
from trainmaster.client.api.client import ApiClient
from trainmaster.client.api.retry import Retry
from trainmaster.domain.release import VERSION, VERSION_HEADER

AT = {"TRAINMASTER_API_URL": "https://api.test/prod"}
OWN = f"trainmaster {__version__}\n"
TOGETHER = "Client and service work together."


def a_terminal(service: str | None, status: int = 200, environ: dict[str, str] | None = None) -> Terminal:
    """A terminal whose service has this version; None for a network that is away."""

    def respond(_: httpx.Request) -> httpx.Response:
        if service is None:
            raise httpx.ConnectError("no network")
        error = {"error": {"type": "AccessDenied", "message": "no", "field": None, "hint": None}}
        body: Any = {"pause": None, "restore": None} if status == 200 else error
        return httpx.Response(status, json=body, headers={VERSION_HEADER: service})

    session = aws_session(aws_access_key_id="AKIDEXAMPLE", aws_secret_access_key="secret", region_name="us-east-1")
    retry = Retry(max_attempts=2, sleep=lambda _: None, rng=random.Random(1))
    transport = httpx.MockTransport(respond)
    client = ApiClient("https://api.test/prod", session=session, transport=transport, retry=retry, environ={})
    return Terminal(client, environ=AT if environ is None else environ)


@pytest.mark.parametrize("status", [200, 403])
def test_the_option_shows_the_service_and_whether_both_work_together(status: int) -> None:
    assert a_terminal(VERSION, status)("--version").stdout == f"{OWN}service {VERSION}\n{TOGETHER}\n"


@pytest.mark.parametrize("service", ["0.0.1", "99.0.0"])
def test_the_option_says_what_to_do_about_versions_that_do_not_fit(service: str) -> None:
    lines = a_terminal(service)("--version").stdout.splitlines()
    assert lines[1] == f"service {service}"
    assert "pdate" in lines[2]


def test_the_option_needs_no_network() -> None:
    assert a_terminal(None)("--version").stdout == OWN


def test_the_option_asks_nothing_without_an_address() -> None:
    assert a_terminal(VERSION, environ={})("--version").stdout == OWN


@pytest.mark.parametrize("place", ["before", "after"])
def test_the_option_takes_the_address_of_the_command_line(place: str) -> None:
    address = ("--api-url", "https://api.test/prod")
    words = (*address, "--version") if place == "before" else ("--version", *address)
    assert f"service {VERSION}" in a_terminal(VERSION, environ={})(*words).stdout


def test_the_option_does_not_wait_for_a_service_that_hangs() -> None:
    over = threading.Event()

    def hang(*_: object) -> ApiClient:
        over.wait(60)
        raise ValueError("too late")

    try:
        assert quick_lines(CliContext(connect=hang, environ=AT), seconds=0.05) == []
    finally:
        over.set()


def test_the_command_shows_both_as_text_and_as_json() -> None:
    run = a_terminal("99.0.0")
    assert run("version").stdout.splitlines()[:2] == [f"client {__version__}", "service 99.0.0"]
    shown = json.loads(run("version", "--json").stdout)
    assert (shown["client"], shown["service"], shown["compatible"]) == (__version__, "99.0.0", False)
    assert "Update" in shown["problem"]
    fits = json.loads(a_terminal(VERSION)("version", "--json").stdout)
    assert fits == {"client": __version__, "service": VERSION, "compatible": True, "problem": None}


def test_the_command_fails_without_a_service() -> None:
    assert a_terminal(None)("version").exit_code != 0
