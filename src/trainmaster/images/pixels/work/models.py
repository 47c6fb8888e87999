"""Clients of models, behind a SageMaker endpoint or a URL: they send a tile and return GeoJSON features.

Throttling is an error of its own (`Throttled`), so that the endpoint's target can be lowered.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Collection, Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Any, Protocol

import httpx
from botocore.config import Config
from botocore.exceptions import ClientError

from trainmaster.adapters.aws_errors import AWS_ERRORS, AwsError, code_of, message_of, to_domain_error
from trainmaster.domain.errors import (
    InvalidRequest,
    NotPermitted,
    RequestRefused,
    ServiceError,
    Throttled,
    Unavailable,
)
from trainmaster.domain.text import one_line
from trainmaster.images.domain.urls import without_secrets_of
from trainmaster.images.pixels.http.connection import PublicOnly
from trainmaster.images.pixels.http.url_policy import Resolver, addresses
from trainmaster.images.pixels.work.request_stats import RequestStats

if TYPE_CHECKING:
    from botocore.client import BaseClient

log = logging.getLogger(__name__)

Feature = dict[str, Any]
"""A GeoJSON Feature."""

PASSED_ON = frozenset(
    {
        "Accept",
        "ContentType",
        "CustomAttributes",
        "EnableExplanations",
        "InferenceComponentName",
        "InferenceId",
        "SessionId",
        "TargetContainerHostname",
        "TargetModel",
        "TargetVariant",
    }
)
"""Members of `imageProcessorParameters` that InvokeEndpoint takes; others are dropped, as ModelRunner does."""
ANSWER_TIME = 60
"""Maximum seconds of an answer (SageMaker, "InvokeEndpoint")."""
MAX_ANSWER_LENGTH = 64 * 1024 * 1024
"""Maximum bytes of an answer; SageMaker's own limit is lower. All of a worker's threads may have one at a time."""
MAX_ERROR_LENGTH = 500
"""Characters of a model's error message that are kept."""
MAX_CALLS = 5
"""Calls of a model for one tile, in all, while it is busy or fails."""
FIRST_PAUSE_SECONDS = 1.0
"""Pause before the second call; doubled for each further one."""
_SLOW_DOWN = frozenset({"ServiceUnavailable", "ServiceUnavailableException", "ModelNotReadyException"})
"""SageMaker's error codes of a model that is too busy or still loading, beside the throttles of all AWS services."""
_NO_CAPACITY = "has no capacity to process this request"
"""Part of the message of a `ValidationError` while an inference component has no copies: the call makes it scale out,
which takes minutes (SageMaker developer guide, "Scale an endpoint to zero instances")."""
_BUSY = frozenset({429, 503})
_SERVER_ERROR = 500
_REFUSED, _FORBIDDEN, _TIMEOUT = 400, frozenset({401, 403}), 408


class Model(Protocol):
    """A model that finds features in tiles; several threads call it at once.

    Attributes:
        stats: statistics of its answers so far.
    """

    @property
    def stats(self) -> RequestStats: ...  # noqa: D102 - see above

    def features(self, tile: bytes) -> list[Feature]:
        """Return the features in the tile's own pixels.

        Raises `Throttled` if it is too busy, `Unavailable` if a retry may help, `NotPermitted` and `RequestRefused` if
        it rejects the tile, `InvalidRequest` if it must not be called.
        """
        ...


MAX_CONNECTIONS = 64
"""The deployment's maximum of tile workers."""


def runtime_config() -> Config:
    """Return botocore's configuration of InvokeEndpoint: adaptive retries, so that all threads slow down together."""
    retries: Any = {"mode": "adaptive", "total_max_attempts": 4}
    slow = ANSWER_TIME + 5
    return Config(retries=retries, max_pool_connections=MAX_CONNECTIONS, connect_timeout=5, read_timeout=slow)


class SageMakerModel:
    """A model behind a SageMaker endpoint.

    Args:
        client: a boto3 client of `sagemaker-runtime`, made with `runtime_config`, under the role that may invoke.
        endpoint: its name.
        parameters: of the request (`imageProcessorParameters`).
        variant: the chosen one; "" without one. An inference component has a variant already, so then only one that the
            request names is passed on.
        content_type: of tiles, unless the parameters have one.
    """

    def __init__(
        self, client: BaseClient, endpoint: str, parameters: Mapping[str, Any], *, variant: str, content_type: str
    ) -> None:
        known = {
            name: str(value) for name, value in parameters.items() if name in PASSED_ON and value not in (None, "")
        }
        self._client: Any = client
        chosen = {"TargetVariant": variant} if variant and "InferenceComponentName" not in known else {}
        self._parameters = {"ContentType": content_type} | known | chosen
        self._endpoint = endpoint
        self.stats = RequestStats()

    def features(self, tile: bytes) -> list[Feature]:
        """Return the features of a tile; see `Model.features`."""
        with self.stats.count_request():
            try:
                answer = self._client.invoke_endpoint(EndpointName=self._endpoint, Body=tile, **self._parameters)
                self.stats.add_retries(_retries(answer))
                body = answer["Body"].read(MAX_ANSWER_LENGTH + 1)
            except AWS_ERRORS as error:
                if isinstance(error, ClientError):
                    self.stats.add_retries(_retries(error.response))
                raise _model_error(error) from error
        return features_of(body)


def _retries(answer: Mapping[str, Any]) -> int:
    """Return the number of botocore's own retries: after throttling, 5xx, and lost connections."""
    return int(answer.get("ResponseMetadata", {}).get("RetryAttempts", 0))


