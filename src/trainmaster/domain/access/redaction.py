"""Hides the secrets of requests and of texts from callers.

Values under keys that look like secrets are hidden from everyone. The environment, the hyperparameters and the
arguments of a request, and the signatures of its URLs, are shown to its owner and to admins. Keys, and the shape of a
request, stay as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any
from urllib.parse import unquote

from trainmaster.domain.errors import InvalidRequest

REDACTED = "(redacted)"
"""Stands for a hidden value. No request may have it as a value, so that it is never taken for one."""
_QUOTED = json.dumps(REDACTED)
"""The same where a value is text in JSON, as the SageMaker SDK writes hyperparameters."""
PRIVATE = frozenset({"Environment", "HyperParameters", "ContainerEntrypoint", "ContainerArguments"})
"""Members of a request whose values only its owner and admins see."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_ALWAYS = ("password", "passwd", "passphrase", "passcode", "secret", "credential", "apikey", "authorization", "bearer")
"""Parts of words that name a secret wherever they stand."""
_WHOLE = frozenset({"pwd", "auth", "cookie", "signature", "accesskey", "privatekey", "pat", "sas"})
_KEYS = frozenset(
    {"api", "access", "private", "encryption", "ssh", "signing", "account", "license", "master", "shared"}
)
"""Words that make a following `key` a secret."""
_TEXT_TOKENS = frozenset(
    {"pad", "eos", "bos", "unk", "mask", "sep", "cls", "special", "image", "start", "end", "stop", "first", "last"}
    | {"id", "ids", "index", "type", "count", "size", "length", "limit", "dim", "embedding", "classification", "level"}
)
"""Words beside `token` where it is one of a text, as in `pad_token_id`."""
_REFERENCES = frozenset({"arn", "arns"})
"""Last words of keys that name a secret without being one."""

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s\"'<>\\]+")
_PARAMETER = re.compile(r"([^?#&;=\s]+)=([^?&;#\s]*)")
_SIGNED = frozenset({"signature", "sig", "awsaccesskeyid", "policy", "key-pair-id", "skoid"})
_SIGNED_PREFIXES = ("x-amz-", "x-goog-", "x-ms-")
_ASSIGNED = re.compile(r"([A-Za-z0-9_.-]{1,64})\"?\s{0,3}[=:]\s{0,3}")
_ASSIGNED_VALUE = re.compile(r"\"[^\"]*\"|'[^']*'|[^\s,;&)\"']+")
_SCHEME = re.compile(r"\b(Bearer|Basic)\s+[A-Za-z0-9+/_.~=-]{8,}", re.IGNORECASE)


def looks_secret(key: str) -> bool:
    """Return whether the name of a value says that it is a secret: `API_KEY`, `dbPassword`, `hf-token`."""
    words = [word.lower() for word in _WORD.findall(key)]
    if not words or words[-1] in _REFERENCES:
        return False
    if any(part in word for word in words for part in _ALWAYS) or not _WHOLE.isdisjoint(words):
        return True
    named = any(first in _KEYS and second in ("key", "keys") for first, second in pairwise(words))
    return named or _is_token(words)


def _is_token(words: Sequence[str]) -> bool:
    return any(word.endswith("token") for word in words) and _TEXT_TOKENS.isdisjoint(words)


def redacted_request(request: Mapping[str, Any], *, private: bool) -> dict[str, Any]:
    """Return a request as a caller may see it.

    Args:
        request: as submitted.
        private: whether the caller may see what the request keeps for its owner.
    """
    return {key: _member(key, value, private=private, hidden=False) for key, value in request.items()}


def redacted_text(text: str) -> str:
    """Return a message without signatures and passwords of URLs, and without values that are named as secrets."""
    text = _URL.sub(lambda found: _url(found[0]), text)
    text = _SCHEME.sub(lambda found: f"{found[1]} {REDACTED}", text)
    return _without_assigned(text)


def _without_assigned(text: str) -> str:
    """Return a text without the values that stand after a name of a secret: `password=x`, `"apiKey": "x"`."""
    parts, end = [], 0
    for found in _ASSIGNED.finditer(text):
        if found.start() < end or not looks_secret(found[1]) or text.startswith(REDACTED, found.end()):
            continue
        value = _ASSIGNED_VALUE.match(text, found.end())
        if value is not None:
            parts += [text[end : found.end()], REDACTED]
            end = value.end()
    return "".join([*parts, text[end:]])


