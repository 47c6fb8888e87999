"""Wrong addresses, Regions, profiles and credentials: each message names what is wrong and what to do, in one line."""

import json
import os
import random
import re
import shlex
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner
from werkzeug.serving import make_server
from werkzeug.wrappers import Request, Response

from trainmaster.cli.common.context import ApiTarget, CliContext, connect
from trainmaster.cli.program import build
from trainmaster.client.api.client import ApiClient
from trainmaster.client.api.retry import Retry

GATEWAY = "https://abc.execute-api.us-east-1.amazonaws.com"
NOT_ALLOWED = "User: arn:aws:iam::111122223333:user/ann is not authorized to perform: execute-api:Invoke on resource: *"
NO_STACK = (
    "<ErrorResponse><Error><Type>Sender</Type><Code>ValidationError</Code>"
    "<Message>Stack with id nope does not exist</Message></Error></ErrorResponse>"
)
STACK_WITHOUT_OUTPUTS = (
    "<DescribeStacksResponse><DescribeStacksResult><Stacks><member><StackName>other</StackName></member></Stacks>"
    "</DescribeStacksResult></DescribeStacksResponse>"
)
ANSWERS: Mapping[str, tuple[int, str]] = {
    "page": (200, "<html>Welcome</html>"),
    "other": (200, json.dumps({"Items": []})),
    "list": (200, "[]"),
    "moved": (302, ""),
    "no-stage": (403, json.dumps({"message": "Missing Authentication Token"})),
    "unknown": (404, json.dumps({"message": "Not Found"})),
    "forbidden": (403, json.dumps({"message": "Forbidden"})),
    "not-allowed": (403, json.dumps({"Message": NOT_ALLOWED})),
    "invalid": (403, json.dumps({"message": "The security token included in the request is invalid."})),
    "expired": (403, json.dumps({"message": "The security token included in the request is expired"})),
    "clock": (403, json.dumps({"message": "Signature expired: 20261123T08Z is now earlier than 20261123T09Z"})),
    "broken": (500, json.dumps({"message": "Internal server error"})),
    "busy": (429, json.dumps({"message": "Too Many Requests"})),
}
"""Answers of servers by the first part of their paths; any other is that of CloudFormation."""
PROFILES = """
[profile team]
region = eu-west-1
sso_session = corp
sso_account_id = 111122223333
sso_role_name = trainer

[sso-session corp]
sso_region = eu-west-1
sso_start_url = https://corp.awsapps.com/start

[profile nowhere]
aws_access_key_id = AK
aws_secret_access_key = secret

[profile lost]
region = us-east-1
role_arn = arn:aws:iam::111122223333:role/trainer
source_profile = gone
"""
KEYS = {"AWS_ACCESS_KEY_ID": "AK", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}
NO_ENDPOINT = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_MAX_ATTEMPTS": "1"}
URL = "Check that the URL is that of Trainmaster's API with its stage"

