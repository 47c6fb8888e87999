"""Sheets on the terminal and in benchmarks/README.md. It must not know what they hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks import ROOT
from benchmarks.sheets import Sheet

README = ROOT / "benchmarks" / "README.md"
MARKS = ("<!-- figures: written by `python -m benchmarks --save` -->", "<!-- end of figures -->")
KUEUE_MARKS = ("<!-- kueue: written by `python -m benchmarks --only kueue --save` -->", "<!-- end of kueue -->")
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
ETA_MARKS = ("<!-- eta: written by `python -m benchmarks.eta --save` -->", "<!-- end of eta -->")


def as_table(sheet: Sheet) -> Table:
    """A sheet for the terminal."""
    table = Table(title=sheet.title, caption=sheet.expected, title_justify="left", caption_justify="left")
    for column in sheet.columns:
        table.add_column(column, overflow="fold")
    for row in sheet.rows:
        table.add_row(*row)
    return table


def written(
    machine: dict[str, Any],
    made: Sequence[Sheet],
    source: Path,
    marks: tuple[str, str] = MARKS,
    meaning: Sequence[str] = (),
) -> None:
    """Put the sheets between the README's marks, below what they come to."""
    before, _, rest = README.read_text().partition(marks[0])
    _, _, after = rest.partition(marks[1])
    README.write_text(f"{before}{marks[0]}{between_marks(machine, made, source, meaning)}{marks[1]}{after}")


def between_marks(machine: dict[str, Any], made: Sequence[Sheet], source: Path, meaning: Sequence[str] = ()) -> str:
    """What stands between the README's marks."""
    said = ["### In short\n\n" + "\n".join(f"- {sentence}" for sentence in meaning)] if meaning else []
    parts = [_machine(machine, source), *said, *("\n".join(_as_markdown(sheet)) for sheet in made)]
    return "\n\n" + "\n\n".join(parts) + "\n\n"


def _machine(machine: dict[str, Any], source: Path) -> str:
    return (
        f"Measured {machine['at'][:10]} at commit {machine['commit']} on {machine['cores']} cores of"
        f" {machine['processor']}, {machine['memory_gb']} GB, {machine['system']}, Python {machine['python']},"
        f" boto3 {machine['boto3']}, {machine['engine']}; load {machine['load']} before and"
        f" {machine['load_after']} after, the benchmark's own"
        f" included. All figures: [{source.name}](results/{source.name})."
    )


def _as_markdown(sheet: Sheet) -> Iterator[str]:
    yield f"### {sheet.title}\n"
    yield _line(sheet.columns)
    yield _line(["---"] * len(sheet.columns))
    yield from map(_line, sheet.rows)
    yield f"\nExpected: {sheet.expected}"


def _line(cells: Any) -> str:
    return "| " + " | ".join(cells) + " |"
