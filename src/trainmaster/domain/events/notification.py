"""Notifications for people: the e-mail text, and the message that Amazon Q Developer shows in Slack and Teams."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from trainmaster.domain.events.types import EventType
from trainmaster.domain.text import one_line

MAX_SUBJECT = 100
"""Characters of an e-mail's subject, which must be ASCII (SNS API, `Publish`)."""
_VERBS = {
    EventType.STARTED: "started",
    EventType.PREEMPTED: "was preempted",
    EventType.RESUMED: "resumed",
    EventType.RESIZED: "was resized",
    EventType.INFEASIBLE: "fits in no pool",
}
_ENDS = {"completed": "completed", "failed": "failed", "stopped": "was stopped", "cancelled": "was cancelled"}
_MINUTE, _HOUR = 60, 3600
ATTRIBUTES = {"type": "type", "state": "to", "share": "share", "user": "submittedBy", "job": "jobName"}
"""Attributes by which subscriptions filter, and the members of the detail that they are."""


def subject(detail: Mapping[str, Any]) -> str:
    """Return the headline of an event, such as `my-job was preempted (queue sagemaker-queue)`."""
    verb = _VERBS.get(detail["type"]) or _ENDS.get(detail["to"], str(detail["to"]))
    return one_line(f"{detail['jobName']} {verb} (queue {detail['queue']})")[:MAX_SUBJECT]


def email_text(detail: Mapping[str, Any]) -> str:
    """Return the text of an e-mail: the headline, then a line for each fact."""
    width = max(len(name) for name, _ in _facts(detail))
    lines = (f"{name + ':':<{width + 1}} {value}" for name, value in _facts(detail))
    return "\n".join([subject(detail), "", *lines, ""])


def chat_message(detail: Mapping[str, Any]) -> str:
    """Return a custom notification of Amazon Q Developer in chat applications, as JSON.

    Format: "Custom notifications using Amazon Q Developer in chat applications", administrator guide.
    """
    facts = "\n".join(f"*{name}:* {_plain(value)}" for name, value in _facts(detail))
    message = {
        "version": "1.0",
        "source": "custom",
        "id": f"{detail['jobName']}-{detail['sequence']}",
        "content": {"textType": "client-markdown", "title": _plain(subject(detail)), "description": facts},
        "metadata": {
            # Messages of one job appear as one thread.
            "threadId": detail["jobName"],
            "summary": _plain(subject(detail)),
            "eventType": detail["type"],
            "additionalContext": attributes(detail),
        },
    }
    return json.dumps(message)


def attributes(detail: Mapping[str, Any]) -> dict[str, str]:
    """Return the attributes of a message; SNS takes no empty ones."""
    return {name: str(detail[member]) for name, member in ATTRIBUTES.items() if detail.get(member)}


def _facts(detail: Mapping[str, Any]) -> list[tuple[str, str]]:
    held = ", ".join(f"{count} x {pool}" for pool, count in detail.get("units", {}).items())
    lost = detail.get("lostSeconds")
    found = {
        "Reason": detail["reason"]["message"],
        "State": detail["to"],
        "Time": detail["at"],
        "Preempted by": detail.get("preemptedBy"),
        "Work lost": None if lost is None else _duration(lost),
        "Instances": held,
        "Attempt": detail.get("attempt"),
        "Training job": detail.get("trainingJobName"),
        "Share": detail["share"],
        "Submitted by": detail.get("submittedBy"),
    }
    return [(name, one_line(str(value))) for name, value in found.items() if value not in (None, "")]


def _duration(seconds: int) -> str:
    if seconds < _MINUTE:
        return f"{seconds} s"
    hours, minutes = seconds // _HOUR, seconds % _HOUR // _MINUTE
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def _plain(text: str) -> str:
    """Return the text without the signs that begin links and mentions in chat programs."""
    return text.translate({ord("<"): "(", ord(">"): ")", ord("@"): "(at)"})
