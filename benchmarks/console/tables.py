"""Tables of the console's figures: goals, pages, and reads, each beside the smallest queue of the same run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.common.table import ReportTable

Figures = dict[str, Any]
FIRST_PAINT_MS, UPDATE_MS, ROWS, BARS = 1000, 100, 100, 2000
EXPECTED = {
    "goals": (
        "Lists have 100 rows and polls 100 jobs, however many run and wait, so the page's work does not grow with the "
        "queue."
    ),
    "pages": (
        "All files are loaded without a cache, five times; medians. `shown` is the first load with data: it includes "
        "the first poll, whose reads come one after another; `again` a later load, which shows what was read earlier. "
        "An update is one message: its mean size, and the processor's mean time for it, in script and in all. "
        "Between two polls three waiting jobs change their places, a running job ends and another one starts."
    ),
    "timeline": (
        "Milliseconds of the processor, with styles and layout; medians of seven rounds. An update changes one "
        "interval; a tick is the passing of time alone; a zoom moves every bar."
    ),
    "reads": (
        "The shipped API on a DynamoDB engine of this machine. Ratios are to the smallest queue. A page that is not "
        "in view reads nothing, and all open pages share the reads."
    ),
}


def make_tables(found: Figures) -> list[ReportTable]:
    """Return the tables of all sizes."""
    sizes: Sequence[Figures] = found["sizes"]
    page = ("page", "first paint, ms", "shown, ms", "again, ms", "requests", "first message, KB",
            "update, KB", "largest, KB", "script, ms", "all work, ms", "rows")  # fmt: skip
    read = ("read", "answers", "ms", "ratio", "KB", "ratio", "read units", "ratio")
    timeline = ("first, ms", "update, ms", "tick, ms", "zoom, ms", "bars", "elements")
    queue, goal = ("running", "waiting"), ("goal", "at most", "measured", "met")
    pages = [row for size in sizes for row in _pages(size)]
    reads = [row for size in sizes for row in _reads(size, sizes[0])]
    return [
        ReportTable("The console's goals", goal, list(_goals(sizes[-1])), EXPECTED["goals"], headline=True),
        ReportTable("The console's pages", (*queue, *page), pages, EXPECTED["pages"], headline=True),
        ReportTable(
            "A timeline of 4,000 intervals", (*queue, *timeline), list(map(_timeline, sizes)), EXPECTED["timeline"]
        ),
        ReportTable("Reads of the console", (*queue, *read), reads, EXPECTED["reads"]),
    ]


def _goals(size: Figures) -> Iterator[list[str]]:
    pages = size["pages"]
    of = f"{size['running']:,} running, {size['waiting']:,} waiting"
    figures = (
        (f"first paint, ms ({of})", FIRST_PAINT_MS, max(page["first_paint_ms"] for page in pages)),
        ("script of an update, ms", UPDATE_MS, max(page["update_script_ms"] for page in pages)),
        ("rows of a page", ROWS, max(page["rows"] for page in pages)),
        ("first drawing of 4,000 intervals, ms", UPDATE_MS, size["drawn"]["first_ms"]),
        ("update of 4,000 intervals, ms", UPDATE_MS, size["drawn"]["update_ms"]),
        ("bars of a timeline", BARS, size["drawn"]["bars"]),
    )
    for name, goal, figure in figures:
        yield [name, str(goal), f"{figure:g}", "yes" if figure <= goal else "NO"]


def _pages(size: Figures) -> Iterator[list[str]]:
    names = ("page", "first_paint_ms", "shown_ms", "shown_again_ms", "requests", "first_message_kilobytes",
             "update_kilobytes", "largest_update_kilobytes", "update_script_ms", "update_ms", "rows")  # fmt: skip
    for page in size["pages"]:
        yield [f"{size['running']:,}", f"{size['waiting']:,}", *(str(page[name]) for name in names)]


def _timeline(size: Figures) -> list[str]:
    names = ("first_ms", "update_ms", "tick_ms", "zoom_ms", "bars", "nodes")
    return [f"{size['running']:,}", f"{size['waiting']:,}", *(f"{size['drawn'][name]:,g}" for name in names)]


def _reads(size: Figures, smallest: Figures) -> Iterator[list[str]]:
    least = {each["read"]: each for each in smallest["reads"]}
    for read in size["reads"]:
        cells = [read["read"], str(read["times"])]
        for name in ("ms", "kilobytes", "read_units"):
            cells += [f"{read[name]:g}", _ratio(read[name], least.get(read["read"], {}).get(name))]
        yield [f"{size['running']:,}", f"{size['waiting']:,}", *cells]


def _ratio(figure: float, least: float | None) -> str:
    return f"{figure / least:.1f}" if least else "-"
