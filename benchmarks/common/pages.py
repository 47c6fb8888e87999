"""Writes tables to the terminal, to benchmarks/README.md, and to a page of all tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks import ROOT
from benchmarks.common.table import ReportTable

README = ROOT / "benchmarks" / "README.md"
MARKS = ("<!-- figures: written by `python -m benchmarks --save` -->", "<!-- end of figures -->")
KUEUE_MARKS = ("<!-- kueue: written by `python -m benchmarks --only kueue --save` -->", "<!-- end of kueue -->")
DAYS_MARKS = ("<!-- days: written by `python -m benchmarks --only days --save` -->", "<!-- end of days -->")
REPLAY_MARKS = ("<!-- replay: written by `python -m benchmarks.replay --save` -->", "<!-- end of replay -->")
PLACEMENT_MARKS = (
    "<!-- placement: written by `python -m benchmarks.placement --save` -->",
    "<!-- end of placement -->",
)
ELASTIC_MARKS = ("<!-- elastic: written by `python -m benchmarks.elastic --save` -->", "<!-- end of elastic -->")
RENDEZVOUS_MARKS = (
    "<!-- rendezvous: written by `python -m benchmarks.rendezvous --save` -->",
    "<!-- end of rendezvous -->",
)
IMAGES_MARKS = ("<!-- images: written by `python -m benchmarks.images --save` -->", "<!-- end of images -->")
TILES_MARKS = ("<!-- tiles: written by `python -m benchmarks.images.tiles --save` -->", "<!-- end of tiles -->")
CONSOLE_MARKS = ("<!-- console: written by `python -m benchmarks.console --save` -->", "<!-- end of console -->")
ETA_MARKS = ("<!-- eta: written by `python -m benchmarks.replay.estimates --save` -->", "<!-- end of eta -->")


def rich_table(sheet: ReportTable) -> Table:
    """Return a table for the terminal."""
    table = Table(title=sheet.title, caption=sheet.expected, title_justify="left", caption_justify="left")
    for column in sheet.columns:
        table.add_column(column, overflow="fold")
    for row in sheet.rows:
        table.add_row(*row)
    return table


def write_pages(  # noqa: PLR0913 -- the parts of a benchmark's report
    machine: dict[str, Any],
    tables: Sequence[ReportTable],
    source: Path,
    *,
    name: str,
    marks: tuple[str, str],
    summary: Sequence[str] = (),
) -> None:
    """Write the benchmark's part of the README, and the page of all tables beside the figures.

    Args:
        machine: what the figures were measured on.
        tables: the sheets made of them.
        source: the file of the figures, in the folder `results` beside the README.
        name: the page's, without `.md`.
        marks: between which of the README's marks the benchmark's part stands.
        summary: sentences for the README that say what the figures come to.

    Raises:
        ValueError: the README has not these marks.
    """
    source = source.resolve()
    readme = source.parent.parent / README.name
    before, begun, rest = readme.read_text().partition(marks[0])
    _, ended, after = rest.partition(marks[1])
    if not begun or not ended:
        raise ValueError(f"{readme} has no {marks[0]}, or no {marks[1]} after it")
    part = readme_section(machine, tables, source, name=name, summary=summary)
    readme.write_text(f"{before}{begun}{part}{ended}{after}")
    section = before.rpartition("\n## ")[2].partition("\n")[0]
    source.with_name(f"{name}.md").write_text(page(machine, tables, source, section))


def readme_section(
    machine: dict[str, Any], tables: Sequence[ReportTable], source: Path, *, name: str, summary: Sequence[str] = ()
) -> str:
    """Return the benchmark's part of the README: summary and headline tables."""
    folder = source.parent.name
    summary_part = ["### Summary\n\n" + "\n".join(f"- {sentence}" for sentence in summary)] if summary else []
    top = (
        f"{_machine(machine)}\n"
        f"**All tables: [{folder}/{name}.md]({folder}/{name}.md)**, figures of the tables:"
        f" [{source.name}]({folder}/{source.name})."
    )
    tables = ("\n".join(_as_markdown(sheet, "###")) for sheet in tables if sheet.headline)
    return "\n\n" + "\n\n".join([top, *summary_part, *tables]) + "\n\n"


def page(machine: dict[str, Any], tables: Sequence[ReportTable], source: Path, section: str) -> str:
    """Return the page of all tables of the benchmark with this section in the README."""
    anchor = re.sub(r"[^\w -]", "", section.lower()).replace(" ", "-")
    top = (
        f"{_machine(machine)}\n"
        f"Method and conclusions: [{section}](../README.md#{anchor})."
        f" Figures of these tables: [{source.name}]({source.name}). The benchmark generates this page; do not edit it."
    )
    tables = ("\n".join(_as_markdown(sheet, "##")) for sheet in tables)
    return "\n\n".join([f"# {section}: all tables", top, *tables]) + "\n"


def _machine(machine: dict[str, Any]) -> str:
    return (
        f"Measured {machine['at'][:10]} at commit {machine['commit']} on {machine['cores']} cores of"
        f" {machine['processor']}, {machine['memory_gb']} GB, {machine['system']}, Python {machine['python']},"
        f" boto3 {machine['boto3']}, {machine['engine']}; load {machine['load']} before and"
        f" {machine['load_after']} after, including the benchmark's own."
    )


def _as_markdown(sheet: ReportTable, heading: str) -> Iterator[str]:
    yield f"{heading} {sheet.title}\n"
    yield _line(sheet.columns)
    yield _line(["---"] * len(sheet.columns))
    yield from map(_line, sheet.rows)
    yield f"\nExpected: {sheet.expected}"


def _line(cells: Any) -> str:
    return "| " + " | ".join(cells) + " |"
