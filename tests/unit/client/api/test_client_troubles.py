"""Troubles between the client and the API: expired credentials, slow answers, hosts that are not there."""

import socket
import ssl
import threading
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest
from botocore.exceptions import (
    ClientError,
    CredentialRetrievalError,
    NoCredentialsError,
    SSOTokenLoadError,
    TokenRetrievalError,
    UnauthorizedSSOTokenError,
)

from trainmaster import ApiClient
from trainmaster.client.api.credentials import credentials_error, login_hint
from trainmaster.client.api.errors import Forbidden, Unreachable
from trainmaster.client.api.retry import Retry

_CONFIG = """\
[profile sso]
sso_session = corp
[profile login]
login_session = arn:aws:iam::111122223333:user/ann
[profile mfa]
mfa_serial = arn:aws:iam::111122223333:mfa/ann
[profile tool]
credential_process = granted creds
[profile keys]
region = us-east-1
"""


def _session(profile: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> boto3.session.Session:
    (tmp_path / "config").write_text(_CONFIG)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    return boto3.session.Session(profile_name=profile)


def _client(handler: Any, **options: Any) -> ApiClient:
    session = boto3.session.Session("AKIDEXAMPLE", "secret", region_name="us-east-1")
    retry = Retry(max_attempts=2, sleep=lambda _: None)
    transport = httpx.MockTransport(handler)
    return ApiClient("https://api.example/prod", session=session, transport=transport, retry=retry, **options)


@pytest.mark.parametrize(
    ("profile", "told"),
    [
        ("sso", "`aws sso login --profile sso`"),
        ("login", "`aws login --profile login`"),
        ("mfa", "MFA code"),
        ("tool", "`granted`"),
        ("keys", "`aws sso login --profile keys` or `aws login --profile keys`"),
    ],
)
def test_the_hint_is_the_command_of_the_profile(
    profile: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert told in login_hint(_session(profile, tmp_path, monkeypatch))


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (TokenRetrievalError(provider="sso", error_msg="gone"), "have expired"),
        (SSOTokenLoadError(error_msg="no token"), "have expired"),
        (UnauthorizedSSOTokenError(), "have expired"),
        (CredentialRetrievalError(provider="x", error_msg="y"), "have expired"),
        (NoCredentialsError(), "Unable to locate credentials"),
        (ClientError({"Error": {"Code": "ExpiredToken", "Message": "old"}}, "DescribeStacks"), "have expired"),
    ],
)
def test_errors_of_credentials_say_how_to_log_in(
    error: Exception, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = credentials_error(error, _session("sso", tmp_path, monkeypatch))
    assert known is not None
    assert told in known.message
    assert known.hint == "Log in again: `aws sso login --profile sso`."


def test_other_errors_are_not_about_credentials() -> None:
    assert credentials_error(ClientError({"Error": {"Code": "ValidationError"}}, "DescribeStacks"), None) is None


def test_credentials_that_expire_while_signing_are_forbidden() -> None:
    class Session:
        region_name = "us-east-1"
        profile = "sso"

        @property
        def _session(self) -> "Session":
            return self

        def get_scoped_config(self) -> dict[str, str]:
            return {"sso_start_url": "https://x"}

        def get_credentials(self) -> None:
            raise TokenRetrievalError(provider="sso", error_msg="gone")

    api = ApiClient("https://api.example/prod", session=Session(), transport=httpx.MockTransport(lambda _: None))  # type: ignore[arg-type]
    with pytest.raises(Forbidden, match="aws sso login --profile sso"):
        api.jobs()


def test_a_slow_answer_is_told_with_the_host_and_awaited() -> None:
    told: list[str] = []
    noticed = threading.Event()

    def on_wait(host: str) -> None:
        told.append(host)
        noticed.set()

    def handler(_: httpx.Request) -> httpx.Response:
        assert noticed.wait(10)
        return httpx.Response(200, json={"jobs": [], "nextCursor": None})

    with _client(handler, on_wait=on_wait, notice_seconds=0.01) as api:
        assert api.jobs()["jobs"] == []
    assert told == ["api.example"]


def test_a_prompt_answer_is_not_told() -> None:
    told: list[str] = []
    with _client(lambda _: httpx.Response(200, json={"jobs": []}), on_wait=told.append) as api:
        api.jobs()
    timers = [each for each in threading.enumerate() if isinstance(each, threading.Timer)]
    assert (told, [each for each in timers if not each.finished.is_set()]) == ([], [])


@pytest.mark.parametrize(
    ("cause", "told"),
    [
        (socket.gaierror(-2, "Name or service not known"), "No host of that name was found"),
        (ssl.SSLCertVerificationError("certificate verify failed"), "SSL_CERT_FILE"),
        (TimeoutError("timed out"), "reachable only from its VPC"),
    ],
)
def test_a_failed_connection_says_what_to_check(cause: Exception, told: str) -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError(str(cause), request=request) from cause

    with _client(handler) as api, pytest.raises(Unreachable, match=told):
        api.jobs()


def test_an_api_that_hangs_is_told_so() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        raise httpx.ReadTimeout("slow", request=request)

    with _client(handler) as api, pytest.raises(Unreachable, match=r"https://api\.example/prod did not answer in time"):
        api.jobs()