def _model_error(error: AwsError) -> ServiceError:
    """Return the domain error; for `ModelError` by the container's own status."""
    code = code_of(error)
    text = one_line(f"{code}: {message_of(error)}")[:MAX_ERROR_LENGTH]
    if code in _SLOW_DOWN or _NO_CAPACITY in message_of(error):
        return Throttled(text)
    if code == "ModelError" and isinstance(error, ClientError):
        status = int(str(error.response.get("OriginalStatusCode") or _SERVER_ERROR))
        return error_of_status(status, text)
    return to_domain_error(error)


def error_of_status(status: int, text: str) -> ServiceError:
    """Return the error for a model's HTTP status."""
    if status in _BUSY:
        return Throttled(text)
    if status in _FORBIDDEN:
        return NotPermitted(text)
    if status >= _SERVER_ERROR or status == _TIMEOUT:
        return Unavailable(text)
    return RequestRefused(text)


class HttpModel:
    """A model behind a URL, which takes a tile as the body of a POST.

    Args:
        client: has the time-outs, and as many connections as there are threads; it must not follow redirects.
        url: of the model.
        content_type: of tiles.
    """

    def __init__(self, client: httpx.Client, url: str, *, content_type: str) -> None:
        self._client = client
        self._url = url
        self._headers = {"Content-Type": content_type, "Accept": "application/geo+json, application/json"}
        self.stats = RequestStats()

    def features(self, tile: bytes) -> list[Feature]:
        """Return the features of a tile; see `Model.features`."""
        with self.stats.count_request():
            body = self._post(tile)
        return features_of(body)

    def _post(self, tile: bytes) -> bytes:
        try:
            with self._client.stream("POST", self._url, content=tile, headers=self._headers) as answer:
                body = _read_limited(answer)
        except httpx.HTTPError as error:
            message = without_secrets_of(self._url, str(error))
            raise Unavailable(f"{type(error).__name__}: {message}") from error
        except httpx.InvalidURL as error:
            message = without_secrets_of(self._url, str(error))
            raise InvalidRequest(f"the model's URL is invalid: {message}", field="imageProcessor.name") from error
        except InvalidRequest as error:
            error.field = "imageProcessor.name"
            raise
        if answer.status_code != httpx.codes.OK:
            reason = one_line(body[:MAX_ERROR_LENGTH].decode(errors="replace"))
            text = f"the model answered with HTTP status {answer.status_code}: {reason}"
            raise error_of_status(answer.status_code, text)
        return body


def _read_limited(answer: httpx.Response) -> bytes:
    """Return an answer's bytes up to the maximum and one more, which shows that it is longer."""
    body = bytearray()
    for piece in answer.iter_bytes():
        body += piece
        if len(body) > MAX_ANSWER_LENGTH:
            break
    return bytes(body[: MAX_ANSWER_LENGTH + 1])


def http_client(*, loopback: bool = False, resolve: Resolver = addresses, listed: Collection[str] = ()) -> httpx.Client:
    """Return a client for models and images behind URLs, without redirects; `PublicOnly` restricts its addresses.

    Unlike httpx by default it does not log URLs' credentials at INFO, and it keeps no cookies, since all jobs share it.

    Args:
        loopback: whether all addresses are allowed, including loopback: local stacks only.
        resolve: returns the addresses of a host.
        listed: numeric addresses that are allowed even if they are private.
    """
    logging.getLogger("httpx").setLevel(logging.WARNING)
    limits = httpx.Limits(max_connections=MAX_CONNECTIONS)
    transport = httpx.HTTPTransport(limits=limits) if loopback else PublicOnly(limits, resolve=resolve, listed=listed)
    timeout = httpx.Timeout(ANSWER_TIME, connect=5)
    cookies = CookieJar(policy=DefaultCookiePolicy(allowed_domains=[]))
    return httpx.Client(timeout=timeout, transport=transport, follow_redirects=False, cookies=cookies)


def features_of(body: bytes) -> list[Feature]:
    """Return the features of a GeoJSON FeatureCollection. Raises `RequestRefused` for anything else."""
    if len(body) > MAX_ANSWER_LENGTH:
        raise RequestRefused(f"the model's answer is longer than {MAX_ANSWER_LENGTH} bytes")
    try:
        found = json.loads(body, parse_constant=_no_number, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise RequestRefused(f"the model's answer is not JSON: {error}") from error
    features = found.get("features") if isinstance(found, dict) else None
    if not isinstance(features, list) or not all(isinstance(each, dict) for each in features):
        raise RequestRefused("the model's answer is not a GeoJSON FeatureCollection")
    return features


def _finite(text: str) -> float:
    """Return a finite float: 1e999 is legal JSON but infinite in Python, which would write invalid JSON."""
    found = float(text)
    return found if math.isfinite(found) else _no_number(text)


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


class RetryingModel:
    """A model whose calls are retried with growing pauses.

    Args:
        model: the wrapped model.
        wait: sleeps for seconds; returns True if the caller should give up.
        spread: returns a number from 0 to 1, so that threads do not retry together.
    """

    def __init__(
        self,
        model: Model,
        *,
        wait: Callable[[float], bool],
        spread: Callable[[], float],
    ) -> None:
        self._model = model
        self._wait = wait
        self._spread = spread

    @property
    def stats(self) -> RequestStats:
        """Statistics of the model's answers, counting each call."""
        return self._model.stats

    def features(self, tile: bytes) -> list[Feature]:
        """Return the model's features, or raise the error of the last call; see `Model.features`."""
        for number in range(MAX_CALLS):
            try:
                return self._model.features(tile)
            except (Throttled, Unavailable) as error:
                pause = FIRST_PAUSE_SECONDS * 2**number * (0.5 + self._spread())
                if number + 1 == MAX_CALLS or self._wait(pause):
                    raise
                log.info("the model is called again", extra={"cause": str(error), "seconds": round(pause, 1)})
        raise AssertionError("a model is called at least once")
