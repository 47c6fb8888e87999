"""The console's application: signs browsers in, serves the page, streams changes, and forwards listed routes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from trainmaster.client.api.errors import ApiError
from trainmaster.console.access import TOKEN, SessionGate, check_origin
from trainmaster.console.assets import Asset, load_assets
from trainmaster.console.feed import MAX_WATCHED, Feed
from trainmaster.console.forward import Forwarder, json_object
from trainmaster.console.identity import Identity
from trainmaster.console.loopback import (
    LOOPBACK,
    LoopbackServer,
    Refusal,
    Request,
    Response,
    error_response,
    json_response,
)
from trainmaster.console.replays import Replays
from trainmaster.console.routes import Read, methods_of, read_of, route_of
from trainmaster.domain.release import VERSION

if TYPE_CHECKING:
    from trainmaster.client.api.client import ApiClient

_FOR_SCRIPTS: Final = ("api", "events", "session", "replay")
"""First segments of the addresses that the page's scripts use; the others are files."""
_PAGE: Final = (
    '<!doctype html><html lang=en><meta charset=utf-8><title>Trainmaster</title><link rel=icon href="data:,">{head}'
    "<body><main><h1>Trainmaster</h1><p>{text}</p></main></body></html>"
)


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a console.

    Attributes:
        port: the port; 0 selects a free one.
        allowed_hosts: further host names that requests may name.
        read_only: whether changes are refused.
    """

    port: int = 0
    allowed_hosts: frozenset[str] = frozenset()
    read_only: bool = False


class Console:
    """A console, ready to serve. `on_sign_in` is called with the address for another browser once one was used."""

    def __init__(  # noqa: PLR0913 - its parts, with which tests replace AWS and time
        self,
        api: ApiClient,
        options: Options,
        *,
        on_sign_in: Callable[[str], object] = lambda _: None,
        identity: Identity | None = None,
        feed: Callable[[Callable[[Read], Any]], Feed] = Feed,
        replays: Replays | None = None,
    ) -> None:
        self._api, self._options = api, options
        self._identity = identity or Identity(lambda: api.session)
        self._forwarder = Forwarder(api)
        self._feed = feed(self._forwarder.read)
        self._replays = replays or Replays(api)
        self._assets: Mapping[tuple[str, ...], Asset] = load_assets()
        self._gate = SessionGate(lambda token: on_sign_in(self._address(token)))
        self.server = LoopbackServer(self.answer, port=options.port, allowed_hosts=options.allowed_hosts)
        self._cookie = f"trainmaster-console-{self.port}"

    @property
    def port(self) -> int:
        """The port on which it listens."""
        return self.server.server_port

    @property
    def url(self) -> str:
        """The address that signs a browser in, once."""
        return self._address(self._gate.token)

    def serve(self) -> None:
        """Serve until `KeyboardInterrupt`, or until another thread closes the server."""
        try:
            self.server.serve_forever(poll_interval=0.2)
        finally:
            self.close()

    def close(self) -> None:
        """End all streams and the replay, and stop listening."""
        self._feed.close()
        self._replays.cancel()
        self.server.server_close()

    def _address(self, token: str) -> str:
        return f"http://{LOOPBACK}:{self.port}/?{TOKEN}={token}"

    def answer(self, request: Request) -> Response:
        """Return the answer to a request."""
        try:
            return self._answer(request)
        except Refusal as refusal:
            return _refused(request, refusal)

    def _answer(self, request: Request) -> Response:
        """Return the answer to a request. Raises Refusal."""
        token = dict(request.query).get(TOKEN)
        if request.method == "GET" and request.segments == ("",) and token is not None:
            cookie = self._gate.exchange(token, self._cookie)
            return _page(HTTPStatus.OK, "Signed in.", '<meta http-equiv=refresh content="0;url=./">', cookie)
        first, *rest = request.segments
        if first in _FOR_SCRIPTS:
            check_origin(request, self.server.permits)
        self._gate.check(request, self._cookie, changes=request.method != "GET")
        if first == "api":
            return self._forward(request, tuple(rest))
        if request.segments == ("replay",):
            return self._replay(request)
        if request.method != "GET":
            raise Refusal(HTTPStatus.METHOD_NOT_ALLOWED, "This address can only be read.")
        if request.segments == ("events",):
            return self._events(request)
        return (
            json_response(HTTPStatus.OK, self._session()) if request.segments == ("session",) else self._file(request)
        )

    def _forward(self, request: Request, segments: tuple[str, ...]) -> Response:
        """Forward a request to the API. Raises Refusal for one that is not in the list."""
        route = route_of(request.method, segments)
        if route is None:
            known = methods_of(segments)
            status = HTTPStatus.METHOD_NOT_ALLOWED if known else HTTPStatus.NOT_FOUND
            raise Refusal(status, "The console does not forward this request.")
        if route.changes and self._options.read_only:
            raise Refusal(HTTPStatus.FORBIDDEN, "The console was started with --read-only.")
        if not {name for name, _ in request.query} <= route.query:
            raise Refusal(HTTPStatus.BAD_REQUEST, "The console does not forward these parameters.")
        answer = self._forwarder.send(request, segments)
        if route.changes:
            self._feed.hurry()
        return answer

    def _replay(self, request: Request) -> Response:
        """Show, start or cancel the replay of a draft; none of these changes the queue. Raises Refusal."""
        if request.method == "GET":
            return json_response(HTTPStatus.OK, self._replays.status.view())
        if request.method == "DELETE":
            return json_response(HTTPStatus.OK, self._replays.cancel().view())
        if request.method != "POST":
            raise Refusal(
                HTTPStatus.METHOD_NOT_ALLOWED, "A replay is read, started with POST, or cancelled with DELETE."
            )
        draft = (json_object(request.body) or {}).get("draft")
        if not isinstance(draft, dict):
            raise Refusal(HTTPStatus.BAD_REQUEST, "A replay needs a draft of the settings, which is a JSON object.")
        return json_response(HTTPStatus.ACCEPTED, self._replays.start(draft).view())

    def _events(self, request: Request) -> Response:
        """Stream what a page watches. Raises Refusal for reads that are not in the list."""
        reads = [read_of(value) for name, value in request.query if name == "watch"]
        watched = tuple(read for read in reads if read is not None)
        if not watched or len(watched) < len(reads) or len(watched) > MAX_WATCHED:
            raise Refusal(HTTPStatus.BAD_REQUEST, "The console does not forward these reads.")
        headers = {"X-Accel-Buffering": "no"}  # proxies such as nginx would keep events back
        return Response(HTTPStatus.OK, self._feed.events(watched), "text/event-stream; charset=utf-8", headers)

    def _session(self) -> dict[str, Any]:
        """Return the identity, the queue's address and versions."""
        view: dict[str, Any] = {"api": None, "region": None, "readOnly": self._options.read_only}
        with suppress(ApiError):
            view |= {"api": self._api.address.url, "region": self._api.region}
        versions = {"version": VERSION, "serviceVersion": self._api.service_version}
        return {**view, **versions, **self._identity.view()}

    def _file(self, request: Request) -> Response:
        """Return a file of the page. Raises Refusal."""
        asset = self._assets.get(("index.html",) if request.segments == ("",) else request.segments)
        if asset is None:
            raise Refusal(HTTPStatus.NOT_FOUND, "There is no such page.")
        headers = {"Cache-Control": "no-cache", "ETag": asset.tag}
        if request.headers.get("If-None-Match") == asset.tag:
            return Response(HTTPStatus.NOT_MODIFIED, b"", asset.content_type, headers)
        return Response(HTTPStatus.OK, asset.content, asset.content_type, headers)


def _refused(request: Request, refusal: Refusal) -> Response:
    """Return a refusal: a page for a browser's address bar, JSON for a script."""
    if request.segments[0] in _FOR_SCRIPTS:
        return error_response(refusal.status, "Refused", str(refusal))
    return _page(refusal.status, str(refusal))


def _page(status: int, text: str, head: str = "", cookie: str | None = None) -> Response:
    headers = {} if cookie is None else {"Set-Cookie": cookie}
    return Response(status, _PAGE.format(head=head, text=text).encode(), "text/html; charset=utf-8", headers)
