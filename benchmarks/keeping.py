"""What becomes of figures: they are shown, written where that is asked, and kept. It must not measure anything."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import ROOT, machine
from benchmarks.sheets import Sheet
from benchmarks.showing import as_table, written

RESULTS = ROOT / "benchmarks" / "results"


def shown_and_kept(  # noqa: PLR0913 -- what a benchmark has to say of itself
    found: dict[str, Any],
    made: Sequence[Sheet],
    options: Namespace,
    console: Console,
    *,
    name: str,
    marks: tuple[str, str],
    draw: Callable[[], None] | None = None,
) -> None:
    """Show the sheets; write the figures to `options.json`, and keep them and pictures where `options.save` is set.

    Args:
        found: the figures, with the machine's description under `machine`.
        made: the sheets made of them.
        options: with the members `json` and `save`.
        console: where sheets are shown.
        name: end of the name of the file that is kept.
        marks: between which marks of benchmarks/README.md the sheets stand.
        draw: draws the pictures that are kept.
    """
    found["machine"]["load_after"] = machine.load()
    for sheet in made:
        console.print(as_table(sheet))
    text = json.dumps(found, indent=1) + "\n"
    if options.json is not None:
        options.json.write_text(text)
    if options.save:
        RESULTS.mkdir(exist_ok=True)
        if draw is not None:
            draw()
        path: Path = RESULTS / f"{machine.label(found['machine'])}-{name}.json"
        path.write_text(text)
        written(found["machine"], made, path, marks)
        console.print(f"kept in {path.relative_to(ROOT)} and benchmarks/README.md")
