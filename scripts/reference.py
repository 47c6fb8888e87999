"""Write the generated sections of docs/reference; with --check, only report whether they are up to date.

A generated section stands between `<!-- generated: NAME -->` and `<!-- end -->`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from trainmaster.domain.reasons import REASONS
from trainmaster.handlers.models.reasons import members_of

ROOT = Path(__file__).parent.parent
REFERENCE = ROOT / "docs" / "reference"


def reasons() -> str:
    """Return the table of the reasons for waiting."""
    rows = ["| type | members | meaning |", "|---|---|---|"]
    for name, kind in REASONS.items():
        members = ", ".join(f"`{member}`" for member in members_of(kind))
        rows.append(f"| `{name}` | {members} | {(kind.__doc__ or '').partition(chr(10))[0]} |")
    return "\n".join(rows)


SECTIONS: Mapping[str, Mapping[str, Callable[[], str]]] = {"api.md": {"reasons": reasons}}


def rendered(page: str) -> str:
    """Return the text of a page with its generated sections derived from the code."""
    text = (REFERENCE / page).read_text()
    for name, section in SECTIONS[page].items():
        pattern = re.compile(rf"(<!-- generated: {name} [^\n]*-->\n\n).*?(\n\n<!-- end -->)", re.DOTALL)
        body = section()
        text, found = pattern.subn(lambda match, body=body: match[1] + body + match[2], text)
        if found != 1:
            raise SystemExit(f"{page} has no section {name}")
    return text


def main() -> int:
    """Write the sections, or compare them."""
    stale = [page for page in SECTIONS if (REFERENCE / page).read_text() != rendered(page)]
    if "--check" in sys.argv[1:]:
        print(f"run scripts/{Path(__file__).name}: {', '.join(stale)}" if stale else "up to date")
        return 1 if stale else 0
    for page in stale:
        (REFERENCE / page).write_text(rendered(page))
    return 0


if __name__ == "__main__":
    sys.exit(main())
