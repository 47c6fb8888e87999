"""Requests that no client would send on purpose, and the one rule that holds for every answer.

`mutants` changes example requests of API Gateway at random; `as_wsgi` lets tools that speak HTTP call the handler.
"""

from __future__ import annotations

import base64
import copy
import json
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from api_world import ALICE, CONTEXT, ApiWorld, read, rest_event
from trainmaster.handlers.api.app import answer

ROOT = Path(__file__).parents[1]
BOB, CAROL = (f"arn:aws:iam::111122223333:user/{name}" for name in ("bob", "carol"))
Event = dict[str, Any]

TEXTS = (
    "", " ", "\x00", "\ud800", "\u202e", "-1", "0", "1e999", "NaN", "null", "true", "[]", "{}", "'", '"', "%", "%00",
    "%2F", "../..", "<script>", "${jndi:x}", "a" * 300, "\U0001f680", "ml.p5.48xlarge", "job1", "trainmaster:priority",
    "arn:aws:iam::111122223333:role/x", "2026-11-22T00:00:00Z", "9999-12-31T23:59:59Z",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    *TEXTS, None, True, False, 0, -1, 1, 2**31, 2**63, 10**400, -(10**400), 0.5, -0.0, 1e308, [], {}, [[]], [None],
    {"": 0}, {"a": {"a": {"a": []}}}, ["x"] * 200, {str(number): number for number in range(200)},
)  # fmt: skip
RAW = (
    b"", b"{", b"[" * 5000, b'{"a":' * 5000, b"\xff\xfe", b"\x00", b"NaN", b'{"a":1,"a":2}', b"1" * 5000, b'"', b"null",
    b"[]", b"{} {}", b"\xef\xbb\xbf{}",
)  # fmt: skip
NAMES = (*TEXTS, ".", "..", "a/b", "job1/", "/", "é", "job 1", "job1?x=1", "job1#", "x" * 3000)
CONTENT_TYPES = (
    None,
    "",
    "text/plain",
    "application/json; charset=latin-1",
    "application/xml",
    "multipart/form-data",
    "\x00",
)
QUERIES = ("limit", "cursor", "state", "share", "pool", "force", "history", "view", "x", "")
METHODS = ("GET", "PUT", "POST", "PATCH", "DELETE", "HEAD", "OPTIONS", "BREW", "")


def examples(*folders: str) -> list[Event]:
    """Return the example requests to the API in these folders of the repository."""
    paths = [path for folder in folders for path in sorted((ROOT / folder).glob("api-*.json"))]
    return [json.loads(path.read_text()) for path in paths]


def mutants(events: Iterable[Event], count: int, rng: random.Random) -> Iterator[Event]:
    """Yield examples with up to three things changed, so that some still succeed and change the queue."""
    known = [*events]
    for _ in range(count):
        event = copy.deepcopy(rng.choice(known))
        for _ in range(rng.randint(0, 3)):
            rng.choices(_CHANGES, _WEIGHTS)[0](event, rng)
        yield event


def _change_body(event: Event, rng: random.Random) -> None:
    """Put another value in one place of the body, remove it, or add a member beside it."""
    try:
        body = json.loads(event["body"] or "{}")
    except ValueError:
        return
    places = [*_places(body)]
    if not places:
        event["body"] = json.dumps(rng.choice(VALUES))
        return
    holder, key = rng.choice(places)
    match rng.randrange(4):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[rng.choice(TEXTS)] = rng.choice(VALUES)
        case 2 if isinstance(holder, list):
            holder *= 60
        case _:
            holder[key] = rng.choice(VALUES)
    event["body"] = json.dumps(body)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each container in a JSON value with each of its keys."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield value, key
        yield from _places(each)


def _replace_body(event: Event, rng: random.Random) -> None:
    event["body"] = base64.b64encode(rng.choice(RAW)).decode()
    event["isBase64Encoded"] = rng.random() < 0.8


def _cut_body(event: Event, rng: random.Random) -> None:
    text = event["body"] or ""
    start = rng.randint(0, len(text))
    event["body"] = text[:start] + rng.choice(TEXTS) + text[start + rng.randint(0, 20) :]


def _change_path(event: Event, rng: random.Random) -> None:
    parts = event["path"].split("/")
    parts[rng.randrange(1, len(parts))] = rng.choice(NAMES)
    event["path"] = "/".join(parts) + rng.choice(("", "", "/", f"/{rng.choice(NAMES)}"))


def _change_query(event: Event, rng: random.Random) -> None:
    query = event.get("multiValueQueryStringParameters") or {}
    query = query | {rng.choice(QUERIES): [rng.choice(TEXTS) for _ in range(rng.choice((1, 1, 2)))]}
    event["multiValueQueryStringParameters"] = query
    event["queryStringParameters"] = {name: values[-1] for name, values in query.items()}