Call = tuple[str, Mapping[str, str], int, str, str]
CALLS: tuple[Call, ...] = (
    # an address that is none, or not of this machine
    (
        "ls --api-url abc.execute-api.us-east-1.amazonaws.com/prod",
        KEYS,
        2,
        "not a valid API URL",
        "begins with https://",
    ),
    ("ls --api-url 'https://a b/prod'", KEYS, 2, "'https://a b/prod' is not a valid", "(--api-url"),
    (f"ls --api-url {GATEWAY}/prod?stage=1", KEYS, 2, "not a valid API URL", "ends in the stage"),
    ("ls", KEYS | {"TRAINMASTER_API_URL": "prod"}, 2, "'prod' is not a valid", "TRAINMASTER_API_URL"),
    (f"ls --api-url {GATEWAY.replace('https', 'http')}/prod", KEYS, 2, "unencrypted", "Use https://"),
    ("ls --api-url https://nosuch.invalid/prod", KEYS, 6, "Could not connect to https://nosuch", "Check the URL"),
    ("ls --api-url http://127.0.0.1:9/prod", KEYS, 6, "Could not connect to http://127.0.0.1:9", "`make stack`"),
    ("ls --api-url {tls}/prod", KEYS, 6, "Could not connect to https://", "Check the URL"),
    # an address of another service
    ("ls --api-url {server}/page", KEYS, 6, "did not return JSON", URL),
    ("ls --api-url {server}/other", KEYS, 6, "another service's JSON", URL),
    ("ls --api-url {server}/list", KEYS, 6, "another service's JSON", URL),
    ("ls --api-url {server}/moved", KEYS, 6, "it returned 302", URL),
    ("ls --api-url {server}/no-stage", KEYS, 6, "is no route of an API", URL),
    ("ls --api-url {server}/unknown", KEYS, 6, "it returned 404 Not Found", URL),
    # no permission, and wrong signatures
    ("ls --api-url {server}/forbidden", KEYS, 5, "Forbidden.", "allows execute-api:Invoke"),
    ("ls --api-url {server}/not-allowed", KEYS, 5, "user/ann is not authorized", "Ask an administrator"),
    ("ls --api-url {server}/invalid", KEYS, 5, "token included in the request is invalid", "Log in again"),
    ("ls --api-url {server}/expired", KEYS, 5, "credentials have expired", "Log in again"),
    ("ls --api-url {server}/clock", KEYS, 5, "Signature expired", "Set this machine's clock"),
    ("ls --api-url {server}/broken", KEYS, 6, "returned 500", "Try again later"),
    ("ls --api-url {server}/busy", KEYS, 6, "returned 429", "Try again later"),
    # stacks
    ("ls --stack nope", KEYS | {"AWS_ENDPOINT_URL": "{server}"}, 2, "There is no stack 'nope' in us-east-1", "--stack"),
    ("ls --stack other", KEYS | {"AWS_ENDPOINT_URL": "{server}/outputs"}, 2, "has no output ApiUrl", "Pass the URL"),
    ("ls", {"AWS_ACCESS_KEY_ID": "AK", "AWS_SECRET_ACCESS_KEY": "s"}, 2, "must specify a region", "--region"),
    # Regions
    ("ls --region 'us east 1' --stack nope", KEYS, 2, "'us east 1' doesn't match", "Check that us east 1"),
    (
        "ls --stack nope --region us-eest-1",
        KEYS | NO_ENDPOINT,
        2,
        "Could not read the API's",
        "Did you mean us-east-1?",
    ),
    ("ls --stack nope", KEYS | NO_ENDPOINT, 2, "Could not read the API's", "Check that us-east-1"),
    ("ls --api-url {server}/page --profile nowhere", {}, 2, "No AWS Region is configured", "--region"),
    # profiles and credentials
    ("ls --profile nope", {}, 2, "The config profile (nope) could not be found", "`aws configure list-profiles`"),
    ("ls", {"AWS_PROFILE": "nope"}, 2, "The config profile (nope) could not be found", "`aws configure list-profiles`"),
    ("ls --profile lost --api-url {server}/page", {}, 2, 'source_profile "gone"', "Mend it in ~/.aws/config"),
    ("ls --profile team --api-url {server}/page", {}, 5, "have expired", "`aws sso login --profile team`"),
    ("ls --api-url {server}/page --region us-east-1", {}, 5, "No AWS credentials were found", "`aws sso login`"),
    ("submit job.json --profile team --api-url {server}/page", {}, 5, "have expired", "`aws sso login --profile team`"),
    ("version --profile nope", {}, 2, "The config profile (nope) could not be found", "`aws configure list-profiles`"),
)


@Request.application
def answer(request: Request) -> Response:
    """Answer as the server that the path names."""
    first = request.path.split("/")[1]
    if first == "outputs":
        return Response(STACK_WITHOUT_OUTPUTS, content_type="text/xml")
    status, text = ANSWERS.get(first, (400, NO_STACK))
    return Response(text, status=status, headers={"location": "https://signin.aws.amazon.com"} if status == 302 else {})


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of the servers."""
    found = make_server("127.0.0.1", 0, answer, threaded=True)
    thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{found.server_port}"
    found.shutdown()
    thread.join()
    found.server_close()


def _impatient(target: ApiTarget, environ: Mapping[str, str]) -> ApiClient:
    """Connect as the program does, with retries that do not wait."""
    api = connect(target, environ)
    api._retry = Retry(max_attempts=2, sleep=lambda _: None, rng=random.Random(1))
    return api


@pytest.fixture
def _configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No AWS configuration but the profiles, in a folder with a request."""
    (tmp_path / "config").write_text(PROFILES)
    (tmp_path / "job.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith(("AWS_", "TRAINMASTER_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.mark.usefixtures("_configured")
@pytest.mark.parametrize("call", CALLS, ids=[f"{call[0]} {call[3][:20]}" for call in CALLS])
def test_a_wrong_connection_is_told_in_one_line(call: Call, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    line, environ, code, wrong, remedy = call
    places = {"server": server, "tls": server.replace("http:", "https:")}
    for name, value in environ.items():
        monkeypatch.setenv(name, value.format(**places))
    words, context = shlex.split(line.format(**places)), CliContext(connect=_impatient)
    result = CliRunner().invoke(build(), words, obj=context, prog_name="trainmaster")
    assert result.exit_code == code, (result.stdout, result.stderr, result.exception)
    [error] = result.stderr.splitlines()
    assert error.startswith("Error: ")
    assert wrong in error
    assert remedy in error
    assert not re.search(r"Traceback|codec|\bfield\b", error)


def test_the_calls_use_every_answer() -> None:
    used: set[Any] = set(re.findall(r"\{server\}/([\w-]+)", " ".join(call[0] for call in CALLS)))
    assert used == set(ANSWERS)
