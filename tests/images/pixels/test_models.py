"""Models behind SageMaker endpoints and URLs: what they are asked, and what their troubles mean."""

from __future__ import annotations

import http.server
import json
import logging
import threading

import httpx
import pytest
from botocore.config import Config

from aws_clients import aws_client
from spots import collection
from trainmaster.domain.errors import (
    InvalidRequest,
    NotPermitted,
    RequestRefused,
    ServiceError,
    Throttled,
    Unavailable,
)
from trainmaster.images.pixels.work.models import (
    MAX_ANSWER_LENGTH,
    HttpModel,
    RetryingModel,
    SageMakerModel,
    features_of,
    http_client,
    runtime_config,
)

BOX = collection([(1, 2, 13, 14)])
FROM_ZERO = (
    "Inference Component has no capacity to process this request. ApplicationAutoScaling may be in-progress (if "
    "configured) or try to increase the capacity by invoking UpdateInferenceComponentRuntimeConfig API."
)


class Endpoint(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        return

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        server = self.server
        server.asked.append((self.path, dict(self.headers), body))
        status, error, said = server.answers.pop(0) if server.answers else (200, None, json.dumps(BOX).encode())
        self.send_response(status)
        if error:
            self.send_header("x-amzn-errortype", error)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)


@pytest.fixture
def endpoint():
    """A stand-in of InvokeEndpoint; `answers` are status, error type and body of what comes next."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    server.asked, server.answers = [], []
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def runtime(endpoint):
    config = runtime_config().merge(Config(retries={"total_max_attempts": 1}))
    client = aws_client("sagemaker-runtime", endpoint_url=endpoint.url, config=config)
    yield client
    client.close()


@pytest.fixture
def browser():
    with httpx.Client(follow_redirects=False) as client:
        yield client


def test_an_endpoint_gets_the_tile_its_variant_and_what_the_request_passes_on(runtime, endpoint):
    parameters = {"TargetVariant": "asked", "CustomAttributes": "c", "TargetModel": "", "Nonsense": 1, "InferenceId": 7}
    model = SageMakerModel(runtime, "ships", parameters, variant="chosen", content_type="image/png")
    assert model.features(b"tile") == BOX["features"]
    ((path, headers, body),) = endpoint.asked
    assert path == "/endpoints/ships/invocations"
    assert body == b"tile"
    assert headers["Content-Type"] == "image/png"
    assert headers["X-Amzn-SageMaker-Target-Variant"] == "chosen"
    assert headers["X-Amzn-SageMaker-Custom-Attributes"] == "c"
    assert headers["X-Amzn-SageMaker-Inference-Id"] == "7"
    assert "X-Amzn-SageMaker-Target-Model" not in headers


@pytest.mark.parametrize("asked", [{}, {"TargetVariant": "asked"}])
def test_an_inference_component_is_at_one_variant_so_none_is_chosen_for_it(runtime, endpoint, asked):
    parameters = {"InferenceComponentName": "ships-v2", **asked}
    SageMakerModel(runtime, "ships", parameters, variant="chosen", content_type="image/png").features(b"tile")
    headers = endpoint.asked[0][1]
    assert headers["X-Amzn-SageMaker-Inference-Component"] == "ships-v2"
    assert headers.get("X-Amzn-SageMaker-Target-Variant") == asked.get("TargetVariant")


def test_a_content_type_of_the_requests_own_comes_first(runtime, endpoint):
    SageMakerModel(runtime, "ships", {"ContentType": "image/x"}, variant="", content_type="image/png").features(b"t")
    headers = endpoint.asked[0][1]
    assert headers["Content-Type"] == "image/x"
    assert "X-Amzn-SageMaker-Target-Variant" not in headers


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ((429, "ThrottlingException", {}), Throttled),
        ((429, "ModelNotReadyException", {}), Throttled),
        ((503, "ServiceUnavailable", {}), Throttled),
        ((424, "ModelError", {"OriginalStatusCode": 429}), Throttled),
        ((424, "ModelError", {"OriginalStatusCode": 503}), Throttled),
        ((424, "ModelError", {"OriginalStatusCode": 500}), Unavailable),
        ((424, "ModelError", {"OriginalStatusCode": 400}), RequestRefused),
        ((400, "ValidationError", {}), RequestRefused),
        ((400, "ValidationError", {"Message": FROM_ZERO}), Throttled),
        ((403, "AccessDeniedException", {}), NotPermitted),
        ((500, "InternalFailure", {}), Unavailable),
    ],
)
def test_an_endpoints_troubles_are_told_apart(runtime, endpoint, answer, kind):
    status, code, more = answer
    endpoint.answers = [(status, code, json.dumps({"Message": "told so", **more}).encode())]
    with pytest.raises(ServiceError, match=code) as caught:
        SageMakerModel(runtime, "ships", {}, variant="", content_type="image/png").features(b"tile")
    assert type(caught.value) is kind


@pytest.mark.parametrize(
    ("answer", "refused"),
    [
        ((429, "ModelNotReadyException", {}), 1),
        ((424, "ModelError", {"OriginalStatusCode": 500}), 1),
        ((424, "ModelError", {"OriginalStatusCode": 0}), 1),
        ((424, "ModelError", {"OriginalStatusCode": 400}), 0),
        ((403, "AccessDeniedException", {}), 0),
    ],
)
def test_w17_an_endpoint_that_is_too_busy_or_fails_is_heard_and_a_bad_tile_is_no_sign_of_it(
    runtime, endpoint, answer, refused
):
    status, code, more = answer
    endpoint.answers = [(status, code, json.dumps({"Message": "told so", **more}).encode())]
    model = SageMakerModel(runtime, "ships", {}, variant="", content_type="image/png")
    with pytest.raises(ServiceError):
        model.features(b"tile")
    model.features(b"tile")
    assert model.stats.counts() == (2, refused)


def test_w17_requests_that_botocore_repeats_by_itself_are_heard_too(endpoint):
    endpoint.answers = [(503, "ServiceUnavailable", b"{}")]
    at_once = Config(retries={"mode": "legacy", "total_max_attempts": 2}, tcp_keepalive=False)
    client = aws_client("sagemaker-runtime", endpoint_url=endpoint.url, config=runtime_config().merge(at_once))
    model = SageMakerModel(client, "ships", {}, variant="", content_type="image/png")
    assert model.features(b"tile") == BOX["features"]
    client.close()
    assert len(endpoint.asked) == 2
    assert model.stats.counts() == (2, 1)


def test_w17_each_try_of_a_url_is_heard(browser, endpoint):
    endpoint.answers = [(429, None, b"busy"), (502, None, b"down"), (200, None, json.dumps(BOX).encode())]
    model = RetryingModel(
        HttpModel(browser, endpoint.url, content_type="image/png"), wait=lambda _: False, spread=lambda: 0.5
    )
    assert model.features(b"tile") == BOX["features"]
    assert model.stats.counts() == (3, 2)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (429, Throttled),
        (503, Throttled),
        (500, Unavailable),
        (504, Unavailable),
        (400, RequestRefused),
        (403, NotPermitted),
    ],
)
def test_a_urls_troubles_are_told_apart(browser, endpoint, status, kind):
    endpoint.answers = [(status, None, b"no")]
    with pytest.raises(ServiceError, match=f"HTTP status {status}") as caught:
        HttpModel(browser, endpoint.url, content_type="image/png").features(b"tile")
    assert type(caught.value) is kind


def test_a_model_that_is_not_there_may_come_back(browser):
    with pytest.raises(Unavailable):
        HttpModel(browser, "http://127.0.0.1:9/", content_type="image/png").features(b"tile")


@pytest.mark.parametrize("url", ["http://user:s3cr3t@models.example:port/", "http://xn--zzzzzzz--.example/\x7f"])
def test_a_models_address_that_is_none_is_the_requests_fault(browser, url):
    with pytest.raises(InvalidRequest, match="URL is invalid") as caught:
        HttpModel(browser, url, content_type="image/png").features(b"tile")
    assert caught.value.field == "imageProcessor.name"
    assert "s3cr3t" not in str(caught.value)


def test_redirects_are_not_followed(browser, endpoint):
    endpoint.answers = [(302, None, b"")]
    with pytest.raises(RequestRefused):
        HttpModel(browser, endpoint.url, content_type="image/png").features(b"tile")
    assert len(endpoint.asked) == 1


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"<html>",
        b"[]",
        b"{}",
        b'{"features": 3}',
        b'{"features": [3]}',
        b'{"features": [], "x": NaN}',
        b'{"features": [], "x": -1e999}',
        b'{"features": [], "x": ' + b"9" * 5_000 + b"}",
        b"\xff\xfe",
        b"[" * 9_999,
    ],
)
def test_answers_other_than_feature_collections_are_rejected(said):
    with pytest.raises(RequestRefused, match="the model's answer"):
        features_of(said)


def test_an_answer_without_end_is_read_to_a_limit_and_refused(browser, runtime, endpoint):
    endpoint.answers = [(200, None, b" " * (MAX_ANSWER_LENGTH + 1))] * 2
    for model in (
        HttpModel(browser, endpoint.url, content_type="image/png"),
        SageMakerModel(runtime, "ships", {}, variant="", content_type="image/png"),
    ):
        with pytest.raises(RequestRefused, match="longer than"):
            model.features(b"tile")


class Busy:
    """Raises what it was given, then answers."""

    def __init__(self, *errors):
        self.errors = list(errors)
        self.calls = 0

    def features(self, tile):
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return []


def test_w8_what_may_pass_is_asked_again_after_growing_pauses():
    model, pauses = Busy(Throttled("busy"), Unavailable("down")), []
    patient = RetryingModel(model, wait=lambda seconds: bool(pauses.append(seconds)), spread=lambda: 0.5)
    assert patient.features(b"") == []
    assert pauses == [1.0, 2.0]


def test_patience_ends_after_so_many_tries_or_when_it_is_told_to():
    always = Busy(*[Throttled("busy")] * 9)
    with pytest.raises(Throttled):
        RetryingModel(always, wait=lambda _: False, spread=lambda: 0.5).features(b"")
    assert always.calls == 5
    stopped = Busy(*[Throttled("busy")] * 9)
    with pytest.raises(Throttled):
        RetryingModel(stopped, wait=lambda _: True, spread=lambda: 0.5).features(b"")
    assert stopped.calls == 1


def test_permanent_errors_are_not_retried():
    model = Busy(RequestRefused("no"))
    with pytest.raises(RequestRefused):
        RetryingModel(model, wait=lambda _: False, spread=lambda: 0.5).features(b"")
    assert model.calls == 1


def test_no_credentials_of_a_models_url_come_into_the_log(endpoint, caplog):
    caplog.set_level(logging.INFO)
    url = endpoint.url.replace("http://", "http://user:s3cr3t@") + "/model?token=s3cr3t"
    with http_client(loopback=True) as client:
        assert HttpModel(client, url, content_type="image/png").features(b"tile") == BOX["features"]
    assert "s3cr3t" not in caplog.text


def test_control_characters_in_a_models_error_are_removed(endpoint, browser):
    endpoint.answers = [(400, None, b"\x1b[2J\x1b]0;owned\x07\nFAKE LINE \xc2\x9b2J")]
    with pytest.raises(RequestRefused, match="FAKE LINE") as caught:
        HttpModel(browser, endpoint.url, content_type="image/png").features(b"tile")
    assert str(caught.value).isprintable()
