"""A table of a benchmark page: columns, rows, and the result that was expected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table with its title and the expected result.

    Attributes:
        title: title of the table.
        columns: headings.
        rows: rows of cells, one for each heading.
        expected: the expected result, with reasons.
        headline: True if the table is in benchmarks/README.md, not only on the benchmark's page.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    expected: str
    headline: bool = False
