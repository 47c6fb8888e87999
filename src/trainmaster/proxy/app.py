"""The endpoint's server: gives the queue's operations to its handlers, and passes all others on to AWS."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from http import HTTPStatus
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, ClassVar, Final

import boto3
from botocore.exceptions import BotoCoreError, ClientError
from botocore.hooks import HierarchicalEmitter
from botocore.parsers import create_parser

from trainmaster.client.api.credentials import credentials_error
from trainmaster.client.batch.hook import DEFAULT_QUEUE, BatchRoute
from trainmaster.client.batch.resources import Resources
from trainmaster.client.sdk.hook import Route
from trainmaster.client.sdk.once import Once
from trainmaster.console.access import check_origin
from trainmaster.console.loopback import LOOPBACK, LoopbackServer, Refusal, Request, Response
from trainmaster.proxy.accounts import account_of
from trainmaster.proxy.upstream import Upstream
from trainmaster.proxy.wire import (
    Call,
    WireError,
    changed_response,
    error_response,
    own_response,
    passed_response,
    read_call,
)

if TYPE_CHECKING:
    from botocore.awsrequest import AWSResponse
    from botocore.model import OperationModel, ServiceModel

    from trainmaster.client.api.client import ApiClient
    from trainmaster.client.sdk.elastic import ElasticOptions
    from trainmaster.client.sdk.response_codec import BotoResponse

MAX_BODY_BYTES: Final = 8 * 1024 * 1024
"""More than any request of SageMaker's and Batch's: a pipeline's definition has up to 1 MiB, before it is escaped."""
log = logging.getLogger("trainmaster")


@dataclass(frozen=True, slots=True)
class Defaults:
    """Defaults of the jobs that the command submits, and the names of Batch queues that the queue answers for.

    Attributes:
        tags: tags of all jobs that have none of their name.
        resources: resources instead of instance types (`route_to_queue`).
        elastic: options of elastic jobs.
        batch_queues: names of job queues, each with the share that it stands for, None for any (`route_batch`).
    """

    tags: Mapping[str, str] = field(default_factory=dict)
    resources: str | None = None
    elastic: ElasticOptions | None = None
    batch_queues: Mapping[str, str | None] = field(default_factory=lambda: {DEFAULT_QUEUE: None})


class Session(boto3.session.Session):
    """A session whose clients may be made by several threads."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._lock = Lock()

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings of the profile."""
        return self._session.get_scoped_config()

    def model(self, service: str) -> ServiceModel:
        """Return botocore's model of a service."""
        return self._session.get_service_model(service)

    def client(self, *arguments: Any, **options: Any) -> Any:
        """Return a client."""
        with self._lock:
            return super().client(*arguments, **options)


@dataclass(frozen=True, slots=True)
class _Service:
    """A service of AWS: its model, and the handlers of the operations that the queue answers or changes."""

    model: ServiceModel
    operations: frozenset[str]
    events: HierarchicalEmitter


class ProxyServer(LoopbackServer):
    """A loopback server that reads the bodies of requests with the token only."""

    max_body_bytes: ClassVar[int] = MAX_BODY_BYTES
    max_connections: ClassVar[int] = 256
    host_hint: ClassVar[str] = ""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy
        super().__init__(proxy.answer)

    def check(self, request: Request) -> None:
        """Check that the request comes from a program that knows the token. Raises Refusal."""
        self._proxy.check(request)


