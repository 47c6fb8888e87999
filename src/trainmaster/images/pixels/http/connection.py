"""Connections to public addresses only: what a name leads to is looked up once, checked, and then connected to.

A check before the request proves nothing: a name server may answer otherwise a moment later (DNS rebinding). Nor do
time-outs of single steps bound a request: a server may send a byte before each. So connecting and answering have a time
as a whole. It must not know what is asked for.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterable
from typing import Any

import httpcore
import httpx

from trainmaster.images.pixels.http.url_policy import Resolver, addresses, public_addresses

PATIENCE = 60.0
"""Seconds from the last byte of a request to the last one of its answer, however slowly that comes."""
_ADDRESSES = 3
"""Of a host, so many are tried at most."""
_SHORTEST = 0.1
"""Seconds that each of them has at least."""


class PublicOnly(httpx.HTTPTransport):
    """Sends requests over connections to public addresses; `Host`, SNI and the certificate's name are the URL's.

    Sending raises `InvalidRequest` where a host has another address, and `Unavailable` where that cannot be told now.

    Args:
        limits: of connections; those that are kept are used again without being looked up.
        resolve: asked for the addresses of a host.
        backend: connects to them.
        now: seconds of a clock that only goes forward.
    """

    def __init__(
        self,
        limits: httpx.Limits,
        *,
        resolve: Resolver = addresses,
        backend: httpcore.NetworkBackend | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(limits=limits)
        # httpx has no argument for it. Where it one day keeps its pool elsewhere, this fails, and so does each request.
        self._pool.close()
        self._pool = httpcore.ConnectionPool(
            ssl_context=httpx.create_ssl_context(),
            max_connections=limits.max_connections,
            max_keepalive_connections=limits.max_keepalive_connections,
            keepalive_expiry=limits.keepalive_expiry,
            network_backend=_Checked(resolve, backend or httpcore.SyncBackend(), now),
        )


class _Checked(httpcore.NetworkBackend):
    """Connects to the addresses that were checked, one after the other, as they stand; they share the time there is."""

    def __init__(self, resolve: Resolver, backend: httpcore.NetworkBackend, now: Callable[[], float]) -> None:
        self._resolve = resolve
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
        """A connection to the host."""
        found = public_addresses(host, resolve=self._resolve)[:_ADDRESSES]
        until = None if timeout is None else self._now() + timeout
        for left in range(len(found), 0, -1):
            part = None if until is None else max(_SHORTEST, (until - self._now()) / left)
            try:
                stream = self._backend.connect_tcp(found[-left], port, part, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if left == 1:
                    raise
            else:
                return _Timed(stream, self._now)
        raise AssertionError("a public host has an address")


class _Timed(httpcore.NetworkStream):
    """A connection over which each answer has so much time in all, from when the last of its request was written."""

    def __init__(self, stream: httpcore.NetworkStream, now: Callable[[], float]) -> None:
        self._stream = stream
        self._now = now
        self._until = now() + PATIENCE

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Some bytes. Raises `httpcore.ReadTimeout` where the answer has had its time."""
        left = self._until - self._now()
        if left <= 0:
            raise httpcore.ReadTimeout(f"no whole answer within {PATIENCE:.0f} seconds")
        return self._stream.read(max_bytes, left if timeout is None else min(left, timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send bytes; the answer's time begins."""
        self._stream.write(buffer, timeout)
        self._until = self._now() + PATIENCE

    def close(self) -> None:
        """Close it."""
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        """The same connection, encrypted."""
        return _Timed(self._stream.start_tls(ssl_context, server_hostname, timeout), self._now)

    def get_extra_info(self, info: str) -> Any:
        """What is known of the connection; whether it was closed meanwhile is asked so."""
        return self._stream.get_extra_info(info)
