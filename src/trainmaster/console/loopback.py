"""An HTTP server for programs of this machine: it listens on loopback only, and checks each request.

It knows nothing of the console. Other local servers, such as a proxy for programs that use AWS, pass their own handler.
"""

from __future__ import annotations

import io
import json
import logging
import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from email.message import Message
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from threading import BoundedSemaphore
from types import MappingProxyType
from typing import Any, ClassVar, Final
from urllib.parse import parse_qsl, unquote, urlsplit

LOOPBACK: Final = "127.0.0.1"
MAX_BODY_BYTES: Final = 1024 * 1024
MAX_CONNECTIONS: Final = 64
REQUEST_SECONDS: Final = 10.0
"""Time in which a whole request must arrive, and in which a client must take each part of the answer."""
JSON_TYPE: Final = "application/json"
SAFE_HEADERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Content-Security-Policy": (
            "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
            "object-src 'none'"
        ),
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
    }
)
"""Headers of every answer, also of errors. There are none of CORS: no other site may read an answer."""
log = logging.getLogger(__name__)
_PATH = re.compile(r"/[!-~]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Request:
    """A request that has passed the server's checks.

    Attributes:
        method: the HTTP method.
        segments: parts of the path between its slashes, decoded; a part may contain a slash that was encoded.
        query: names and values of the query, in their order.
        headers: the headers.
        body: the body; empty if there is none.
    """

    method: str
    segments: tuple[str, ...]
    query: tuple[tuple[str, str], ...]
    headers: Message
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Response:
    """An answer. An iterator as `body` is sent part by part, as the parts come."""

    status: int
    body: bytes | Iterator[bytes] = b""
    content_type: str = JSON_TYPE
    headers: Mapping[str, str] = field(default_factory=dict)


class Refusal(Exception):
    """A request that the server refuses: its HTTP status, and the reason in words."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


def json_response(status: int, value: Any) -> Response:
    """Return a value as JSON."""
    return Response(status, json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def error_response(status: int, kind: str, message: str) -> Response:
    """Return an error in the shape of the API's own errors."""
    return json_response(status, {"error": {"type": kind, "message": message, "field": None, "hint": None}})


class LoopbackServer(ThreadingHTTPServer):
    """Serves `handler` on 127.0.0.1, unless another `address` is given; `port` 0 selects a free one.

    Requests must name a permitted host: 127.0.0.1, localhost or the address with the port, or one of `allowed_hosts`
    (with its port, or without for any). A page of another site that resolves its own name to this machine (DNS
    rebinding) does not.
    """

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64
    max_body_bytes: ClassVar[int] = MAX_BODY_BYTES
    max_connections: ClassVar[int] = MAX_CONNECTIONS
    host_hint: ClassVar[str] = "Start with --allowed-host to allow it."

    def __init__(
        self,
        handler: Callable[[Request], Response],
        *,
        port: int = 0,
        address: str = LOOPBACK,
        allowed_hosts: frozenset[str] = frozenset(),
        request_seconds: float = REQUEST_SECONDS,
    ) -> None:
        self.answer, self.request_seconds = handler, request_seconds
        self._slots = BoundedSemaphore(self.max_connections)
        super().__init__((address, port), _Handler)
        own = frozenset(f"{host}:{self.server_port}" for host in (LOOPBACK, "localhost", address))
        self._hosts = own | {host.lower() for host in allowed_hosts}

    def server_bind(self) -> None:
        """Bind the socket, without the look-up of the host's name that the base class does."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self.socket.getsockname()[:2]

    def permits(self, host: str) -> bool:
        """Return whether requests may name this host."""
        lowered = host.lower()
        return lowered in self._hosts or lowered.rpartition(":")[0] in self._hosts

    def check(self, request: Request) -> None:
        """Check a request before its body is read. Raises Refusal; this class refuses none."""

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread of its own, or close it if there are too many."""
        if self._slots.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection, and give its slot back."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: a client has gone, and requests may contain secrets."""


class _Deadline(io.RawIOBase):
    """Reads a socket until a moment: a client that sends a byte now and then does not hold its thread for longer."""

    def __init__(self, connection: socket.socket, seconds: float) -> None:
        self._connection, self._until = connection, time.monotonic() + seconds

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what has arrived. Raises TimeoutError."""
        remaining = self._until - time.monotonic()
        if remaining <= 0:
            raise TimeoutError
        self._connection.settimeout(remaining)
        return self._connection.recv_into(buffer)


class _Handler(BaseHTTPRequestHandler):
    """One connection: one request, checked, answered and closed."""

    server: LoopbackServer
    protocol_version = default_request_version = "HTTP/1.1"  # every answer has its headers
    error_content_type = JSON_TYPE
    _REASONS: ClassVar[Mapping[int, str]] = {status.value: status.phrase for status in HTTPStatus}

    def setup(self) -> None:
        """Read with a deadline."""
        super().setup()
        self.rfile = io.BufferedReader(_Deadline(self.connection, self.server.request_seconds))

    def _serve(self) -> None:
        self.close_connection = True
        try:
            request = self._request()
        except Refusal as refusal:
            self._send(error_response(refusal.status, "Refused", str(refusal)))
            return
        self._send(self._answer(request))

    def _answer(self, request: Request) -> Response:
        """Return the handler's answer; an error of its code becomes an answer without details."""
        try:
            return self.server.answer(request)
        except Exception:
            log.exception("A request failed")
            return error_response(HTTPStatus.INTERNAL_SERVER_ERROR, "Internal", "The request failed: see the terminal.")

    # The methods that a local server needs. All others, also OPTIONS and HEAD, are refused before a handler sees them.
    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815 - the base class names them so

    def _request(self) -> Request:
        """Return the request. Raises Refusal."""
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or not self.server.permits(hosts[0]):
            raise Refusal(HTTPStatus.FORBIDDEN, f"This host name is not allowed. {self.server.host_hint}".rstrip())
        if not _PATH.fullmatch(self.path) or self.path.startswith("//"):
            raise Refusal(HTTPStatus.BAD_REQUEST, "The request line needs a path.")
        found = urlsplit(self.path)
        segments = tuple(unquote(part, errors="replace") for part in found.path[1:].split("/"))
        query = tuple(parse_qsl(found.query, keep_blank_values=True))
        request = Request(self.command, segments, query, self.headers)
        self.server.check(request)
        return replace(request, body=self._body())

    def _body(self) -> bytes:
        """Return the body. Raises Refusal for one that is too long, or whose length is not stated."""
        lengths = self.headers.get_all("Content-Length", [])
        if "Transfer-Encoding" in self.headers or len(lengths) > 1:
            raise Refusal(HTTPStatus.LENGTH_REQUIRED, "State the body's length, once.")
        text = lengths[0] if lengths else "0"
        if not (text.isascii() and text.isdigit()):
            raise Refusal(HTTPStatus.BAD_REQUEST, "The body's length is no number.")
        allowed = self.server.max_body_bytes
        if len(text) > len(str(allowed)) or int(text) > allowed:
            raise Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"A body has at most {allowed} bytes.")
        body = self.rfile.read(int(text))
        if len(body) < int(text):
            raise Refusal(HTTPStatus.BAD_REQUEST, "The body is shorter than its stated length.")
        return body

    def _send(self, response: Response) -> None:
        self.connection.settimeout(self.server.request_seconds)
        whole = response.body if isinstance(response.body, bytes) else None
        self.send_response(response.status)
        length = {} if whole is None else {"Content-Length": str(len(whole))}
        defaults = {"Cache-Control": "no-store", "Content-Type": response.content_type, "Connection": "close"}
        for name, value in {**SAFE_HEADERS, **defaults, **length, **response.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        with suppress(OSError):  # the client has gone
            for part in (whole,) if whole is not None else response.body:
                self.wfile.write(part)  # type: ignore[arg-type]
        if whole is None:
            response.body.close()  # type: ignore[union-attr]

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer a request that could not be read, or a method that no handler gets."""
        del explain
        self.close_connection = True
        self._send(error_response(code, "Refused", message or self._REASONS.get(code, "Refused.")))

    def version_string(self) -> str:
        """Return the server's name, without versions."""
        return "trainmaster"

    def log_message(self, *_: Any) -> None:
        """Log nothing: addresses contain the token."""