def _change_content_type(event: Event, rng: random.Random) -> None:
    value = rng.choice(CONTENT_TYPES)
    others = {name: each for name, each in event["headers"].items() if name.lower() != "content-type"}
    event["headers"] = others if value is None else others | {"content-type": value}
    event["multiValueHeaders"] = {name: [each] for name, each in event["headers"].items()}


def _change_method(event: Event, rng: random.Random) -> None:
    event["httpMethod"] = rng.choice(METHODS)


def _change_caller(event: Event, rng: random.Random) -> None:
    caller = rng.choice((None, "", ALICE, BOB, CAROL, "x", "\ud800"))
    event["requestContext"]["identity"]["userArn"] = caller


_CHANGES: tuple[Callable[[Event, random.Random], None], ...] = (
    _change_body, _replace_body, _cut_body, _change_path, _change_query, _change_content_type, _change_method,
    _change_caller,
)  # fmt: skip
_WEIGHTS = (12, 2, 2, 3, 3, 1, 1, 3)


# ---------------------------------------------------------------- the rule


@lru_cache(maxsize=8)
def _schema(text: str) -> tuple[Mapping[str, Any], Registry]:
    document = json.loads(text)
    return document, Registry().with_resource("urn:api", Resource(contents=document, specification=DRAFT202012))


class AnswerRule:
    """No error of the service, and no answer outside the OpenAPI document that the API serves itself.

    Args:
        world: the API.
    """

    def __init__(self, world: ApiWorld) -> None:
        text = json.dumps(world.get("/openapi.json").body)
        self._document, self._registry = _schema(text)
        self._validators: dict[str, Draft202012Validator] = {}
        self._paths = {path: re.compile(re.sub(r"\{\w+\}", "[^/]+", path) + "/*") for path in self._document["paths"]}

    def check(self, event: Event, made: Mapping[str, Any]) -> int:
        """Return the status of an answer, after a look at it."""
        reply = read(made)
        told = json.dumps({name: event[name] for name in ("httpMethod", "path", "body", "isBase64Encoded")})
        assert reply.status < 500, (reply.body, told)
        schema = self._schema_of(event, reply.status)
        problem = next(iter(self._validator(schema).iter_errors(reply.body)), None)
        assert problem is None, (problem, told)
        return reply.status

    def _schema_of(self, event: Event, status: int) -> str:
        """Return where the schema of an answer is; errors of no route have the one shape of errors."""
        method = event["httpMethod"].lower()
        for path, pattern in self._paths.items():
            operation = self._document["paths"][path].get(method)
            if operation and pattern.fullmatch(event["path"]):
                assert str(status) in operation["responses"], f"{method} {path} answered {status}"
                place = f"/paths/{path.replace('/', '~1')}/{method}/responses/{status}"
                return f"urn:api#{place}/content/application~1json/schema"
        assert status >= 400, f"no route of the document answered {status} to {method} {event['path']}"
        return "urn:api#/components/schemas/Error"

    def _validator(self, schema: str) -> Draft202012Validator:
        if schema not in self._validators:
            self._validators[schema] = Draft202012Validator({"$ref": schema}, registry=self._registry)
        return self._validators[schema]


def asked(world: ApiWorld, event: Event) -> dict[str, Any]:
    """Return the handler's answer to an event."""
    return answer(lambda: world.app, event, CONTEXT)


# ---------------------------------------------------------------- over HTTP


def as_wsgi(world: ApiWorld) -> Callable[[dict[str, Any], Callable[..., object]], list[bytes]]:
    """Return an API as a WSGI application, which does what API Gateway does with requests and answers."""

    def application(environ: dict[str, Any], start_response: Callable[..., object]) -> list[bytes]:
        made = asked(world, _event_of(environ))
        headers = [(name, ", ".join(values)) for name, values in made["multiValueHeaders"].items()]
        start_response(f"{made['statusCode']} Answered", headers)
        return [made["body"].encode()]

    return application


def _event_of(environ: Mapping[str, Any]) -> Event:
    raw = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    path = environ["PATH_INFO"].encode("latin-1").decode("utf-8", "replace")
    query = parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)
    body = base64.b64encode(raw).decode() if raw else None
    event = rest_event(environ["REQUEST_METHOD"], path, body, query, isBase64Encoded=bool(raw))
    given = environ.get("CONTENT_TYPE")
    event["headers"] = {"Content-Type": given} if given else {}
    if (tags := environ.get("HTTP_IF_NONE_MATCH")) is not None:
        event["headers"]["If-None-Match"] = tags
    event["multiValueHeaders"] = {name: [value] for name, value in event["headers"].items()}
    return event
