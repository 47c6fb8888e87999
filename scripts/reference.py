"""Write the generated sections of pages and of the template; with --check, only report whether they are up to date.

A generated section stands between `<!-- generated: NAME -->` and `<!-- end -->`, in YAML between comments alike.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from datetime import timedelta
from enum import Enum
from pathlib import Path

from trainmaster.domain.capacity.units import MAX_CAP
from trainmaster.domain.document import written
from trainmaster.domain.policy.declaration import MAX_COUNT, Member, members_of, number_type
from trainmaster.domain.policy.settings import (
    TEN_YEARS,
    Budget,
    Expansion,
    FailureClass,
    Gittins,
    Limits,
    Policy,
    Preemption,
    Resizes,
    Retry,
    Share,
    default_retries,
)
from trainmaster.domain.reasons import REASONS
from trainmaster.handlers.api.app import OPERATIONS
from trainmaster.handlers.models.reasons import members_of as reason_members

ROOT = Path(__file__).parent.parent


def reasons() -> str:
    """Return the table of the reasons for waiting."""
    rows = ["| type | members | meaning |", "|---|---|---|"]
    for name, kind in REASONS.items():
        members = ", ".join(f"`{member}`" for member in reason_members(kind))
        rows.append(f"| `{name}` | {members} | {(kind.__doc__ or '').partition(chr(10))[0]} |")
    return "\n".join(rows)


def settings(kind: type) -> Callable[[], str]:
    """Return the renderer of the table of a group of settings."""
    return lambda: "\n".join(
        ["| member | default | meaning |", "|---|---|---|", *(_setting_row(member) for member in members_of(kind))]
    )


def _setting_row(member: Member) -> str:
    default = member.setting.default or _default(member)
    return f"| `{member.name}` | {default} | {member.setting.doc.rstrip('.')}{_allowed(member)}. |"


def _default(member: Member) -> str:
    """Return the default as the document has it; nothing for a group, which has a table of its own."""
    value = written(member.default())
    if isinstance(value, dict) and value:
        return ""
    shown = json.dumps(value).removesuffix(".0")
    return f"`{value}`" if isinstance(value, str) else f"`{shown}`" if isinstance(value, list | dict) else shown


def _allowed(member: Member) -> str:
    """Return the allowed values that the text of the page does not give for all settings."""
    setting, kind = member.setting, number_type(member.type)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return f": {', '.join(f'`{choice}`' for choice in kind)}"
    if setting.max_items is not None:
        return f"; at most {setting.max_items}"
    if kind not in (int, float, timedelta):
        return ""
    if setting.maximum not in _USUAL_MAXIMA:
        return f"; {setting.range()}"
    return f"; more than {setting.minimum:g}" if setting.above_minimum else ""


_USUAL_MAXIMA = (None, TEN_YEARS, MAX_COUNT, MAX_CAP)


def failure_classes() -> str:
    """Return the table of the failure classes with their default number of retries."""
    (keys,) = (member.setting.keys or {} for member in members_of(Policy) if member.name == "retries")
    numbers = {failure: json.dumps(retry.max_retries) for failure, retry in default_retries().items()}
    rows = [f"| `{failure}` | {numbers[failure]} | {keys[failure]} |" for failure in FailureClass]
    return "\n".join(["| class | `maxRetries` | meaning |", "|---|---|---|", *rows])


def events() -> str:
    """Return the events of the API function in the template: one for each route of the queue itself."""
    lines = []
    for name, (_, operation) in OPERATIONS.items():
        path = re.sub("<(.*?)>", r"{\1}", operation.rule)
        lines += [
            f"        {name[0].upper()}{name[1:]}:",
            "          Type: Api",
            f'          Properties: {{ RestApiId: !Ref QueueApi, Method: {operation.method.lower()}, Path: "{path}" }}',
        ]
    return "\n".join(lines)


SECTIONS: Mapping[str, Mapping[str, Callable[[], str]]] = {
    "template.yaml": {"events": events},
    "docs/reference/api.md": {"reasons": reasons},
    "docs/reference/settings.md": {
        "settings": settings(Policy),
        "preemption": settings(Preemption),
        "limits": settings(Limits),
        "gittins": settings(Gittins),
        "expansion": settings(Expansion),
        "resizes": settings(Resizes),
        "share": settings(Share),
        "budget": settings(Budget),
        "retry": settings(Retry),
        "failure classes": failure_classes,
    },
}


_MARKERS = {
    ".md": r"(<!-- generated: {name} [^\n]*-->\n\n).*?(\n\n<!-- end -->)",
    ".yaml": r"(# generated: {name} [^\n]*\n).*?(\n *# end\n)",
}


def rendered(page: str) -> str:
    """Return the text of a page with its generated sections derived from the code."""
    text = (ROOT / page).read_text()
    for name, section in SECTIONS[page].items():
        pattern = re.compile(_MARKERS[Path(page).suffix].format(name=name), re.DOTALL)
        body = section()
        text, found = pattern.subn(lambda match, body=body: match[1] + body + match[2], text)
        if found != 1:
            raise SystemExit(f"{page} has no section {name}")
    return text


def main() -> int:
    """Write the sections, or compare them."""
    stale = [page for page in SECTIONS if (ROOT / page).read_text() != rendered(page)]
    if "--check" in sys.argv[1:]:
        print(f"run scripts/{Path(__file__).name}: {', '.join(stale)}" if stale else "up to date")
        return 1 if stale else 0
    for page in stale:
        (ROOT / page).write_text(rendered(page))
    return 0


if __name__ == "__main__":
    sys.exit(main())
