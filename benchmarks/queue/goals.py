"""The goals, and whether the figures meet them. Measured values are compared unrounded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.queue.planning import GOALS_MS
from benchmarks.startup.command_line import GOALS_MS as GOALS_OF_COMMANDS_MS

MAX_UNITS = 25
MAX_READS_BEHIND = 30
"""Read units of a job behind a deep queue with 80 running jobs; of write units, MAX_UNITS."""
MAX_IMPORT_MS = 200
MAX_IMPORT_SHARE = 0.5
"""Of what the same import takes without compiled files."""
MAX_ZIPPED_MB = 20
GOAL_STORIES = ("alone", "alone, text that does not compress", "burst, one pool of 8", "burst, four pools of 8")
Figures = dict[str, Any]


def goals(figures: Figures) -> Iterator[Sequence[str]]:
    """Yield each goal with a figure: name, maximum, measured value, yes or no."""
    yield from _units(figures)
    yield from _depths(figures)
    yield from _planner(figures)
    yield from _start(figures)


def _units(figures: Figures) -> Iterator[Sequence[str]]:
    for one in figures.get("life", ()):
        if one["name"] in GOAL_STORIES:
            for kind in ("write", "read"):
                units = one["job"][f"{kind}_units"]
                what = f"{kind} units of a job's life: {one['name']}"
                yield _row(what, MAX_UNITS, units, "{:.1f}")
    for one in figures.get("depth", ())[-1:]:
        for kind, most in (("write", MAX_UNITS), ("read", MAX_READS_BEHIND)):
            whole = one["submit"][f"{kind}_units"] + one["turn"][f"{kind}_units"]
            what = f"{kind} units of a job behind {one['waiting']:,} others, 80 running (submission and turn)"
            yield _row(what, most, whole, "{:.1f}")


def _depths(figures: Figures) -> Iterator[Sequence[str]]:
    """Yield the goal of the same reads, writes and calls at every depth."""
    depths = figures.get("depth", ())
    if len(depths) > 1:
        costs = [tuple(one["pass"][unit] for unit in ("read_units", "write_units", "calls")) for one in depths]
        shown = " / ".join(f"{reads:g} R {writes:g} W {calls:g} calls" for reads, writes, calls in costs)
        yield ("a pass costs the same at every depth", "equal", shown, _yes(len(set(costs)) == 1))


def _planner(figures: Figures) -> Iterator[Sequence[str]]:
    for size, most in GOALS_MS.items():
        taken = [one for one in figures.get("planner", ()) if one["active"] == size]
        if taken:
            worst = max(taken, key=lambda one: one["median_ms"])
            what = f"planning of {size:,} active + {size:,} considered, ms (most expensive kind: {worst['kind']})"
            yield _row(what, most, worst["median_ms"], "{:.1f}")


def _start(figures: Figures) -> Iterator[Sequence[str]]:
    started = figures.get("start", {})
    if took := import_times(figures):
        yield _row("import of the API handler, ms of CPU time", MAX_IMPORT_MS, took[True], "{:.0f}")
        what = "the same, relative to the import without compiled files"
        yield _row(what, MAX_IMPORT_SHARE, took[True] / took[False], "{:.2f}")
    for one in started.get("commands", ()):
        if one["command"] in GOALS_OF_COMMANDS_MS:
            what = f"`trainmaster {one['command']}`, ms of CPU time"
            yield _row(what, GOALS_OF_COMMANDS_MS[one["command"]], one["processor_ms"], "{:.0f}")
    for name, one in started.get("bundle", {}).items():
        yield _row(f"bundle of {name}, MB zipped", MAX_ZIPPED_MB, one["zipped_mb"], "{:.1f}")


def import_times(figures: Figures) -> dict[bool, float]:
    """Return milliseconds of CPU time to import the API handler, compiled and not; empty if not measured."""
    functions = figures.get("start", {}).get("functions", ())
    return {one["compiled"]: one["import_processor_ms"] for one in functions if one["function"] == "api"}


def _row(what: str, most: float, measured: float, form: str) -> Sequence[str]:
    return (what, f"{most:g}", form.format(measured), _yes(measured <= most))


def _yes(answer: bool) -> str:  # noqa: FBT001 -- formats a Boolean
    return "yes" if answer else "NO"
