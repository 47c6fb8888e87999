"""The exporter's application: reads the API at most once in a while, and answers each scrape from that reading."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from http import HTTPStatus
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import CollectorRegistry

from trainmaster.client.api.errors import ApiError
from trainmaster.console.loopback import LOOPBACK, LoopbackServer, Request, Response, error_response
from trainmaster.domain.compat import UTC
from trainmaster.domain.text import sanitize
from trainmaster.exporter.families import Reading, families, up

if TYPE_CHECKING:
    from trainmaster.client.api.client import ApiClient

POLL_SECONDS: Final = 30.0
_ROUTES: Final[Mapping[str, Mapping[str, object]]] = {"/pools": {}, "/shares": {}, "/queue": {"limit": 100}}
log = logging.getLogger(__name__)


class QueueCollector:
    """Metrics of the queue, for a registry of `prometheus_client`. Thread-safe.

    It reads the API when it is asked and its reading is older than `poll_seconds`. An unchanged queue answers with 304,
    which costs the queue one read unit. While the API does not answer, there is the metric `trainmaster_up` alone.
    """

    def __init__(
        self,
        api: ApiClient,
        *,
        poll_seconds: float = POLL_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._api, self._poll_seconds, self._clock, self._now = api, poll_seconds, clock, now
        self._lock = Lock()
        self._answers: dict[str, tuple[Any, str | None]] = {}
        self._polled_at = float("-inf")
        self._reading: Reading | None = None

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of the newest reading."""
        reading = self._newest()
        yield up(answers=reading is not None)
        if reading is not None:
            yield from families(reading, self._now())

    def _newest(self) -> Reading | None:
        """Return the reading, after a poll if it is due; None if the API did not answer."""
        with self._lock:
            if self._clock() - self._polled_at >= self._poll_seconds:
                self._reading = self._poll()
                self._polled_at = self._clock()
            return self._reading

    def _poll(self) -> Reading | None:
        try:
            pools, shares, queue = (self._read(path, query) for path, query in _ROUTES.items())
        except ApiError as error:
            log.warning("The queue's API does not answer: %s", sanitize(error.message))
            return None
        return Reading(pools, shares, queue, self._api.service_version)

    def _read(self, path: str, query: Mapping[str, object]) -> Any:
        """Return the answer to a read, the known one if it has not changed. Raises ApiError."""
        known, tag = self._answers.get(path, (None, None))
        answer, newest_tag = self._api.read_if_changed(path, tag, query=query)
        if answer is None:
            return known
        self._answers[path] = (answer, newest_tag)
        return answer


class Exporter:
    """An HTTP server of the metrics, ready to serve."""

    def __init__(
        self,
        collector: QueueCollector,
        *,
        port: int = 0,
        address: str = LOOPBACK,
        allowed_hosts: frozenset[str] = frozenset(),
    ) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(collector)  # type: ignore[arg-type, unused-ignore]
        self.server = LoopbackServer(self.answer, port=port, address=address, allowed_hosts=allowed_hosts)
        self.url = f"http://{address}:{self.server.server_port}/metrics"

    def serve(self) -> None:
        """Serve until `KeyboardInterrupt`, or until another thread closes the server."""
        try:
            self.server.serve_forever(poll_interval=0.2)
        finally:
            self.server.server_close()

    def answer(self, request: Request) -> Response:
        """Return the metrics in the format that the request accepts."""
        if request.segments != ("metrics",):
            return error_response(HTTPStatus.NOT_FOUND, "NotFound", "The metrics are at /metrics.")
        if request.method != "GET":
            return error_response(HTTPStatus.METHOD_NOT_ALLOWED, "Refused", "The metrics can only be read.")
        encoder, content_type = choose_encoder(request.headers.get("Accept", ""))
        return Response(HTTPStatus.OK, encoder(self._registry), content_type)
