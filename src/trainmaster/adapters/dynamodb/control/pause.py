"""The pause of the manager, as an attribute of the row that counts passes: no pass begins while it is there."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from trainmaster.adapters.dynamodb.rows import moment
from trainmaster.ports.store import Pause

PAUSED = "paused"
"""Attribute of `STATE` / `control`. docs/how-to/restore.md has administrators set it by hand."""


def pause_text(pause: Pause) -> str:
    """Return the attribute's text."""
    return json.dumps({"reason": pause.reason, "by": pause.by, "at": moment(pause.at)}, separators=(",", ":"))


def pause_of(attribute: Any) -> Pause:
    """Return the pause of the attribute, which a person may have written."""
    text = attribute.get("S", "")
    try:
        values = json.loads(text)
        return Pause(str(values["reason"]), str(values.get("by", "")), datetime.fromisoformat(values["at"]))
    except (ValueError, TypeError, KeyError, AttributeError):
        return Pause(text or "set in the table", "", datetime.fromisoformat("1970-01-01T00:00:00+00:00"))
