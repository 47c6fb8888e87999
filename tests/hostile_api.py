"""A fake API whose answers have a given text in every name, reason, host and message."""

from __future__ import annotations

import re
from typing import Any

from fake_api import FakeApi

HOSTILE = (
    "\x1b]0;owned\x07\x1b[2J\x1b[31m\x1b[8m\x9b2J\r\n\nFAKE running\t\x00\x7f\u202eevil\u2066\u200b\u2028\u2029"
    "[bold red]loud[/][link=x]\U000e0041"
)
"""Escapes of terminals (title, clear, color, conceal), other controls, bidi overrides, and markup."""
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT.*")
_CLOSED = frozenset(
    {
        *("jobState", "kind", "from", "to", "hook", "state", "decision", "change", "prospect", "cause"),
        *("order", "lending"),
    }
)
"""Members whose values are the API's own words."""
_BY_NAME = frozenset({"shares", "nominal", "demand", "units", "instances", "wouldTake"})
"""Members whose own members are names of shares and pools."""


def with_text(answer: Any, text: str, key: str = "") -> Any:
    """Append the text to every string of an answer that is not a moment and not one of the API's own words."""
    if isinstance(answer, dict):
        named = text if key in _BY_NAME else ""
        return {name + named: with_text(value, text, name) for name, value in answer.items()}
    if isinstance(answer, list):
        # A list of shares has their members; only in settings are they by name.
        return [with_text(value, text, "" if key == "shares" else key) for value in answer]
    if not isinstance(answer, str) or key in _CLOSED or _MOMENT.fullmatch(answer):
        return answer
    return answer + text


class HostileApi(FakeApi):
    """The fake API with the text in its answers; its jobs and pools are found by names with and without the text."""

    text = HOSTILE

    def _answer(self, environ: dict[str, Any]) -> tuple[int, Any]:
        status, answer = super()._answer(environ)
        schema = environ["PATH_INFO"].endswith("/openapi.json")
        return status, answer if schema else with_text(answer, self.text)

    def _job(self, name: str) -> dict[str, Any]:
        return super()._job(next((known for known in self.jobs if name.startswith(known)), name))

    def _pool(self, name: str) -> dict[str, Any]:
        names = [pool["name"] for pool in self.pools["pools"]]
        return super()._pool(next((known for known in names if name.startswith(known)), name))
