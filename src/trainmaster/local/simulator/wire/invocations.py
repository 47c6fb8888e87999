"""InvokeEndpoint: moto describes the endpoints, and a model server on this machine answers.

An invocation goes to the variant that it names, else to one drawn by weight. A serverless variant at its
`MaxConcurrency`, and an instance at its limit, return 429 (InvokeEndpoint, SageMaker runtime API reference).
"""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import httpx
from moto.core.exceptions import AWSError, ServiceException
from moto.sagemaker.models import sagemaker_backends

from trainmaster.local.simulator.wire.accounts import account_of
from trainmaster.local.simulator.wire.protocol import Reply

FORWARDED_HEADERS = ("content-type", "accept", "x-amzn-sagemaker-custom-attributes", "x-amzn-sagemaker-target-model")
VARIANT = "x-amzn-sagemaker-target-variant"
INVOKED_VARIANT = "x-Amzn-Invoked-Production-Variant"
_SECONDS = 60.0
"""Maximum response time of a model container (InvokeEndpoint, SageMaker runtime API reference)."""


@dataclass(slots=True)
class Invocations:
    """Invokes simulated endpoints.

    Args:
        model: URL of the model server; names of endpoint and variant are appended.
        region: Region of the endpoints.
        per_instance: maximum concurrent requests of an instance; None for no limit.
        rng: draws variants.
    """

    model: str
    region: str
    per_instance: int | None = None
    rng: random.Random = field(default_factory=random.Random)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _open: Counter[tuple[str, str]] = field(default_factory=Counter)
    _max_open: Counter[tuple[str, str]] = field(default_factory=Counter)
    _client: httpx.Client = field(default_factory=lambda: httpx.Client(timeout=_SECONDS))

    def answer(self, endpoint: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """Answer one invocation."""
        try:
            backend = sagemaker_backends[account_of(headers)][self.region]
            variants = backend.describe_endpoint(endpoint)["ProductionVariants"]
        except (AWSError, ServiceException) as error:
            return _error(HTTPStatus.BAD_REQUEST, "ValidationError", str(error))
        found = self._variant(variants, headers.get(VARIANT))
        if found is None:
            return _error(HTTPStatus.BAD_REQUEST, "ValidationError", f"Variant {headers.get(VARIANT)} not found")
        with self._admitted((endpoint, found["VariantName"]), self._limit(found)) as room:
            if not room:
                return _error(HTTPStatus.TOO_MANY_REQUESTS, "ThrottlingException", "Rate exceeded")
            return self._forward(endpoint, found["VariantName"], headers, body)

    def max_concurrent(self) -> dict[str, int]:
        """Return the maximum number of concurrent requests so far, by `<endpoint>/<variant>`."""
        with self._lock:
            return {f"{endpoint}/{variant}": peak for (endpoint, variant), peak in self._max_open.items()}

    def _variant(self, variants: list[dict[str, Any]], asked: str | None) -> dict[str, Any] | None:
        if asked:
            return next((each for each in variants if each["VariantName"] == asked), None)
        # moto omits a weight of 0.
        weights = [float(each.get("CurrentWeight", 0.0)) for each in variants]
        return self.rng.choices(variants, weights if any(weights) else None)[0]

    def _limit(self, variant: Mapping[str, Any]) -> int | None:
        serverless = variant.get("CurrentServerlessConfig")
        if serverless:
            return int(serverless["MaxConcurrency"])
        if self.per_instance is None:
            return None
        return self.per_instance * int(variant.get("CurrentInstanceCount", 0))

    @contextmanager
    def _admitted(self, which: tuple[str, str], limit: int | None) -> Iterator[bool]:
        with self._lock:
            room = limit is None or self._open[which] < limit
            if room:
                self._open[which] += 1
                self._max_open[which] = max(self._max_open[which], self._open[which])
        try:
            yield room
        finally:
            if room:
                with self._lock:
                    self._open[which] -= 1

    def _forward(self, endpoint: str, variant: str, headers: Mapping[str, str], body: bytes) -> Reply:
        passed = {name: headers[name] for name in FORWARDED_HEADERS if headers.get(name)}
        try:
            answer = self._client.post(f"{self.model}/{endpoint}/{variant}", content=body, headers=passed)
        except httpx.HTTPError as error:
            return _error(HTTPStatus.FAILED_DEPENDENCY, "ModelError", f"The model did not answer: {error}")
        if not answer.is_success:
            return _error(HTTPStatus.FAILED_DEPENDENCY, "ModelError", f"The model answered {answer.status_code}")
        kind = answer.headers.get("content-type", "application/json")
        return Reply(HTTPStatus.OK, answer.content, {"Content-Type": kind, INVOKED_VARIANT: variant})


def endpoint_of(method: str, path: str) -> str | None:
    """Return the endpoint that a request invokes (`POST /endpoints/<name>/invocations`); None for others."""
    match path.strip("/").split("/"):
        case ["endpoints", name, "invocations"] if method == "POST":
            return name
    return None


def headers_of(environ: Mapping[str, Any]) -> dict[str, str]:
    """Return a request's headers, names in lower case."""
    named = {key.removeprefix("HTTP_"): value for key, value in environ.items() if key.startswith("HTTP_")}
    kept = {"CONTENT_TYPE": environ.get("CONTENT_TYPE", ""), **named}
    return {key.replace("_", "-").lower(): str(value) for key, value in kept.items()}


def _error(status: int, code: str, message: str) -> Reply:
    body = json.dumps({"Code": code, "Message": message, "message": message}).encode()
    return Reply(status, body, {"Content-Type": "application/json", "x-amzn-ErrorType": code})
