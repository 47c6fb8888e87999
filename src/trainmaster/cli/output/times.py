"""Formats timestamps and durations for people, from the API's ISO 8601."""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from trainmaster.client.views.moments import parse_timestamp, stamp, stamp_with_zone
from trainmaster.client.views.wording import sentence_of
from trainmaster.domain.compat import UTC

if TYPE_CHECKING:
    from trainmaster.client.views.types import JobView

_ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)")
_SHORT = {"second": "s", "minute": "min", "hour": "h", "day": "d"}
_UNITS = (("second", 1, 90.0), ("minute", 60, 90.0), ("hour", 3_600, 48.0), ("day", 86_400, math.inf))

# Below so many seconds: the unit, and the smaller unit that is added to it.
_COMPACT = (
    (120, 1, "s", 0, ""),
    (600, 60, "m", 1, "s"),
    (10_800, 60, "m", 0, ""),
    (28_800, 3_600, "h", 60, "m"),
    (172_800, 3_600, "h", 0, ""),
    (691_200, 86_400, "d", 3_600, "h"),
)


def timestamp(iso: str | None, now: datetime) -> str:
    """Format a timestamp in the zone of `now`, to the second; empty for None."""
    return stamp(iso, now.tzinfo) if iso else ""


def format_moment(iso: str, now: datetime) -> str:
    """Format a timestamp in the zone of `now`, with its distance: `2030-01-01 12:00:00 UTC (in 3 hours)`."""
    return f"{stamp_with_zone(iso, now.tzinfo)} ({relative_time(parse_timestamp(iso) - now)})"


def add_seconds(iso: str, seconds: float) -> str:
    """Return the timestamp so many seconds later, in the API's format."""
    return (parse_timestamp(iso) + timedelta(seconds=seconds)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_moments(text: str, now: datetime) -> str:
    """Reformat all ISO timestamps in a text of the API, in the zone of `now`."""
    return _ISO.sub(lambda found: _format_if_moment(found[0], now), text)


def job_sentence(job: JobView, now: datetime) -> str:
    """Return the job's state in one sentence, with all times in the zone of `now`."""
    return format_moments(sentence_of(job, now.tzinfo), now)


def _format_if_moment(text: str, now: datetime) -> str:
    """Return the moment; a text that only looks like one, such as the 45th of May, stays as it is."""
    try:
        return format_moment(text, now)
    except ValueError:
        return text


def relative_time(delta: timedelta) -> str:
    """Format a distance from now: `in 3 hours`, `2 days ago`, `now`."""
    seconds = round(delta.total_seconds())
    if seconds == 0:
        return "now"
    return f"in {format_duration(seconds)}" if seconds > 0 else f"{format_duration(-seconds)} ago"


def format_duration(seconds: float) -> str:
    """Format a duration in one suitable unit: `80 seconds`, `80 minutes`, `40 hours`, `3 days`."""
    name, size = next((name, size) for name, size, below in _UNITS if round(seconds / size) < below)
    count = round(seconds / size)
    return f"{count} {name}" if count == 1 else f"{count} {name}s"


def format_short_duration(seconds: float) -> str:
    """Format a duration in one short unit: `45 s`, `12 min`, `5 h`, `3 d`."""
    name, size = next((name, size) for name, size, below in _UNITS if round(seconds / size) < below)
    return f"{round(seconds / size)} {_SHORT[name]}"


def compact_duration(seconds: float) -> str:
    """Format a duration as kubectl does, in at most five characters: `95s`, `9m59s`, `170m`, `7h5m`, `40h`, `3d4h`."""
    whole = max(round(seconds), 0)
    for below, size, unit, small, part in _COMPACT:
        if whole < below:
            rest = whole % size // small if small else 0
            return f"{whole // size}{unit}" + (f"{rest}{part}" if rest else "")
    return f"{whole // 86_400}d"


def compact_moment(iso: str | None, now: datetime) -> str:
    """Format a timestamp in the zone of `now`, in six characters: `14:05` of today, else `Nov 20`; empty for None."""
    if not iso:
        return ""
    moment = parse_timestamp(iso).astimezone(now.tzinfo)
    return f"{moment:%H:%M}" if moment.date() == now.date() else f"{moment:%b %d}"


def elapsed_time(start: str | None, end: str | None, now: datetime) -> str:
    """Format the time from start to end (or now): `1:02:03`; empty if it has not started."""
    if not start:
        return ""
    seconds = max(round(((parse_timestamp(end) if end else now) - parse_timestamp(start)).total_seconds()), 0)
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
