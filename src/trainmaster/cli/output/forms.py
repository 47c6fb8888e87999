"""Forms of output that tables have for programs: JSON, YAML and comma-separated values."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Annotated

import typer

from trainmaster.domain.compat import StrEnum


class Form(StrEnum):
    """Forms of the output."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"


Output = Annotated[Form, typer.Option("--output", "-o", metavar="FORM", help="table; json; yaml; or csv.")]


def csv_text(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return comma-separated values, without the end of the last line."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(headers)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return out.getvalue().rstrip("\n")


def _cell(value: object) -> object:
    """Return a value that spreadsheets do not take for a formula (OWASP, "CSV Injection")."""
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@")) else value