class Proxy:
    """An endpoint for the programs of one command, ready to serve.

    `session` signs what passes on to AWS, and `upstream` sends it.
    """

    def __init__(
        self, session: Session, api: ApiClient, defaults: Defaults | None = None, upstream: Upstream | None = None
    ) -> None:
        self._session, self._api = session, api
        self._upstream = upstream or Upstream(session)
        self._token = secrets.token_urlsafe(32)
        self._warned = Once()
        self._routes = self._make_routes(defaults or Defaults())
        self._services = {name: self._service(name, route) for name, route in self._routes.items()}
        self.server = ProxyServer(self)

    @property
    def urls(self) -> dict[str, str]:
        """The endpoint's URL for each service, by botocore's name of the service."""
        base = f"http://{LOOPBACK}:{self.server.server_port}/{self._token}"
        return {name: f"{base}/{name}" for name in self._services}

    def start(self, poll_seconds: float = 0.2) -> None:
        """Serve in another thread; `close` takes effect after at most so many seconds."""
        Thread(target=self.server.serve_forever, args=(poll_seconds,), name="proxy", daemon=True).start()

    def close(self) -> None:
        """End the server."""
        self.server.shutdown()
        self.server.server_close()

    def _make_routes(self, defaults: Defaults) -> Mapping[str, Route | BatchRoute]:
        queue = Route(self._session, self._api)
        queue.tags, queue.resources, queue.elastic = defaults.tags, defaults.resources, defaults.elastic
        queue.on_bypass = self._warn_of_bypass
        names = dict(defaults.batch_queues)
        batch = BatchRoute(self._session, Resources(self._api, names, frozenset(names), frozenset()))
        batch.with_defaults = queue.with_defaults
        batch.on_bypass = self._warn_of_bypass
        return {"sagemaker": queue, "batch": batch}

    def _service(self, name: str, route: Route | BatchRoute) -> _Service:
        events = HierarchicalEmitter()
        route.attach(events)
        return _Service(self._session.model(name), route.operations, events)

    # -- requests

    def check(self, request: Request) -> None:
        """Check the token, and that the request comes from no web page. Raises Refusal."""
        token = request.segments[0]
        if not secrets.compare_digest(token.encode(errors="replace"), self._token.encode()):
            raise Refusal(HTTPStatus.FORBIDDEN, "The address lacks the token of `trainmaster exec`.")
        check_origin(request, lambda _: False)
        if len(request.segments) < 2 or request.segments[1] not in self._services:
            raise Refusal(HTTPStatus.NOT_FOUND, f"The services here are {', '.join(self._services)}.")

    def answer(self, request: Request) -> Response:
        """Return the answer to a request that has passed `check`."""
        _, name, *rest = request.segments
        service = self._services[name]
        try:
            return self._answer(service, read_call(service.model, request, tuple(rest)))
        except WireError as error:
            return error_response(service.model, error)
        except ClientError as error:
            return error_response(service.model, _as_wire_error(error))
        except BotoCoreError as error:
            return error_response(service.model, self._unsent(error))

    def _answer(self, service: _Service, call: Call) -> Response:
        """Return the answer to a call. Raises WireError, ClientError and BotoCoreError."""
        region = call.region or self._api.region
        self._check_account(call)
        if call.model is None or call.operation not in service.operations:
            return _passed(self._upstream.send(call, region))
        params = call.serialized(self._upstream.endpoint(call.service, region).url)
        context: dict[str, Any] = {"client_region": region}
        event = f"{call.service}.{call.operation}"
        arguments = {"model": call.model, "params": params, "context": context}
        own: BotoResponse | None = service.events.emit_until_response(f"before-call.{event}", **arguments)[1]
        if own is not None:
            return own_response(call.model, own)
        sent = self._upstream.send(call.with_body_of(params), region)
        if len(context) == 1:
            return _passed(sent)  # no handler has noted that it changes the answer
        return _changed(service, call.model, sent, context)

    def _check_account(self, call: Call) -> None:
        """Check that the program meant the account whose credentials sign in its place. Raises WireError."""
        if call.key_id is None:
            return
        own = str(self._upstream.credentials().access_key)
        meant, signed = account_of(call.key_id), account_of(own)
        if call.key_id != own and None not in (meant, signed) and meant != signed:
            raise WireError(
                "AccessDeniedException",
                f"The program signed for account {meant}, and `trainmaster exec` signs for account {signed} instead: "
                "run it with credentials of that account.",
            )

    def _warn_of_bypass(self, operation: str, message: str) -> None:
        if self._warned.is_first((operation, message)):
            log.warning("%s: %s", operation, message)

    def _unsent(self, error: BotoCoreError) -> WireError:
        """Return the error of a request that could not be signed, or that AWS did not answer."""
        known = credentials_error(error, self._session)
        if known is not None:
            return WireError("AccessDeniedException", str(known))
        return WireError("ServiceUnavailable", f"AWS did not answer: {error}", HTTPStatus.SERVICE_UNAVAILABLE)


def _as_wire_error(error: ClientError) -> WireError:
    """Return the error of a call that a handler made in the course of another."""
    told: Mapping[str, Any] = error.response
    status = told.get("ResponseMetadata", {}).get("HTTPStatusCode", HTTPStatus.BAD_REQUEST)
    return WireError(told["Error"]["Code"], told["Error"]["Message"], status)


def _passed(sent: AWSResponse) -> Response:
    return passed_response(sent.status_code, sent.headers, sent.content)


def _changed(service: _Service, model: OperationModel, sent: AWSResponse, context: dict[str, Any]) -> Response:
    """Have the handlers change an answer of AWS."""
    headers = {name.lower(): value for name, value in sent.headers.items()}
    raw = {"headers": headers, "status_code": sent.status_code, "body": sent.content, "context": {}}
    parser = create_parser(service.model.resolved_protocol)
    shape: Any = model.output_shape
    parsed: dict[str, Any] = parser.parse(raw, shape)
    before = deepcopy(parsed)
    arguments = {"http_response": sent, "parsed": parsed, "model": model, "context": context}
    service.events.emit(f"after-call.{service.model.service_name}.{model.name}", **arguments)
    if parsed == before:
        return _passed(sent)
    return changed_response(model, sent.content, before, (sent, parsed))
