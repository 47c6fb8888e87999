"""Audit entries: who changed a job, a setting, a pool or the pause, or exported the queue, when, and from where.

An entry is written in the transaction of its change and never again. What the manager does by itself is in the history
of jobs and pools instead.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from trainmaster.domain.access.redaction import REDACTED, looks_secret, redacted_text
from trainmaster.domain.compat import StrEnum
from trainmaster.domain.text import one_line

MAX_CHANGED_VALUES = 50
"""Changed values that an entry names, at most; it counts the others."""
MAX_AUDIT_TEXT_LENGTH = 256
"""Characters of one value, or of one text about the caller, at most."""
MORE = "..."
"""Name under which an entry counts the changed values that it does not name."""

Values = Mapping[str, Any]
"""Values by path, such as `shares.vision.weight`."""


class AuditAction(StrEnum):
    """The recorded changes."""

    SUBMIT = "submit"
    IMPORT = "import"
    CANCEL = "cancel"
    PURGE = "purge"
    PRIORITY = "priority"
    HOLD = "hold"
    RELEASE = "release"
    SIZE_BOUNDS = "size-bounds"
    RESIZE_ANSWER = "resize-answer"
    SETTINGS = "settings"
    POOLS = "pools"
    PAUSE = "pause"
    RESUME = "resume"
    RESTORE = "restore"
    ADOPT = "adopt"
    EXPORT = "export"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """A recorded change.

    Attributes:
        principal: the role or user of the caller; "" if unknown.
        arn: the caller's ARN, with the name of its session; "" if unknown.
        source_ip: "" if unknown.
        user_agent: the client's own name; "" if unknown.
        request_id: API Gateway's id of the request; "" if unknown.
        job: the changed job; "" for an entry that concerns no single job.
        before: the changed values before.
        after: the same values after.
        expires: when the entry may be deleted; None for never.
    """

    at: datetime
    action: AuditAction
    principal: str = ""
    arn: str = ""
    source_ip: str = ""
    user_agent: str = ""
    request_id: str = ""
    job: str = ""
    before: Values = field(default_factory=dict)
    after: Values = field(default_factory=dict)
    expires: datetime | None = None


def changed_values(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Values, Values]:
    """Return the values that differ between two documents, by path, before and after.

    Lists count as one value. Beyond `MAX_CHANGED_VALUES` values, the number of the others stands under `MORE`.
    """
    was, now = _flat(before), _flat(after)
    paths = [path for path in sorted(was.keys() | now.keys()) if was.get(path) != now.get(path)]
    shown, left = paths[:MAX_CHANGED_VALUES], len(paths[MAX_CHANGED_VALUES:])
    rest = {MORE: left} if left else {}
    return (
        {path: _shown(path, was[path]) for path in shown if path in was} | rest,
        {path: _shown(path, now[path]) for path in shown if path in now} | rest,
    )


def _shown(path: str, value: Any) -> Any:
    return REDACTED if looks_secret(path.rpartition(".")[2]) else short(value)


def short(value: Any) -> Any:
    """Return a value as an entry keeps it: a number, a truth value, None, or one short line of text."""
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
    text = one_line(redacted_text(text))
    return text if len(text) <= MAX_AUDIT_TEXT_LENGTH else text[: MAX_AUDIT_TEXT_LENGTH - 3] + "..."


def _flat(document: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in document.items():
        if isinstance(value, Mapping) and value:
            found |= _flat(value, f"{path}{short(str(key))}.")
        else:
            found[f"{path}{short(str(key))}"] = value
    return found
