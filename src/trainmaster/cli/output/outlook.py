"""Describes when a waiting job will start, what blocks it and what would help, in a few words or in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from trainmaster.cli.output.times import format_moment, format_short_duration
from trainmaster.client.views.moments import parse_timestamp
from trainmaster.domain.reasons import REASONS

if TYPE_CHECKING:
    from trainmaster.client.views.types import ExternalHoldersView, JobView, PlanView, ReasonView, ReservedView, WhyView

SOON = timedelta(seconds=30)
"""A start within this time is shown as `now`."""
_MAX_NAMES = 3
"""Names shown of a list; the others are counted."""


def start_range(job: JobView, now: datetime) -> str:
    """Return when it is likely to start, such as `in 2 h to 5 h`, `within 5 h` or `now`; empty if unknown."""
    expected, low, high = _range(job)
    if expected is None or low is None or high is None:
        return ""
    first, last = parse_timestamp(low) - now, parse_timestamp(high) - now
    if last <= SOON:
        return "now"
    earliest, latest = format_short_duration(first.total_seconds()), format_short_duration(last.total_seconds())
    if first <= SOON:
        return f"within {latest}"
    return f"in {earliest}" if earliest == latest else f"in {earliest} to {latest}"


def start_sentence(view: JobView | PlanView, now: datetime, verb: str = "is") -> str:
    """Return the expected start and its likely range in a sentence; empty if unknown."""
    expected, low, high = _range(view)
    if expected is None:
        return ""
    sentence = f"It {verb} expected to start at {format_moment(expected, now)}"
    if low is not None and high is not None and low != high:
        sentence += f", probably between {format_moment(low, now)} and {format_moment(high, now)}"
    return f"{sentence}."


def deadline_sentence(view: JobView | PlanView) -> str:
    """Return the prospect of meeting the deadline; empty if there is none."""
    deadline = view.get("deadline")
    return f"It {deadline['message']}." if deadline else ""


def wait_sentences(why: WhyView | None) -> Iterator[str]:
    """Yield which jobs hold the capacity, what is reserved, and what would help."""
    if not why:
        return
    if why["inTheWay"]:
        yield f"The capacity it needs is held by {_holders(why)}."
    for holders in why.get("external", ()):
        yield f"Training jobs outside the queue hold {holders['instances']} x {holders['pool']}: {_external(holders)}."
    if why["reserved"] is not None:
        yield _reservation(why["reserved"])
    if rule := why.get("rule"):
        yield rule
    if why["advice"]:
        yield f"Suggestions: {'; or '.join(advice['message'] for advice in why['advice'])}."


def _reservation(reserved: ReservedView) -> str:
    instances = " + ".join(f"{count} x {pool}" for pool, count in reserved["instances"].items())
    when = f", expected to be free at {reserved['at']}" if reserved["at"] else ""
    return f"Reserved for it: {instances}{when}."


def _holders(why: WhyView) -> str:
    holders = [
        f"{holder['jobName']} ({holder['instances']} x {holder['pool']}, {_until(holder)})"
        for holder in why["inTheWay"][:_MAX_NAMES]
    ]
    return _with_more(", ".join(holders), why["jobsInTheWay"] - len(holders))


def _external(holders: ExternalHoldersView) -> str:
    names = holders["trainingJobNames"][:_MAX_NAMES]
    return _with_more(", ".join(names), holders["trainingJobs"] - len(names))


def _with_more(text: str, more: int) -> str:
    return text + (f" and {more} more" if more > 0 else "")


def _until(holder: Mapping[str, object]) -> str:
    if holder["stopping"]:
        return f"stopping, until {holder['expectedEnd']}"
    overdue = ", longer than expected" if holder["overdue"] else ""
    releasing = holder.get("givingBack")
    return (
        f"releasing {releasing} now, the rest " if releasing else ""
    ) + f"until about {holder['expectedEnd']}{overdue}"


def short_reason(job: JobView) -> str:
    """Return why it waits in a few words, and whether its deadline is at risk."""
    reason = job["reason"]
    return "; ".join(part for part in (_format_reason(reason) if reason else "", deadline_risk(job)) if part)


def deadline_risk(job: JobView) -> str:
    """Return in two words that the job's deadline is at risk; empty if it is not."""
    deadline = job.get("deadline")
    return f"deadline {deadline['prospect']}" if deadline and deadline["prospect"] in ("late", "lost") else ""


def _format_reason(reason: ReasonView) -> str:
    """Return the reason in a few words; its message if this version does not know its type."""
    known = REASONS.get(reason["type"])
    try:
        return reason["message"] if known is None else known.brief.format_map(_ReasonFields(reason))
    except (KeyError, TypeError, ValueError):
        return reason["message"]


class _ReasonFields(dict[str, object]):
    """A reason's members; lists of names are joined."""

    def __getitem__(self, key: str) -> object:
        if key == "missing":
            return max(int(str(super().__getitem__("needed"))) - int(str(super().__getitem__("free"))), 0)
        value = super().__getitem__(key)
        return join_names(value) if isinstance(value, list) else value


def join_names(listed: Sequence[object]) -> str:
    """Join the first few names and count the others."""
    return _with_more(", ".join(map(str, listed[:_MAX_NAMES])), len(listed) - _MAX_NAMES)


def _range(view: JobView | PlanView) -> tuple[str | None, str | None, str | None]:
    expected = view["estimatedStart"]
    return expected, view.get("estimatedStartLow") or expected, view.get("estimatedStartHigh") or expected
