"""Readers of the texts of options: durations, moments, counts, names. A reader returns None for an invalid text.

A tag's value is at most 256 characters of letters, digits, spaces and `+ - = . _ : / @` (SageMaker API reference,
`Tag`), so commas cannot separate the parts of a list.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from trainmaster.domain.compat import UTC, parse_iso
from trainmaster.domain.jobs.names import MAX_NAME, STAMP
from trainmaster.domain.policy.declaration import MAX_COUNT
from trainmaster.domain.times import YEARS

MAX_DURATION = timedelta(days=28)
"""No attempt runs longer (StoppingCondition, API reference), so no longer duration means anything."""
MAX_NAMES = 16
MAX_POOLS = 8
MAX_LABEL_LENGTH = 63

# Digits of other scripts are digits to Python.
_DURATION = re.compile(r"(?:([0-9]{1,4})d)?(?:([0-9]{1,5})h)?(?:([0-9]{1,6})m)?(?:([0-9]{1,7})s)?")
_SECONDS = re.compile(r"[0-9]{1,7}")
_COUNT = re.compile(r"[0-9]{1,6}")
_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:[0-9]{2})"
)
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_JOB_NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9])*")
_LAMBDA = re.compile(r"arn:aws[a-z-]*:lambda:[a-z0-9-]+:[0-9]{12}:function:[A-Za-z0-9_-]{1,64}(:[A-Za-z0-9_-]{1,128})?")
EVENT = "event"
"""Target of a custom resize that EventBridge announces."""
BETWEEN_NAMES = re.compile(r"[ +]+")


def switch(text: str) -> bool | None:
    """Read `true` or `false`."""
    return {"true": True, "false": False}.get(text)


def duration(text: str) -> timedelta | None:
    """Read seconds such as `1800`, or units in falling order such as `30m`, `1h30m`, `1d`; at most `MAX_DURATION`."""
    if _SECONDS.fullmatch(text):
        span = timedelta(seconds=int(text))
    elif text and (found := _DURATION.fullmatch(text)):
        days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
        span = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    else:
        return None
    return span if span <= MAX_DURATION else None


def moment(text: str) -> datetime | None:
    """Read ISO 8601 with a zone, such as `2026-11-22T08:00:00Z` or `2026-11-22T09:00+01:00`, in UTC."""
    if not _MOMENT.fullmatch(text):
        return None
    try:
        time = parse_iso(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return time if time.year in YEARS else None


def count(text: str) -> int | None:
    """Read a whole number from 0 to `MAX_COUNT`."""
    return int(text) if _COUNT.fullmatch(text) and int(text) <= MAX_COUNT else None


def positive(text: str) -> int | None:
    """Read a whole number from 1 to `MAX_COUNT`."""
    return count(text) or None


def label(text: str) -> str | None:
    """Read the name of a share or group, which must not contain the characters that separate the parts of keys."""
    return text if len(text) <= MAX_LABEL_LENGTH and _LABEL.fullmatch(text) else None


def job_names(text: str) -> tuple[str, ...] | None:
    """Read distinct names of jobs, separated by spaces or `+`: at least one, at most `MAX_NAMES`."""
    names = tuple(dict.fromkeys(name for name in BETWEEN_NAMES.split(text) if name))
    return names if 1 <= len(names) <= MAX_NAMES and all(map(_is_job_name, names)) else None


def pool_names(text: str) -> tuple[str, ...] | None:
    """Read distinct names of pools, separated by spaces or `+`: at least one, at most `MAX_POOLS`."""
    names = tuple(dict.fromkeys(name for name in BETWEEN_NAMES.split(text) if name))
    return names if 1 <= len(names) <= MAX_POOLS and all(map(label, names)) else None


def resize_target(text: str) -> str | None:
    """Read the ARN of a Lambda function, or of a version or alias of one (Lambda API, `FunctionName`); or `event`."""
    return text if text == EVENT or _LAMBDA.fullmatch(text) else None


def _is_job_name(name: str) -> bool:
    return len(name) <= MAX_NAME and STAMP not in name and _JOB_NAME.fullmatch(name) is not None
