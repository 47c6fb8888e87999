"""Connections to public addresses only: a name is resolved once, its addresses are checked, then connected to.

A check before the request proves nothing: a name server may answer differently a moment later (DNS rebinding). Nor do
time-outs of single steps bound a request: a server may send a byte before each. So connecting and answering have one
time limit each.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import httpcore
import httpx

from trainmaster.images.pixels.http.url_policy import Resolver, addresses, public_addresses

PATIENCE = 60.0
"""Seconds from the last byte of a request to the last one of its answer, at any transfer rate."""
_ADDRESSES = 3
"""Maximum addresses of a host to try."""
_SHORTEST = 0.1
"""Minimum seconds for each of them."""


class PublicOnly(httpx.BaseTransport):
    """Sends requests over connections to public addresses; `Host`, SNI and the certificate's name are the URL's.

    It uses httpcore directly, since `httpx.HTTPTransport` has no argument for the network backend. Sending raises
    `InvalidRequest` if a host has another address, and `Unavailable` if that cannot be decided now.

    Args:
        limits: of connections; idle ones are reused without another lookup.
        resolve: returns the addresses of a host.
        backend: connects to them.
        now: seconds of a monotonic clock.
        listed: numeric addresses that are allowed even if they are private.
    """

    def __init__(
        self,
        limits: httpx.Limits,
        *,
        resolve: Resolver = addresses,
        listed: Collection[str] = (),
        backend: httpcore.NetworkBackend | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connections = httpcore.ConnectionPool(
            ssl_context=httpx.create_ssl_context(),
            max_connections=limits.max_connections,
            max_keepalive_connections=limits.max_keepalive_connections,
            keepalive_expiry=limits.keepalive_expiry,
            network_backend=_CheckedBackend(resolve, listed, backend or httpcore.SyncBackend(), now),
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; return its response with an open stream. Raises errors of httpx."""
        url = request.url
        raw = httpcore.Request(
            method=request.method,
            url=httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with _httpx_errors():
            answer = self._connections.handle_request(raw)
        return httpx.Response(answer.status, headers=answer.headers, stream=_Body(answer), extensions=answer.extensions)

    def close(self) -> None:
        """Close all connections."""
        self._connections.close()


class _Body(httpx.SyncByteStream):
    """The body of a response; closing it gives the connection back."""

    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        with _httpx_errors():
            yield from self._answer.iter_stream()

    def close(self) -> None:
        """Close the body."""
        self._answer.close()


@contextmanager
def _httpx_errors() -> Iterator[None]:
    """Raise httpcore's errors as the errors of httpx with the same names."""
    try:
        yield
    except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError, *_OTHER_ERRORS) as error:
        raise getattr(httpx, type(error).__name__)(str(error)) from error


_OTHER_ERRORS = (httpcore.ProxyError, httpcore.UnsupportedProtocol)


class _CheckedBackend(httpcore.NetworkBackend):
    """Connects to the checked addresses in their order; they share the time-out."""

    def __init__(
        self, resolve: Resolver, listed: Collection[str], backend: httpcore.NetworkBackend, now: Callable[[], float]
    ) -> None:
        self._resolve = resolve
        self._listed = listed
        self._backend = backend
        self._now = now

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Return a connection to the host."""
        found = public_addresses(host, resolve=self._resolve, listed=self._listed)[:_ADDRESSES]
        until = None if timeout is None else self._now() + timeout
        for left in range(len(found), 0, -1):
            part = None if until is None else max(_SHORTEST, (until - self._now()) / left)
            try:
                stream = self._backend.connect_tcp(found[-left], port, part, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if left == 1:
                    raise
            else:
                return _TimedStream(stream, self._now)
        raise AssertionError("a public host has an address")


class _TimedStream(httpcore.NetworkStream):
    """A connection on which each answer has a total time limit, counted from the last write of its request."""

    def __init__(self, stream: httpcore.NetworkStream, now: Callable[[], float]) -> None:
        self._stream = stream
        self._now = now
        self._until = now() + PATIENCE

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return some bytes. Raises `httpcore.ReadTimeout` after the answer's time limit."""
        left = self._until - self._now()
        if left <= 0:
            raise httpcore.ReadTimeout(f"no complete answer within {PATIENCE:.0f} seconds")
        return self._stream.read(max_bytes, left if timeout is None else min(left, timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send bytes and restart the answer's time limit."""
        self._stream.write(buffer, timeout)
        self._until = self._now() + PATIENCE

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        """Return the same connection, encrypted."""
        return _TimedStream(self._stream.start_tls(ssl_context, server_hostname, timeout), self._now)

    def get_extra_info(self, info: str) -> Any:
        """Return information about the connection; httpcore also detects a closed one by it."""
        return self._stream.get_extra_info(info)
