"""Calls of hook functions, and the reading of their answers."""

from __future__ import annotations

import io
import json

import pytest
from botocore.exceptions import ConnectTimeoutError, ReadTimeoutError
from botocore.response import StreamingBody
from botocore.stub import Stubber

from aws_clients import aws_client
from trainmaster.adapters.lambda_hook import LambdaResizeRequester
from trainmaster.domain.errors import NotPermitted, Throttled, Unavailable

TARGET = "arn:aws:lambda:us-east-1:111122223333:function:resize"
QUESTION = {"token": "t", "job": "job1", "to": 2}


@pytest.fixture
def client():
    return aws_client("lambda")


def returned(client, said, **more):
    """Result of the hook for a function's answer."""
    answer = {"StatusCode": 200, "Payload": StreamingBody(io.BytesIO(said), len(said)), **more}
    asked = {"FunctionName": TARGET, "InvocationType": "RequestResponse", "Payload": json.dumps(QUESTION).encode()}
    with Stubber(client) as script:
        script.add_response("invoke", answer, asked)
        found = LambdaResizeRequester(lambda: client).request_resize(TARGET, QUESTION)
        script.assert_no_pending_responses()
    return found


def test_the_functions_result_is_the_answer(client):
    assert returned(client, b'{"outcome": "done", "instances": 2}') == {"outcome": "done", "instances": 2}


@pytest.mark.parametrize("said", [b"", b"null", b'"done"', b"[1]", b"{", b"\xff"])
def test_a_result_other_than_an_object_is_no_answer_yet(client, said):
    assert returned(client, said) is None


def test_a_function_that_failed_is_asked_again(client):
    with pytest.raises(Unavailable, match="Unhandled"):
        returned(client, b'{"errorMessage": "no"}', FunctionError="Unhandled")


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("TooManyRequestsException", 429, Throttled),
        ("AccessDeniedException", 403, NotPermitted),
        ("ResourceNotFoundException", 404, Unavailable),
        ("ServiceException", 500, Unavailable),
    ],
)
def test_lambda_errors_become_domain_errors(client, code, status, kind):
    script = Stubber(client)
    script.add_client_error("invoke", code, http_status_code=status)
    with script, pytest.raises(kind):
        LambdaResizeRequester(lambda: client).request_resize(TARGET, QUESTION)


class Slow:
    """A client whose call ends in this error."""

    def __init__(self, error):
        self.error = error

    def invoke(self, **_):
        raise self.error(endpoint_url="https://lambda.test")


def test_a_function_that_takes_long_has_been_asked():
    assert LambdaResizeRequester(lambda: Slow(ReadTimeoutError)).request_resize(TARGET, QUESTION) is None


def test_one_that_was_not_reached_has_not():
    with pytest.raises(Unavailable):
        LambdaResizeRequester(lambda: Slow(ConnectTimeoutError)).request_resize(TARGET, QUESTION)
