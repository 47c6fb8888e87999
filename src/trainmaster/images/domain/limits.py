"""Settings of image jobs as texts: a deployment's environment variables, and the tags of an endpoint.

The names are the guide's ("Configuration Options") where it has one. An invalid variable is an error, since the
operator can correct it; an invalid tag is ignored and reported, since endpoints may belong to other teams.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from trainmaster.domain.policy.declaration import MAX_COUNT
from trainmaster.domain.requests.fields import Problem, shown
from trainmaster.domain.requests.values import positive
from trainmaster.images.domain.endpoint import Endpoint, Limits

HIGHEST_TARGET = 1.5
MAX_WORKERS = 64
"""Requests that a region makes at once: each is a thread of a worker, with a tile and an answer in its memory."""
_NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]{0,9})?|\.[0-9]{1,9}")
_SIZE = re.compile(r"\(\s*([0-9]+)\s*,\s*([0-9]+)\s*,?\s*\)|([0-9]+)\s*,\s*([0-9]+)")


@dataclass(frozen=True, slots=True)
class _Setting:
    """One setting: its attribute of `Limits`, its parser (None for an invalid text), and the values that it takes."""

    member: str
    read: Callable[[str], Any]
    takes: str


def _switch(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text.lower())


def _target(text: str) -> float | None:
    share = float(text) if _NUMBER.fullmatch(text) else HIGHEST_TARGET + 1
    return share if share <= HIGHEST_TARGET else None


def _size(text: str) -> tuple[int, int] | None:
    found = _SIZE.fullmatch(text)
    if found is None:
        return None
    width, height = (positive(digits) for digits in found.groups() if digits is not None)
    return None if width is None or height is None else (width, height)


def _workers(text: str) -> int | None:
    count = positive(text)
    return count if count is not None and count <= MAX_WORKERS else None


_WHOLE = f"a whole number from 1 to {MAX_COUNT}"
_WORKERS = f"a whole number from 1 to {MAX_WORKERS}"
_SHARE = f"a number from 0.0 to {HIGHEST_TARGET}, such as 0.8 for 80 percent"

VARIABLES: Mapping[str, _Setting] = {
    "SCHEDULER_THROTTLING_ENABLED": _Setting("throttling", _switch, "'True' or 'False'"),
    "CAPACITY_TARGET_PERCENTAGE": _Setting("target", _target, _SHARE),
    "DEFAULT_INSTANCE_CONCURRENCY": _Setting("instance_concurrency", positive, _WHOLE),
    "DEFAULT_HTTP_ENDPOINT_CONCURRENCY": _Setting("http_concurrency", positive, _WHOLE),
    "TILE_WORKERS_PER_INSTANCE": _Setting("tile_workers", _workers, _WORKERS),
    "REGION_SIZE": _Setting("region_size", _size, "pixels per axis, such as '(10240, 10240)'"),
    "ENDPOINT_FRESH_SECONDS": _Setting("fresh_for", positive, _WHOLE),
    "REGION_ATTEMPTS": _Setting("attempts", positive, _WHOLE),
    "WATCH_OTHER_CALLERS": _Setting("watch_others", _switch, "'True' or 'False'"),
}
"""The environment variables; the last three are ours, the others ModelRunner's."""
TAGS: Mapping[str, _Setting] = {
    "osml:instance-concurrency": _Setting("instance_concurrency", positive, _WHOLE),
    "osml:capacity-target-percentage": _Setting("target", _target, _SHARE),
    "osml:tile-workers": _Setting("tile_workers", _workers, _WORKERS),
}
"""The tags of endpoints; the first is ModelRunner's."""


def limits_of(environ: Mapping[str, str]) -> Limits:
    """Return the settings of an environment, with the guide's default if a variable is absent or empty.

    Raises `InvalidRequest` with the name of an invalid variable.
    """
    found, wrong = _read(VARIABLES, environ)
    for problem in wrong:
        raise problem.refusal()
    return replace(Limits(), **found)


def tagged(endpoint: Endpoint, tags: Mapping[str, str]) -> tuple[Endpoint, tuple[Problem, ...]]:
    """Return the endpoint with the values of its tags, and the invalid tags, for which the defaults hold."""
    found, wrong = _read(TAGS, tags)
    absent = {setting.member: None for setting in TAGS.values()}
    return replace(endpoint, **(absent | found)), wrong


def _read(settings: Mapping[str, _Setting], texts: Mapping[str, str]) -> tuple[dict[str, Any], tuple[Problem, ...]]:
    found: dict[str, Any] = {}
    wrong = []
    for name, setting in settings.items():
        text = texts.get(name, "").strip()
        value = setting.read(text) if text else None
        if value is not None:
            found[setting.member] = value
        elif text:
            wrong.append(Problem(name, f"{name} is {shown(text)}.", f"It must be {setting.takes}."))
    return found, tuple(wrong)
