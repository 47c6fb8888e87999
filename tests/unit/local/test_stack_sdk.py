"""The local stack's environment for programs of the SageMaker SDKs: plain botocore clients that a plugin adapts."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import botocore.session
import pytest

from trainmaster.local.stack import sdk
from trainmaster.local.stack.address import StackAddress, clean_environment

EMPTY = b"<Response><GetCallerIdentityResult/></Response>"


class Recorder(BaseHTTPRequestHandler):
    """Answers everything with 200 and keeps what was asked."""

    seen: list[tuple[str, str, dict[str, str]]]

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.seen.append((self.path, self.headers["Host"], dict(self.headers.items())))
        self.send_response(200)
        self.send_header("Content-Length", str(len(EMPTY)))
        self.end_headers()
        self.wfile.write(EMPTY)

    def do_POST(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[tuple[str, str, dict[str, str]]]]:
    handler = type("Handler", (Recorder,), {"seen": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        address = StackAddress(f"{url}/api", url, url, {}, sdk.settings(tmp_path))
        for name, value in {**address.environment(), "AWS_SESSION_TOKEN": ""}.items():
            monkeypatch.setenv(name, value)
        yield handler.seen
        server.shutdown()


def client(service: str, **options: str):
    return botocore.session.Session().create_client(service, "us-east-1", **options)


def test_a_client_that_names_awss_address_reaches_the_stack(stack):
    sts = client("sts", endpoint_url="https://sts.us-east-1.amazonaws.com")
    sts.get_caller_identity()
    ((path, host, _),) = stack
    assert (path, host) == ("/", "sts.us-east-1.amazonaws.com")


def test_a_client_that_names_another_address_keeps_it(stack):
    elsewhere = client("sts", endpoint_url="http://127.0.0.1:1")
    with pytest.raises(botocore.exceptions.EndpointConnectionError):
        elsewhere.get_caller_identity()
    assert stack == []


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"ServerSideEncryption": "aws:kms"}, "alias/aws/s3"),
        ({"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "own"}, "own"),
        ({}, None),
    ],
)
def test_an_upload_that_is_encrypted_with_no_key_names_the_default_one(stack, given, key):
    client("s3").put_object(Bucket="bucket", Key="key", Body=b"", **given)
    ((_, _, headers),) = stack
    assert {name.lower(): value for name, value in headers.items()}.get(
        "x-amz-server-side-encryption-aws-kms-key-id"
    ) == key


def test_the_sdks_settings_name_a_file_with_the_default_bucket_and_no_telemetry(tmp_path):
    settings = sdk.settings(tmp_path)
    config = json.loads(Path(settings["SAGEMAKER_USER_CONFIG_OVERRIDE"]).read_text())
    modules = config["SageMaker"]["PythonSDK"]["Modules"]
    assert modules == {"TelemetryOptOut": True, "Session": {"DefaultS3Bucket": sdk.DEFAULT_BUCKET}}
    assert settings["BOTOCORE_EXPERIMENTAL__PLUGINS"].partition("=")[2] in sys.modules
    assert clean_environment(settings) == {}, "the next stack inherits none of it"
