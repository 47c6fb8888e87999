"""The Lambda entry point of the API in a process of its own: what it imports, what it logs."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from api_world import CONTEXT, ApiWorld, read, rest_event
from builders import a_request
from trainmaster.handlers.api.app import answer

HEAVY = (
    "boto3",
    "botocore.session",
    "botocore.model",
    "aws_xray_sdk",
    "moto",
    "trainmaster.client",
    "trainmaster.local",
)
SCRIPT = """
import json, sys
from types import SimpleNamespace
from trainmaster.handlers.api import app as api
heavy = [name for name in {heavy!r} if name in sys.modules]
context = SimpleNamespace(
    function_name="api", memory_limit_in_mb=1024, invoked_function_arn="arn", aws_request_id="lambda-request"
)
answer = api.handler(json.loads(sys.stdin.read()), context)
print(json.dumps({{"heavy": heavy, "answer": answer}}))
"""


@pytest.fixture(scope="module")
def lines():
    """Output of a process without any setting: its log, then its imports and its answer."""
    event = rest_event("POST", "/add-job", {"TrainingJobName": "a-secret-name"})
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(heavy=HEAVY)],
        input=json.dumps(event),
        capture_output=True,
        text=True,
        check=True,
        env={"POWERTOOLS_LOGGER_LOG_EVENT": "true", "LOG_LEVEL": "DEBUG"},
    )
    return [json.loads(line) for line in run.stdout.splitlines()]


def test_importing_it_needs_no_environment_and_nothing_heavy(lines):
    assert lines[-1]["heavy"] == []


def test_without_settings_it_fails_in_the_one_shape(lines):
    assert read(lines[-1]["answer"]).kind == (500, "InternalError", None)


def test_its_log_is_structured_and_has_the_request_but_not_its_body(lines):
    failed, answered = lines[:-1]
    assert failed["level"] == "ERROR"
    assert failed["text"].startswith("TRAINMASTER_QUEUE is not set: template.yaml sets it for the functions")
    assert {name: answered[name] for name in ("message", "method", "path", "status", "function_name")} == {
        "message": "answered",
        "method": "POST",
        "path": "/add-job",
        "status": 500,
        "function_name": "api",
    }
    for line in (failed, answered):
        assert line["correlation_id"] == "0aa1bb2c-request"
        assert line["service"] == "trainmaster"
    assert "a-secret-name" not in json.dumps(lines)


@pytest.mark.parametrize(
    ("path", "counted"), [("/add-job", True), ("/plan", False)], ids=["a submission", "only a question"]
)
def test_a_submission_is_counted(capsys, path, counted):
    world = ApiWorld()
    answer(lambda: world.app, rest_event("POST", path, a_request("job1")), CONTEXT)
    measured = [json.loads(line) for line in capsys.readouterr().out.splitlines() if '"_aws"' in line]
    assert [line["Submitted"] for line in measured] == [[1.0]] * counted
    again = answer(lambda: world.app, rest_event("POST", path, a_request("job1")), CONTEXT)
    assert again["statusCode"] == 200
    assert '"_aws"' not in capsys.readouterr().out