def redacted_fields(request: Any, path: str = "") -> list[str]:
    """Return the paths of values that are hidden: the request is a shown one, not the submitted one."""
    if isinstance(request, Mapping):
        prefix = f"{path}." if path else ""
        return [found for key, value in request.items() for found in redacted_fields(value, f"{prefix}{key}")]
    if isinstance(request, list):
        return [found for index, value in enumerate(request) for found in redacted_fields(value, f"{path}[{index}]")]
    return [path] if isinstance(request, str) and REDACTED in request else []


def check_shown(request: Mapping[str, Any]) -> None:
    """Raise `InvalidRequest` for a request with redacted values, such as one that was read from the API."""
    for path in redacted_fields(request):
        raise InvalidRequest(
            f"The value is {REDACTED}, which stands for one that the API does not show.",
            field=path,
            hint="Submit the original request, or set the value again.",
        )


def _member(key: str, value: Any, *, private: bool, hidden: bool) -> Any:
    hidden = hidden or looks_secret(key) or (key in PRIVATE and not private)
    return _value(value, private=private, hidden=hidden)


def _value(value: Any, *, private: bool, hidden: bool) -> Any:
    """Return a value as shown; below a hidden one, everything but its shape is hidden."""
    if isinstance(value, Mapping):
        named = None if hidden else _name_of_pair(value)
        return {
            key: each
            if named is not None and key.casefold() in _PAIR_KEYS
            else _member(key, each, private=private, hidden=hidden or (named is not None and looks_secret(named)))
            for key, each in value.items()
        }
    if isinstance(value, list):
        return _items(value, private=private, hidden=hidden)
    if value is None or isinstance(value, bool):
        return value
    if hidden:
        return _hidden(value)
    return value if not isinstance(value, str) else _text(value, private=private)


_PAIR_KEYS, _PAIR = frozenset({"key", "name"}), 2


def _name_of_pair(value: Mapping[str, Any]) -> str | None:
    """Return the name in `{"Key": ..., "Value": ...}`, the form of tags; None for another mapping."""
    members = {key.casefold(): each for key, each in value.items()}
    name = next((members[key] for key in _PAIR_KEYS if key in members), None)
    return name if isinstance(name, str) and "value" in members and len(members) <= _PAIR else None


def _items(values: Sequence[Any], *, private: bool, hidden: bool) -> list[Any]:
    """Return a list as shown; in the arguments of a program, `--password` names the value after it."""
    shown = []
    follows = False
    for value in values:
        shown.append(_value(value, private=private, hidden=hidden or follows))
        follows = isinstance(value, str) and value.startswith("-") and "=" not in value and looks_secret(value)
    return shown


def _hidden(value: Any) -> str:
    """Return the stand-in for a hidden value; text in JSON stays text in JSON."""
    if isinstance(value, str) and value not in ("", REDACTED):
        try:
            json.loads(value)
        except ValueError:
            return REDACTED
        return _QUOTED
    return REDACTED


def _text(text: str, *, private: bool) -> str:
    """Return a text as shown: without secrets inside JSON or arguments, and for others without those of URLs."""
    if text[:1] in ("{", "["):
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            document = None
        if isinstance(document, dict | list):
            shown = _value(document, private=private, hidden=False)
            return text if shown == document else json.dumps(shown)
    name, equals, _ = text.partition("=")
    if text.startswith("-") and equals and looks_secret(name):
        return f"{name}={REDACTED}"
    return text if private else _URL.sub(lambda found: _url(found[0]), text)


def _url(url: str) -> str:
    """Return a URL, and those inside it, without passwords and without signatures and secrets in queries."""
    scheme, _, rest = url.partition("://")
    end = min((rest.find(mark) for mark in "/?#" if mark in rest), default=len(rest))
    authority, tail = rest[:end], _URL.sub(lambda found: _url(found[0]), rest[end:])
    if "@" in authority:
        authority = f"{REDACTED}@{authority.rpartition('@')[2]}"
    start = min((tail.find(mark) for mark in "?#" if mark in tail), default=len(tail))
    return f"{scheme}://{authority}{tail[:start]}{_PARAMETER.sub(_parameter, tail[start:])}"


def _parameter(found: re.Match[str]) -> str:
    key, value = unquote(found[1]), unquote(found[2])
    name = key.casefold()
    signed = name in _SIGNED or name.startswith(_SIGNED_PREFIXES) or looks_secret(key)
    nested = value != found[2] and "://" in value and redacted_text(value) != value
    return f"{found[1]}={REDACTED}" if signed or nested else found[0]
