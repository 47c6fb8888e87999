"""The routes of the API that the console forwards, as data; it forwards no others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

NAME: Final = "{name}"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)
_LISTED: Final = frozenset({"limit", "cursor"})


@dataclass(frozen=True, slots=True)
class Route:
    """A route of the API.

    Attributes:
        method: its HTTP method.
        path: segments of its path; `{name}` stands for a name of a job or a pool.
        query: names of the parameters that may be given.
        changes: whether it changes anything; --read-only refuses it then.
    """

    method: str
    path: tuple[str, ...]
    query: frozenset[str] = frozenset()
    changes: bool = False

    def matches(self, method: str, segments: Sequence[str]) -> bool:
        """Return whether a request is for this route."""
        return method == self.method and self.has_path(segments)

    def has_path(self, segments: Sequence[str]) -> bool:
        """Return whether these are segments of its path."""
        return len(segments) == len(self.path) and all(
            _NAME.fullmatch(given) if expected == NAME else given == expected
            for given, expected in zip(segments, self.path, strict=True)
        )


ROUTES: Final = (
    Route("GET", ("jobs",), _LISTED | {"state", "share", "pool", "mine", "since", "prefix", "kind"}),
    Route("GET", ("jobs", NAME), frozenset({"why"})),
    Route("GET", ("queue",), _LISTED),
    Route("GET", ("pools",), frozenset({"history"})),
    Route("GET", ("shares",)),
    Route("GET", ("schedule",), frozenset({"from", "to", "pool", "limit"})),
    Route("POST", ("plan",)),
    Route("POST", ("add-job",), changes=True),
    Route("PATCH", ("pools", NAME), changes=True),
    Route("DELETE", ("pools", NAME), frozenset({"force", "version"}), changes=True),
    Route("GET", ("usage",), frozenset({"from", "to", "by", "cursor"})),
    Route("GET", ("manager",)),
    Route("GET", ("settings",)),
    Route("GET", ("audit",), _LISTED | {"since", "until", "job", "who", "action"}),
    Route("GET", ("openapi.json",)),
    Route("PUT", ("settings",), changes=True),
    Route("PATCH", ("jobs", NAME), changes=True),
    Route("DELETE", ("jobs", NAME), changes=True),
)


def route_of(method: str, segments: Sequence[str]) -> Route | None:
    """Return the route of a request; None if the console does not forward it."""
    return next((route for route in ROUTES if route.matches(method, segments)), None)


def methods_of(segments: Sequence[str]) -> list[str]:
    """Return the methods that the console forwards for a path."""
    return [route.method for route in ROUTES if route.has_path(segments)]


def path_of(segments: Iterable[str]) -> str:
    """Return the path of segments, encoded as the client signs it."""
    return "".join(f"/{quote(segment, safe='')}" for segment in segments)


def is_query_of(route: Route, query: Sequence[tuple[str, str]]) -> bool:
    """Return whether the route takes these parameters, each once."""
    names = [name for name, _ in query]
    return len(names) == len(set(names)) and route.query.issuperset(names)


@dataclass(frozen=True, slots=True)
class Read:
    """A read of the API: what a page watches."""

    segments: tuple[str, ...]
    query: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        """The read as a path with its query."""
        return path_of(self.segments) + (f"?{urlencode(self.query)}" if self.query else "")


def read_of(text: str) -> Read | None:
    """Return the read that a path with its query names; None if the console does not forward it."""
    if not text.startswith("/") or text.startswith("//"):
        return None
    found = urlsplit(text)
    segments = tuple(unquote(part) for part in found.path[1:].split("/"))
    query = tuple(parse_qsl(found.query, keep_blank_values=True))
    route = route_of("GET", segments)
    return Read(segments, query) if route is not None and is_query_of(route, query) else None
