"""Options that take a time: an absolute one, or a duration before or after now."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import typer

from trainmaster.domain.compat import UTC, parse_iso

WHEN = "a time such as 2030-01-31 or 2030-01-31T12:00, local unless it names its zone, or a duration before now, as 2h"
"""The forms of such an option, for its help."""
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_DISTANCE = re.compile(r"(\+?)([0-9]{1,5})([smhdw])")


def moment_option(text: str | None, now: datetime, option: str = "--since") -> str | None:
    """Return the time of an option in the API's format; without a zone, it is in that of `now`.

    A duration counts back from now, and forward after a plus sign, as `+2h`. Raises `BadParameter`.
    """
    if text is None:
        return None
    if (far := _DISTANCE.fullmatch(text.lower())) is not None:
        span = timedelta(seconds=int(far[2]) * _SECONDS[far[3]])
        return (now + span if far[1] else now - span).astimezone(UTC).isoformat()
    try:
        moment = parse_iso(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)).astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        raise typer.BadParameter(f"{text!r} is not a time: use {WHEN}", param_hint=f"'{option}'") from None
