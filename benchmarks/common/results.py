"""Prints the tables of a benchmark, writes its figures, saves them in `benchmarks/results`, and rewrites its pages."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import ROOT
from benchmarks.common import machine
from benchmarks.common.pages import README, rich_table, write_pages
from benchmarks.common.table import ReportTable

RESULTS = ROOT / "benchmarks" / "results"
FIGURES = "figures"
"""Name of the page of `python -m benchmarks`; the names of the other benchmarks end the names of their files."""
DETAILS = frozenset(
    {
        *("timeline", "by_size", "jain", "lost_gpu_hours"),
        *("p50_jct_s", "avg_wait_s", "p50_wait_s", "p99_wait_s", "p50_wait_large_s"),
        *("p99_jct_elastic_s", "avg_wait_elastic_s", "p99_jct_rigid_s", "avg_wait_rigid_s"),
        *("chain", "repeat", "imports", "meets"),
        *("refused", "least_and_most_reads", "dollars_per_1000_passes", "busy_s", "processor_s"),
    }
)
"""Members that no table shows. `--json` writes them; the saved files omit them."""
Figures = dict[str, Any]


def add_output_options(parser: ArgumentParser) -> None:
    """Add the options `--json`, `--save` and `--again`."""
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--save", action="store_true", help="save figures in benchmarks/results and write the pages")
    parser.add_argument("--again", type=Path, help="measure nothing; write the pages from this file of saved figures")


def report(  # noqa: PLR0913 -- the parts of a benchmark's report
    found: Figures,
    tables: Sequence[ReportTable],
    options: Namespace,
    console: Console,
    *,
    name: str,
    marks: tuple[str, str],
    draw: Callable[[], Any] | None = None,
) -> None:
    """Print the tables, write the figures to `options.json`, and save figures and pictures with `options.save`.

    Args:
        found: figures, with the description of the machine under `machine`.
        tables: made of the figures.
        options: with the members `json` and `save`.
        console: where the tables are printed.
        name: name of the page, and end of the name of the file of figures.
        marks: begin and end of the benchmark's part of benchmarks/README.md.
        draw: draws the pictures to save.
    """
    print_tables(found, tables, options, console)
    if options.save:
        if draw is not None:
            draw()
        save_results(found, tables, console, name=name, marks=marks)


def print_tables(found: Figures, tables: Sequence[ReportTable], options: Namespace, console: Console) -> None:
    """Print the tables, and write all figures to `options.json` if given."""
    found["machine"]["load_after"] = machine.load()
    for table in tables:
        console.print(rich_table(table))
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


def save_results(  # noqa: PLR0913 -- the parts of a benchmark's report
    found: Figures,
    tables: Sequence[ReportTable],
    console: Console,
    *,
    name: str,
    marks: tuple[str, str],
    summary: Sequence[str] = (),
) -> None:
    """Save the figures of the tables in `benchmarks/results`, and write the pages."""
    RESULTS.mkdir(exist_ok=True)
    suffix = "" if name == FIGURES else f"-{name}"
    path = RESULTS / f"{machine.label(found['machine'])}{suffix}.json"
    path.write_text(saved_text(found))
    write_pages(found["machine"], tables, path, name=name, marks=marks, summary=summary)
    console.print(f"saved in {path.relative_to(ROOT)}, its page {name}.md, and benchmarks/README.md")


def rewrite_pages(
    options: Namespace, make_tables: Callable[[Figures], Sequence[ReportTable]], *, name: str, marks: tuple[str, str]
) -> bool:
    """Write the pages from the saved figures of `options.again`; return False if the option is not given."""
    if options.again is None:
        return False
    found = load_results(options.again)
    write_pages(found["machine"], make_tables(found), options.again, name=name, marks=marks)
    return True


def load_results(path: Path) -> Figures:
    """Return the figures of a file in `benchmarks/results`.

    Raises:
        SystemExit: the file is in another folder, so no README can link to it.
    """
    readme = path.resolve().parent.parent / README.name
    if path.resolve().parent.name != RESULTS.name or not readme.exists():
        raise SystemExit(f"{path} is not in {RESULTS.relative_to(ROOT)}, so the pages cannot link to it")
    figures: Figures = json.loads(path.read_text())
    return figures


def saved_text(found: Figures) -> str:
    """Return the JSON text of figures without `DETAILS`, one line for each row."""
    return "\n".join(_lines(_without_details(found))) + "\n"


def _without_details(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_details(member) for name, member in value.items() if name not in DETAILS}
    return [_without_details(member) for member in value] if isinstance(value, list) else value


def _lines(found: Figures, indent: str = "") -> Iterator[str]:
    """Yield lines of JSON: lists of objects have a line for each object, everything else is on one line."""
    yield "{"
    last = len(found) - 1
    for place, (name, value) in enumerate(found.items()):
        comma = "," if place < last else ""
        if isinstance(value, list) and value and isinstance(value[0], dict):
            rows = ",\n".join(f"{indent}  {json.dumps(row)}" for row in value)
            yield f"{indent} {json.dumps(name)}: [\n{rows}\n{indent} ]{comma}"
        else:
            yield f"{indent} {json.dumps(name)}: {json.dumps(value)}{comma}"
    yield f"{indent}}}"
