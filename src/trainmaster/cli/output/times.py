"""Moments and durations for people: from the API's ISO 8601 to words.

It must not read a clock: now is given.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta

_ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)")
_SHORT = {"second": "s", "minute": "min", "hour": "h", "day": "d"}
_UNITS = (("second", 1, 90.0), ("minute", 60, 90.0), ("hour", 3_600, 48.0), ("day", 86_400, math.inf))


def parse(iso: str) -> datetime:
    """The moment that the API wrote; without an offset it is UTC."""
    moment = datetime.fromisoformat(iso)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def stamp(iso: str | None) -> str:
    """A moment in UTC, to the second; empty for none."""
    return parse(iso).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S") if iso else ""


def told(iso: str, now: datetime) -> str:
    """A moment in UTC and how far it is from now: `2030-01-01 12:00:00 UTC (in 3 hours)`."""
    return f"{stamp(iso)} UTC ({distance(parse(iso) - now)})"


def later(iso: str, seconds: float) -> str:
    """So many seconds after a moment, as the API would write it."""
    return (parse(iso) + timedelta(seconds=seconds)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def with_moments(text: str, now: datetime) -> str:
    """A text of the API whose ISO moments are told for people."""
    return _ISO.sub(lambda found: told(found[0], now), text)


def distance(delta: timedelta) -> str:
    """How far something is from now: `in 3 hours`, `2 days ago`, `now`."""
    seconds = round(delta.total_seconds())
    if seconds == 0:
        return "now"
    return f"in {span(seconds)}" if seconds > 0 else f"{span(-seconds)} ago"


def span(seconds: float) -> str:
    """A duration in one unit that is fine enough: `80 seconds`, `80 minutes`, `40 hours`, `3 days`."""
    name, size = next((name, size) for name, size, below in _UNITS if round(seconds / size) < below)
    count = round(seconds / size)
    return f"{count} {name}" if count == 1 else f"{count} {name}s"


def brief_span(seconds: float) -> str:
    """A duration in one short unit: `45 s`, `12 min`, `5 h`, `3 d`."""
    name, size = next((name, size) for name, size, below in _UNITS if round(seconds / size) < below)
    return f"{round(seconds / size)} {_SHORT[name]}"


def lasted(start: str | None, end: str | None, now: datetime) -> str:
    """How long something went on, until now where it has not ended: `1:02:03`; empty where it has not begun."""
    if not start:
        return ""
    seconds = max(round(((parse(end) if end else now) - parse(start)).total_seconds()), 0)
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
