"""Request bodies: text that must be one JSON object with a single meaning (no duplicate members).

Python's reader accepts duplicate keys, NaN and infinite numbers, which other readers interpret differently, so they
are rejected. Messages never quote the body, which may contain secrets.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from trainmaster.domain.errors import InvalidRequest
from trainmaster.domain.requests.fields import shown
from trainmaster.handlers.api.paths import path_of

DEEPEST = 64
"""Levels of nesting; CreateTrainingJob has fewer than ten."""
_HINT = "Send one JSON object, in UTF-8, with Content-Type: application/json."
_NO_BODY = "The request has no body."
_TWICE_ENCODED = (
    "Send the object itself, not its text: with Python's requests, json=job instead of json=json.dumps(job)."
)


def parse_body(text: str) -> dict[str, Any]:
    """Return the JSON object in the text. Raises `InvalidRequest`."""
    try:
        # Numbers that are none stay in it until their place can be told.
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=float)
    except json.JSONDecodeError as error:
        wrong = f"The body is not valid JSON: {error.msg} (line {error.lineno}, column {error.colno})."
        raise InvalidRequest(wrong, hint=_HINT) from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError:
        # Python reads integers of some thousand digits at most.
        raise InvalidRequest("The body contains a number that is too long.", hint=_HINT) from None
    if not isinstance(value, dict):
        hint = _TWICE_ENCODED if isinstance(value, str) else _HINT
        raise InvalidRequest(f"The body is {_kind(value)}, not a JSON object.", hint=hint)
    _check_depth(value)
    _check_numbers(value, ())
    return value


def no_body() -> InvalidRequest:
    """Return the error for a request without the body that it needs."""
    return InvalidRequest(_NO_BODY, hint=_HINT)


def as_json(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the event with its body as text, which Powertools parses as JSON or not at all.

    It would read a form as an object, and accepts application/json in lower case only. Raises `InvalidRequest` if API
    Gateway passed a body in base64 that is not text.
    """
    headers = {name: _media_type(name, value) for name, value in (event.get("headers") or {}).items()}
    return {**event, "headers": headers, "body": _text(event), "isBase64Encoded": False}


def _media_type(name: str, value: str) -> str:
    if name.casefold() != "content-type" or not value:
        return value
    essence = value.partition(";")[0].strip().casefold()
    return essence if essence == "application/json" else "application/octet-stream"


def _text(event: Mapping[str, Any]) -> str | None:
    body: str | None = event.get("body")
    if not event.get("isBase64Encoded") or body is None:
        return body
    try:
        return base64.b64decode(body, validate=True).decode()
    except ValueError:
        raise InvalidRequest("The body is not text in UTF-8.", hint=_HINT) from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise InvalidRequest(f"The key {shown(twice)} appears twice in one object.", hint="Specify each key once.")
    return found


def _check_numbers(value: Any, where: tuple[str | int, ...]) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        wrong = "The body contains NaN or a number that is too large."
        raise InvalidRequest(wrong, field=path_of(where), hint="Specify a number, or omit the field.")
    for key, child in _members(value):
        _check_numbers(child, (*where, key))


def _members(value: Any) -> Iterable[tuple[str | int, Any]]:
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()


def _check_depth(value: Any) -> None:
    level: list[Any] = [value]
    for _ in range(DEEPEST):
        level = [child for each in level for _, child in _members(each)]
        if not level:
            return
    raise _too_deep()


def _too_deep() -> InvalidRequest:
    return InvalidRequest("The body is nested too deeply.", hint=f"At most {DEEPEST} levels are allowed.")


def _kind(value: object) -> str:
    if isinstance(value, str):
        return "a string"
    if isinstance(value, list):
        return "a list"
    return "null" if value is None else "a bare value"
