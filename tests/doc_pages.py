"""Reading the pages under docs/ for tests that hold them against the code."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
Row = list[str]
describes_all_kinds = pytest.mark.skipif(
    find_spec("trainmaster.images") is None, reason="the committed references describe jobs of all kinds"
)
"""Marks tests that make a committed reference again."""


def section(page: Path, title: str) -> str:
    """The text under a heading of the second level."""
    return page.read_text().split(f"\n## {title}\n")[1].split("\n## ")[0]


def table(text: str, first_column: str) -> list[Row]:
    """The rows of the one table whose first heading is that."""
    found: list[Row] = []
    for line in text.partition(f"| {first_column} |")[2].splitlines()[2:]:
        if not line.startswith("|"):
            break
        found.append([cell.strip() for cell in line.strip("|").split("|")])
    assert found, f"no table begins with {first_column}"
    return found


def plain(cell: str) -> str:
    """A cell without the marks of code."""
    return cell.strip("`")
