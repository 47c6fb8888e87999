"""A table of a benchmark page: columns, rows, and the result that was expected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table to be shown.

    Attributes:
        title: what it is about.
        columns: headings.
        rows: as many texts in each as there are headings.
        expected: what was to be expected, and why.
        headline: whether it stands in benchmarks/README.md, and not only on the benchmark's page of all tables.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    expected: str
    headline: bool = False
