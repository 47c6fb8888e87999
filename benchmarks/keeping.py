"""What becomes of figures: they are shown, written where that is asked, kept, and shown again. It must not measure."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import ROOT, machine
from benchmarks.sheets import Sheet
from benchmarks.showing import README, as_table, written

RESULTS = ROOT / "benchmarks" / "results"
FIGURES = "figures"
"""The name of what `python -m benchmarks` itself measures: its file of figures has none in its own name."""
Figures = dict[str, Any]


def ask_for_keeping(parser: ArgumentParser) -> None:
    """Give a benchmark the options `--json`, `--save` and `--again`."""
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--save", action="store_true", help="keep them in benchmarks/results, and write its pages")
    parser.add_argument("--again", type=Path, help="measure nothing: write the pages again from these kept figures")


def shown_and_kept(  # noqa: PLR0913 -- what a benchmark has to say of itself
    found: Figures,
    made: Sequence[Sheet],
    options: Namespace,
    console: Console,
    *,
    name: str,
    marks: tuple[str, str],
    draw: Callable[[], Any] | None = None,
) -> None:
    """Show the sheets; write the figures to `options.json`, and keep them and pictures where `options.save` is set.

    Args:
        found: the figures, with the machine's description under `machine`.
        made: the sheets made of them.
        options: with the members `json` and `save`.
        console: where sheets are shown.
        name: of the page of all tables, and the end of the name of the file of figures.
        marks: between which marks of benchmarks/README.md the headline sheets stand.
        draw: draws the pictures that are kept.
    """
    shown(found, made, options, console)
    if options.save:
        if draw is not None:
            draw()
        keep(found, made, console, name=name, marks=marks)


def shown(found: Figures, made: Sequence[Sheet], options: Namespace, console: Console) -> None:
    """Show the sheets, and write the figures to `options.json` where it is given."""
    found["machine"]["load_after"] = machine.load()
    for sheet in made:
        console.print(as_table(sheet))
    if options.json is not None:
        options.json.write_text(_text(found))


def keep(  # noqa: PLR0913 -- what a benchmark has to say of itself
    found: Figures,
    made: Sequence[Sheet],
    console: Console,
    *,
    name: str,
    marks: tuple[str, str],
    meaning: Sequence[str] = (),
) -> None:
    """Keep figures in benchmarks/results, and write them into the README and onto their page."""
    RESULTS.mkdir(exist_ok=True)
    suffix = "" if name == FIGURES else f"-{name}"
    path = RESULTS / f"{machine.label(found['machine'])}{suffix}.json"
    path.write_text(_text(found))
    written(found["machine"], made, path, name=name, marks=marks, meaning=meaning)
    console.print(f"kept in {path.relative_to(ROOT)}, its page {name}.md, and benchmarks/README.md")


def written_again(
    options: Namespace, sheets: Callable[[Figures], Sequence[Sheet]], *, name: str, marks: tuple[str, str]
) -> bool:
    """Write the README and the page from the kept figures of `options.again`; False where none are named."""
    if options.again is None:
        return False
    found = kept(options.again)
    written(found["machine"], sheets(found), options.again, name=name, marks=marks)
    return True


def kept(path: Path) -> Figures:
    """The figures of a file in `results`.

    Raises:
        SystemExit: it lies elsewhere, so there is no README that could link to it.
    """
    readme = path.resolve().parent.parent / README.name
    if path.resolve().parent.name != RESULTS.name or not readme.exists():
        raise SystemExit(f"{path} is not in {RESULTS.relative_to(ROOT)}, where the pages' links lead")
    figures: Figures = json.loads(path.read_text())
    return figures


def _text(found: Figures) -> str:
    return json.dumps(found, indent=1) + "\n"
