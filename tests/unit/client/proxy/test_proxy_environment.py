"""The environment of a command whose SDKs call the endpoint."""

from __future__ import annotations

from typing import Any

import botocore.session
import pytest

from trainmaster.client.api.errors import NotConfigured
from trainmaster.proxy.environment import command_environment

URLS = {"sagemaker": "http://127.0.0.1:1/t/sagemaker", "batch": "http://127.0.0.1:1/t/batch"}
OWN = {
    "AWS_ENDPOINT_URL_SAGEMAKER": URLS["sagemaker"],
    "AWS_ENDPOINT_URL_BATCH": URLS["batch"],
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "false",
}
KEYS = {"AWS_ACCESS_KEY_ID": "AK", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "t"}


def made(environ: dict[str, str], settings: dict[str, Any] | None = None, **options: Any) -> dict[str, str]:
    return command_environment(environ, URLS, settings or {}, **options)


def test_the_rest_of_the_environment_stays() -> None:
    others = {"PATH": "/bin", "AWS_ENDPOINT_URL": "http://a", "AWS_ENDPOINT_URL_S3": "http://b", **KEYS}
    assert made({**others, "AWS_ENDPOINT_URL_SAGEMAKER": "http://c"}) == others | OWN


def test_an_option_for_the_profile_or_the_region_holds_for_the_command() -> None:
    """Keys of the environment, and AWS_DEFAULT_PROFILE, would come before AWS_PROFILE."""
    environ = {**KEYS, "AWS_DEFAULT_PROFILE": "a", "AWS_PROFILE": "b", "AWS_REGION": "c"}
    region = {"AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "eu-west-1"}
    assert made(environ, profile="p", region="eu-west-1") == {"AWS_PROFILE": "p", **region, **OWN}
    assert made(environ) == environ | OWN


PROXY = "http://proxy.example:3128"


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, {}),
        ({"NO_PROXY": "a"}, {}),
        ({"HTTPS_PROXY": PROXY}, {}),
        ({"HTTP_PROXY": PROXY}, {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}),
        ({"http_proxy": PROXY, "NO_PROXY": "a,b"}, {"NO_PROXY": "a,b,127.0.0.1", "no_proxy": "a,b,127.0.0.1"}),
        ({"all_proxy": PROXY, "no_proxy": "127.0.0.1"}, {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}),
        ({"ALL_PROXY": PROXY, "no_proxy": "*"}, {"NO_PROXY": "*", "no_proxy": "*"}),
    ],
    ids=str,
)
def test_no_proxy_stands_between_the_command_and_the_endpoint(
    environ: dict[str, str], expected: dict[str, str]
) -> None:
    assert made(environ) == environ | OWN | expected


@pytest.mark.parametrize(
    ("environ", "settings"),
    [
        ({"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"}, {}),
        ({"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "True"}, {"ignore_configured_endpoint_urls": "false"}),
        ({}, {"ignore_configured_endpoint_urls": "true"}),
    ],
)
def test_addresses_that_were_ignored_stay_so(environ: dict[str, str], settings: dict[str, str]) -> None:
    others = {"AWS_ENDPOINT_URL": "http://a", "AWS_ENDPOINT_URL_S3": "http://b"}
    assert made(environ | others, settings) == OWN
    for name, value in (("endpoint_url", "http://a"), ("services", "local")):
        with pytest.raises(NotConfigured, match=name):
            made(environ, settings | {name: value})


def test_addresses_that_were_heeded_stay_so() -> None:
    environ = {"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "false", "AWS_ENDPOINT_URL_S3": "http://b"}
    settings = {"ignore_configured_endpoint_urls": "true", "endpoint_url": "http://a"}
    assert made(environ, settings) == environ | OWN


def test_an_sdk_follows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    environ = {
        "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true",
        "AWS_ENDPOINT_URL": "http://a",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    for name in ("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in made(environ).items():
        monkeypatch.setenv(name, value)
    session = botocore.session.Session()
    session.set_credentials("AK", "s")
    urls = {service: session.create_client(service).meta.endpoint_url for service in ("sagemaker", "batch", "s3")}
    assert urls == URLS | {"s3": "https://s3.amazonaws.com"}
