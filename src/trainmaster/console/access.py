"""Checks that requests come from the console's own page: a token once, then a cookie, and a header on each change."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from threading import Lock
from typing import Final
from urllib.parse import urlsplit

from trainmaster.console.loopback import Refusal, Request

CHANGE_HEADER: Final = "X-Trainmaster-Console"
"""Header of every change. A form of another site cannot set it, and a script of one would have to ask first (CORS)."""
TOKEN: Final = "token"  # noqa: S105 - the name of a parameter
_MAX_SESSIONS: Final = 32
_NOT_OPENED: Final = "Open the address that the terminal shows: it signs this browser in, once."
_OTHER_SITE: Final = "The request comes from a page of another site."


class SessionGate:
    """Tokens and sessions of one server.

    A token signs in one browser. Then `on_use` is called with the next token, for another browser.
    """

    def __init__(self, on_use: Callable[[str], object] = lambda _: None) -> None:
        self._token, self._sessions, self._lock, self._on_use = _secret(), list[str](), Lock(), on_use

    @property
    def token(self) -> str:
        """The token that the next browser needs."""
        return self._token

    def exchange(self, token: str, cookie_name: str) -> str:
        """Return the header `Set-Cookie` of a new session. Raises Refusal for a wrong or used token.

        The cookie has no path, so that it is sent below the address that the browser knows, also behind a proxy.
        """
        with self._lock:
            if not _same(token, self._token):
                raise Refusal(HTTPStatus.FORBIDDEN, f"The address has been used, or is of another start. {_NOT_OPENED}")
            session, self._token = _secret(), _secret()
            self._sessions = [*self._sessions, session][-_MAX_SESSIONS:]
            following = self._token
        self._on_use(following)
        return f"{cookie_name}={session}; HttpOnly; SameSite=Strict"

    def check(self, request: Request, cookie_name: str, *, changes: bool) -> None:
        """Check that a request comes from the page of a browser that has signed in. Raises Refusal."""
        cookie = _cookie(request, cookie_name)
        with self._lock:
            sessions = list(self._sessions)
        if not any(_same(cookie, session) for session in sessions):
            raise Refusal(HTTPStatus.FORBIDDEN, _NOT_OPENED)
        if changes and request.headers.get(CHANGE_HEADER) != "1":
            raise Refusal(HTTPStatus.FORBIDDEN, f"A change needs the header {CHANGE_HEADER}.")
        if changes and request.headers.get("Content-Type", "application/json") != "application/json":
            raise Refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "A change needs a body of JSON.")


def check_origin(request: Request, permits: Callable[[str], bool]) -> None:
    """Check that a browser sent the request for a page of this server. Raises Refusal.

    Servers on other ports of this machine are the same site, so that the cookie alone does not tell their pages apart.
    """
    if request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
        raise Refusal(HTTPStatus.FORBIDDEN, _OTHER_SITE)
    origin = request.headers.get("Origin")
    if origin is not None and not permits(urlsplit(origin).netloc):
        raise Refusal(HTTPStatus.FORBIDDEN, _OTHER_SITE)


def _cookie(request: Request, name: str) -> str:
    try:
        found = SimpleCookie(request.headers.get("Cookie", "")).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _secret() -> str:
    return secrets.token_urlsafe(32)


def _same(given: str, expected: str) -> bool:
    return secrets.compare_digest(given.encode(errors="replace"), expected.encode())
