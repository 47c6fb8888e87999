"""Connections to public addresses only: what a name leads to is looked up once, checked, and then connected to.

A check before the request proves nothing: a name server may answer otherwise a moment later (DNS rebinding). It must
not know what is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import httpcore
import httpx

from trainmaster.imaging.places import Resolver, addresses, public_addresses


class PublicOnly(httpx.HTTPTransport):
    """Sends requests over connections to public addresses; `Host`, SNI and the certificate's name are the URL's.

    Sending raises `InvalidRequest` where a host has another address, and `Unavailable` where that cannot be told now.

    Args:
        limits: of connections; those that are kept are used again without being looked up.
        resolve: asked for the addresses of a host.
        backend: connects to them.
    """

    def __init__(
        self,
        limits: httpx.Limits,
        *,
        resolve: Resolver = addresses,
        backend: httpcore.NetworkBackend | None = None,
    ) -> None:
        super().__init__(limits=limits)
        # httpx has no argument for it. Where it one day keeps its pool elsewhere, this fails, and so does each request.
        self._pool.close()
        self._pool = httpcore.ConnectionPool(
            ssl_context=httpx.create_ssl_context(),
            max_connections=limits.max_connections,
            max_keepalive_connections=limits.max_keepalive_connections,
            keepalive_expiry=limits.keepalive_expiry,
            network_backend=_Checked(resolve, backend or httpcore.SyncBackend()),
        )


class _Checked(httpcore.NetworkBackend):
    """Connects to the addresses that were checked, one after the other, as they stand."""

    def __init__(self, resolve: Resolver, backend: httpcore.NetworkBackend) -> None:
        self._resolve = resolve
        self._backend = backend

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """A connection to the host."""
        *others, last = public_addresses(host, resolve=self._resolve)
        for address in others:
            try:
                return self._backend.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
        return self._backend.connect_tcp(last, port, timeout, local_address, socket_options)
