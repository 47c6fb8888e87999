"""Tells when a waiting job will start, what is in its way and what would help: in a few words, or in sentences.

It must not look anything up: all that it says is in the view that it is given, and now is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from trainmaster.cli.output.times import brief_span, parse, told
from trainmaster.domain.reasons import REASONS

if TYPE_CHECKING:
    from trainmaster.client.views.jobs import JobView, PlanView, Reason, Reserved, WhyView

_SOON = timedelta(seconds=30)
_NAMED = 3
"""Names that are told of a list before the others are only counted."""


def starts_in(job: JobView, now: datetime) -> str:
    """When it will start, compact: `in 2 h to 5 h`, `within 5 h`, `now`; empty where that is not known."""
    expected, low, high = _range(job)
    if expected is None or low is None or high is None:
        return ""
    first, last = parse(low) - now, parse(high) - now
    if last <= _SOON:
        return "now"
    one, other = brief_span(first.total_seconds()), brief_span(last.total_seconds())
    if first <= _SOON:
        return f"within {other}"
    return f"in {one}" if one == other else f"in {one} to {other}"


def start_sentence(view: JobView | PlanView, now: datetime, verb: str = "is") -> str:
    """When it is expected to start, and between which times it probably will; empty where that is not known."""
    expected, low, high = _range(view)
    if expected is None:
        return ""
    sentence = f"It {verb} expected to start at {told(expected, now)}"
    if low is not None and high is not None and low != high:
        sentence += f", probably between {told(low, now)} and {told(high, now)}"
    return f"{sentence}."


def deadline_sentence(view: JobView | PlanView) -> str:
    """How it stands to its deadline; empty where it has none."""
    deadline = view.get("deadline")
    return f"It {deadline['message']}." if deadline else ""


def story_sentences(why: WhyView | None) -> Iterator[str]:
    """What is in the way, what is reserved, what would help."""
    if not why:
        return
    if why["inTheWay"]:
        yield f"What it needs is held by {_holders(why)}."
    if why["reserved"] is not None:
        yield _reservation(why["reserved"])
    if why["advice"]:
        yield f"What would help: {'; or '.join(advice['message'] for advice in why['advice'])}."


def _reservation(reserved: Reserved) -> str:
    instances = " + ".join(f"{count} x {pool}" for pool, count in reserved["instances"].items())
    when = f", expected to be free at {reserved['at']}" if reserved["at"] else ""
    return f"{instances} is reserved for it{when}."


def _holders(why: WhyView) -> str:
    told_ = [
        f"{holder['jobName']} ({holder['instances']} x {holder['pool']}, {_until(holder)})"
        for holder in why["inTheWay"][:_NAMED]
    ]
    more = why["jobsInTheWay"] - len(told_)
    return ", ".join(told_) + (f" and {more} more" if more > 0 else "")


def _until(holder: Mapping[str, object]) -> str:
    if holder["stopping"]:
        return f"stopping, until {holder['expectedEnd']}"
    late = ", longer than was expected" if holder["overdue"] else ""
    given = holder.get("givingBack")
    return (f"giving {given} back now, the rest " if given else "") + f"until about {holder['expectedEnd']}{late}"


def brief_reason(job: JobView) -> str:
    """Why it waits, in a few words; and whether its deadline is at risk."""
    reason, deadline = job["reason"], job.get("deadline")
    risk = f"deadline {deadline['prospect']}" if deadline and deadline["prospect"] in ("late", "lost") else ""
    return "; ".join(part for part in (_brief(reason) if reason else "", risk) if part)


def _brief(reason: Reason) -> str:
    """Return the reason in a few words; its message if this version does not know its type."""
    known = REASONS.get(reason["type"])
    try:
        return reason["message"] if known is None else known.brief.format_map(_Members(reason))
    except (KeyError, TypeError):
        return reason["message"]


class _Members(dict[str, object]):
    """A reason's members, lists of names in words."""

    def __getitem__(self, key: str) -> object:
        if key == "missing":
            return max(int(str(super().__getitem__("needed"))) - int(str(super().__getitem__("free"))), 0)
        value = super().__getitem__(key)
        return names(value) if isinstance(value, list) else value


def names(listed: Sequence[object]) -> str:
    """The first few of a list of names, and how many more there are."""
    more = len(listed) - _NAMED
    return ", ".join(map(str, listed[:_NAMED])) + (f" and {more} more" if more > 0 else "")


def _range(view: JobView | PlanView) -> tuple[str | None, str | None, str | None]:
    expected = view["estimatedStart"]
    return expected, view.get("estimatedStartLow") or expected, view.get("estimatedStartHigh") or expected
