"""The one translation: what botocore raises, with and without an answer from AWS."""

from __future__ import annotations

import pytest
from botocore import exceptions
from botocore.awsrequest import AWSResponse
from botocore.config import Config

from aws_clients import aws_client
from trainmaster.adapters.aws_errors import (
    AWS_ERRORS,
    code_of,
    message_of,
    to_domain_error,
    to_retryable_error,
    translate_errors,
)
from trainmaster.domain.errors import CapacityExhausted, NotPermitted, RequestRefused, Throttled, Unavailable

URL = "https://sqs.us-east-1.amazonaws.com/"


class Raw:
    """Response body as urllib3 hands it over."""

    def __init__(self, body):
        self.body = body

    def stream(self, **_):
        yield self.body


def a_client(on_send):
    """A real client whose requests end at `on_send`, which answers or raises."""
    client = aws_client("sagemaker", config=Config(retries={"mode": "standard", "total_max_attempts": 1}))
    client.meta.events.register("before-send.sagemaker", on_send)
    return client


def error_of(on_send):
    with pytest.raises(AWS_ERRORS) as caught:
        a_client(on_send).list_training_jobs()
    return caught.value


def answer(status, body, headers=None):
    return error_of(lambda **_: AWSResponse(URL, status, headers or {}, Raw(body)))


def silence(error):
    def on_send(**_):
        raise error

    return error_of(on_send)


@pytest.mark.parametrize(
    "error",
    [
        exceptions.ConnectTimeoutError(endpoint_url=URL),
        exceptions.ReadTimeoutError(endpoint_url=URL),
        exceptions.EndpointConnectionError(endpoint_url=URL),
        exceptions.ConnectionClosedError(endpoint_url=URL),
        exceptions.SSLError(endpoint_url=URL, error="handshake"),
        exceptions.ProxyConnectionError(proxy_url=URL),
        exceptions.HTTPClientError(error="broken"),
        exceptions.CredentialRetrievalError(provider="role", error_msg="timed out"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_silence_is_unavailable(error):
    found = to_domain_error(silence(error))
    assert type(found) is Unavailable
    assert str(found).startswith(type(error).__name__)


@pytest.mark.parametrize(
    "error",
    [exceptions.NoCredentialsError(), exceptions.PartialCredentialsError(provider="env", cred_var="x")],
    ids=lambda error: type(error).__name__,
)
def test_missing_credentials_are_a_missing_permission(error):
    assert type(to_domain_error(silence(error))) is NotPermitted


def test_botocores_own_check_is_a_refusal():
    assert type(to_domain_error(exceptions.ParamValidationError(report="bad"))) is RequestRefused


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (500, b"", Unavailable),
        (503, b"<html>Service Unavailable</html>", Unavailable),
        (504, b"", Unavailable),
        (429, b"", Throttled),
        (403, b'{"message":"no"}', NotPermitted),
        (400, b'{"__type":"ThrottlingException","message":"Rate exceeded"}', Throttled),
        (400, b'{"__type":"com.amazon#ResourceLimitExceeded","Message":"full"}', CapacityExhausted),
        (400, b'{"__type":"ValidationException","message":"bad"}', RequestRefused),
    ],
)
def test_answers_are_read_as_botocore_reads_them(status, body, kind):
    assert type(to_domain_error(answer(status, body))) is kind


def test_code_and_message_are_kept():
    error = answer(400, b'{"__type":"ValidationException","message":"too long"}')
    assert (code_of(error), message_of(error)) == ("ValidationException", "too long")
    assert str(to_domain_error(error)) == "ValidationException: too long"


def test_without_an_answer_there_is_no_code():
    error = exceptions.ReadTimeoutError(endpoint_url=URL)
    assert code_of(error) == ""
    assert message_of(error) == str(error)


@pytest.mark.parametrize("code", ["ValidationException", "ResourceLimitExceeded", "Unheard"])
def test_calls_without_a_no_have_three_kinds_of_trouble(code):
    error = answer(400, b'{"__type":"%s","message":"x"}' % code.encode())
    assert type(to_retryable_error(error)) is Unavailable
    assert str(to_retryable_error(error)) == f"{code}: x"


def test_translated_keeps_the_cause_and_lets_others_pass():
    cause = exceptions.ReadTimeoutError(endpoint_url=URL)
    with pytest.raises(Unavailable) as caught, translate_errors():
        raise cause
    assert caught.value.__cause__ is cause
    with pytest.raises(ZeroDivisionError), translate_errors():
        raise ZeroDivisionError
