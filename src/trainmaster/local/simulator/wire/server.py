"""The simulator over HTTP, in front of moto's server.

A WSGI application: training operations go to the simulator, all other requests to moto's server application. Those run
one at a time, because moto's backends are not thread-safe.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterable
from http import HTTPStatus
from io import BytesIO
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from trainmaster.local.simulator.simulator import SageMakerSimulator
from trainmaster.local.simulator.wire.accounts import Accounts
from trainmaster.local.simulator.wire.invocations import Invocations, endpoint_of, headers_of
from trainmaster.local.simulator.wire.protocol import TARGET_PREFIX, Reply

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

TAGGING = frozenset({"AddTags", "ListTags", "DeleteTags"})
TRAINING_JOB = ":training-job/"


class Application:
    """Routes each request.

    Args:
        simulator: answers the training operations.
        fallback: answers all other requests.
        invocations: answers InvokeEndpoint; None without a model server.
        accounts: finds the account of a request; None for a single account.
    """

    def __init__(
        self,
        simulator: SageMakerSimulator,
        fallback: WSGIApplication,
        invocations: Invocations | None = None,
        accounts: Accounts | None = None,
    ) -> None:
        self._simulator = simulator
        self._fallback = fallback
        self._invocations = invocations
        self._accounts = accounts

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        if self._accounts is not None:
            self._accounts.mark_request(environ)
        endpoint = endpoint_of(environ.get("REQUEST_METHOD", ""), environ.get("PATH_INFO", ""))
        if endpoint is not None and self._invocations is not None:
            return _send(self._invocations.answer(endpoint, headers_of(environ), _body(environ)), start_response)
        operation = environ.get("HTTP_X_AMZ_TARGET", "")
        if not operation.startswith(TARGET_PREFIX):
            return self._fallback(environ, start_response)
        body = _body(environ)
        operation = operation.removeprefix(TARGET_PREFIX)
        if self._simulator.handles(operation) and _is_training_operation(operation, body):
            return _send(self._reply(operation, body, environ), start_response)
        environ["wsgi.input"] = BytesIO(body)
        return self._fallback(environ, start_response)

    def _reply(self, operation: str, body: bytes, environ: WSGIEnvironment) -> Reply:
        """Answer a training operation. Raises `ConnectionAbortedError` after closing a connection that is lost."""
        try:
            return self._simulator.reply(operation, body)
        except BotoCoreError as error:
            connection: socket.socket | None = environ.get("werkzeug.socket")
            if connection is not None:
                connection.shutdown(socket.SHUT_RDWR)
            raise ConnectionAbortedError(str(error)) from error


def moto_application() -> WSGIApplication:
    """Return moto's services behind one lock, which is held until a response is complete."""
    lock = threading.Lock()
    dispatcher: Callable[..., Iterable[bytes]] = DomainDispatcherApplication(create_backend_app)

    def one_at_a_time(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        with lock:
            chunks = dispatcher(environ, start_response)
            try:
                return list(chunks)
            finally:
                close = getattr(chunks, "close", None)
                if close is not None:
                    close()

    return one_at_a_time


def serve(
    simulator: SageMakerSimulator,
    host: str = "127.0.0.1",
    port: int = 0,
    invocations: Invocations | None = None,
    accounts: Accounts | None = None,
) -> BaseWSGIServer:
    """Return a threaded server that listens; the caller runs `serve_forever`. Port 0 selects a free one."""
    application = Application(simulator, moto_application(), invocations, accounts)
    return make_server(host, port, application, threaded=True, request_handler=_QuietHandler)


class _QuietHandler(WSGIRequestHandler):
    """Logs failed requests only."""

    protocol_version = "HTTP/1.1"

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        if str(code).startswith("5"):
            super().log_request(code, size)


def _body(environ: WSGIEnvironment) -> bytes:
    body: bytes = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    return body


def _is_training_operation(operation: str, body: bytes) -> bool:
    """Return True unless the request concerns tags of another kind of resource."""
    if operation not in TAGGING:
        return True
    try:
        request: Any = json.loads(body or b"{}")
    except ValueError:
        return True
    return TRAINING_JOB in str(request.get("ResourceArn", "")) if isinstance(request, dict) else True


def _send(reply: Reply, start_response: StartResponse) -> list[bytes]:
    headers = [*reply.headers.items(), ("Content-Length", str(len(reply.body)))]
    start_response(f"{reply.status} {HTTPStatus(reply.status).phrase}", headers)
    return [reply.body]
