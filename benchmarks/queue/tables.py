"""Tables of the cost of passes and jobs, with expected results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from benchmarks.common.meter import Cost
from benchmarks.common.prices import dollars
from benchmarks.common.table import ReportTable
from benchmarks.days import tables as days_tables
from benchmarks.kueue import tables as kueue_tables
from benchmarks.queue.goals import goals

Figures = dict[str, Any]
EXPECTED = {
    "goals": (
        "Units and calls are counted and are the same on any machine; times are those of this machine. The read "
        "units of a job grow with the number of running jobs: 25 is the goal for a job alone and in bursts, 30 behind "
        "a deep queue with 80 running."
    ),
    "depth": (
        "The same units and calls in every row. A pass reads the running jobs (6 read units: 80 rows of about 280 "
        "bytes) and the first 32 waiting jobs of each lane (1 to 2 units each) with strong consistency; a submission "
        "reads the same at half the price. When a job ends and the next one takes its place, there is one such pass, "
        "and one read for each event of both jobs. Times: 10 to 60 ms for a pass, 20 to 80 for a submission, at "
        "every depth; nearly all of it is five to seven requests over loopback and the parsing of their responses."
    ),
    "baseline": (
        "The article's pass reads every row, including the request, twice: half a unit for each 4 KB, so 106 units "
        "for each 100 jobs; the figure for a million is computed from that. Its time grows with the depth too: 2 to "
        "4 seconds at 10,000. The article's algorithm costs less only while the queue is nearly empty: it keeps no "
        "history, no attempts and no fence, and loses jobs on any failure."
    ),
    "depth/answers": (
        "The same at every depth, except that a page can reach the end of a short queue. Each response reads one "
        "page, and the queue once if it includes positions or reasons. 2 to 60 ms."
    ),
    "growth": (
        "About one read unit for every fourteen running jobs and two for each lane: rows have 250 to 300 bytes. "
        "A pass reads more than 32 jobs of a lane only if more of them could start or preempt: at most 1,000. "
        "Reading takes about 0.1 ms for each row, most of it in botocore's parser."
    ),
    "planner": (
        "7 to 30 microseconds for each job considered, so 14 to 40 ms and 200 to 600 ms: least if no job starts, "
        "most if each job has a priority of its own. The most expensive kind must stay within the goal, not only the "
        "usual one. The slowest runs of 10,000 include a run of Python's garbage collector."
    ),
    "life": (
        "23 write units alone: 6 to store with the audit entry, 6 to start, 1 each to confirm the launch, to record "
        "that the job runs, and for each of two passes, 7 to end. One unit less in a burst, where jobs share passes. "
        "Text that does not compress adds two KB, charged twice in a transaction. A preemption adds about 24 for both "
        "jobs together. "
        "The put, updates and delete of the article (Chaim Rand, 2024) write the whole request each time (5 units), "
        "and its scans read all waiting jobs."
    ),
    "life/steps": "A transaction costs twice the kilobytes that it writes, and two units for the check of the fence.",
    "idle": (
        "One write unit to increment the pass number, and one read of the queue, every minute, with or without jobs."
    ),
    "start": (
        "About 45% of the time without compiled files on every machine; the times of machines differ threefold. The "
        "manager imports no pydantic, and takes two thirds of the API's time. The classes of models and dataclasses "
        "are a third of the API's import. If other processes use the machine, the CPU time is more reliable than the "
        "wall time. boto3 and the service models of botocore are most of the rest."
    ),
    "start/commands": (
        "On a quiet machine 0.1 s for the help and 0.45 s for `ls`, two thirds of it importing httpx, botocore and "
        "pydantic (typer's own). The ratios depend less on the machine than the times."
    ),
    "start/bundle": (
        "7 MB for the API and 4 MB for the manager, which needs no pydantic. Compiled files are half of each; boto3 "
        "comes with the runtime."
    ),
}


def make_tables(figures: Figures) -> list[ReportTable]:
    """Return the tables for which there are figures."""
    judged = list(goals(figures))
    made = [ReportTable("Goals", ("goal", "at most", "measured", "met"), judged, EXPECTED["goals"], headline=True)]
    if "days" in figures:
        made += days_tables.tables(figures)
    if "kueue" in figures:
        rows = list(kueue_tables.rows(figures))
        made.append(ReportTable(kueue_tables.TITLE, kueue_tables.COLUMNS, rows, kueue_tables.EXPECTED, headline=True))
    for section, (title, columns, rows) in _SHEETS.items():
        if section.partition("/")[0] in figures:
            made.append(ReportTable(title, columns or _by_depth(figures), list(rows(figures)), EXPECTED[section]))
    return [sheet for sheet in made if sheet.rows]


def _depth(figures: Figures) -> Iterator[Sequence[str]]:
    for one in figures["depth"]:
        yield (
            f"{one['waiting']:,}",
            _units(one["pass"]),
            f"{one['pass']['median_ms']:.0f}",
            f"{one['planner']['median_ms']:.2f}",
            _units(one["turn"]),
            _units(one["submit"]),
            f"{one['submit']['median_ms']:.0f}",
        )


def _article(figures: Figures) -> Iterator[Sequence[str]]:
    """Yield rows for both queues at the same depths: a pass, and the DynamoDB cost of a thousand jobs."""
    alone = next((one for one in figures["baseline"]["lives"] if one["jobs"] == 1), None)
    ours_at = {one["waiting"]: one for one in figures.get("depth", ())}
    for article in figures["baseline"]["passes"]:
        ours = ours_at.get(article["waiting"])
        if ours is not None and alone is not None:
            yield _compared(ours, article, alone)


def _compared(ours: Figures, article: Figures, alone: Figures) -> Sequence[str]:
    passed = ours["pass"]
    life = _dollars(ours["submit"]) + _dollars(ours["turn"])
    # The article's manager runs at the submission and at the end; for a job alone, on a table of one row.
    article_life = _dollars(alone) + 2 * _dollars(article)
    took = f"{article['median_ms']:,.0f}" if "median_ms" in article else article["how"]
    return (
        f"{ours['waiting']:,}",
        f"{passed['read_units']:,.0f} and {article['read_units']:,.0f}",
        f"{article['read_units'] / passed['read_units']:,.0f}x",
        f"{passed['calls']:,.0f} and {article['calls']:,.0f}",
        f"{article['calls'] / passed['calls']:,.1f}x",
        f"{passed['median_ms']:,.0f} and {took}",
        f"${life * 1000:,.3f} and ${article_life * 1000:,.3f}",
        f"{article_life / life:,.1f}x",
    )


def _dollars(one: Figures) -> float:
    return dollars(Cost(reads=one["read_units"], writes=one["write_units"]))


def _by_depth(figures: Figures) -> Sequence[str]:
    return ("route", *(f"{one['waiting']:,} waiting" for one in figures["depth"]))


def _answers(figures: Figures) -> Iterator[Sequence[str]]:
    for name in figures["depth"][0]["answers"]:
        cells = [one["answers"][name] for one in figures["depth"]]
        yield (name, *(f"{cell['read_units']:g} in {cell['calls']:g}, {cell['median_ms']:.0f} ms" for cell in cells))


def _planner(figures: Figures) -> Iterator[Sequence[str]]:
    for one in figures["planner"]:
        size, spread = f"{one['active']:,} + {one['considered']:,}", f"{one['min_ms']:.1f} to {one['max_ms']:.1f}"
        yield (size, one["kind"], str(one["pools"]), f"{one['median_ms']:.1f}", spread)


def _growth(figures: Figures) -> Iterator[Sequence[str]]:
    for one in figures["growth"]:
        yield (
            f"{one['running']:,}",
            str(one["lanes"]),
            f"{one['considered']:,}",
            f"{one['pass_read_units']:g} in {one['pass_calls']:g}",
            f"{one['survey_read_units']:g}",
            f"{one['reading']['median_ms']:.0f}",
            f"{one['planner']['median_ms']:.1f}",
        )


def _life(figures: Figures) -> Iterator[Sequence[str]]:
    for one in figures["life"]:
        calls = " + ".join(f"{count:g} {name}" for name, count in one["sagemaker_calls"].items())
        others = (f"{one['messages']:.1f}", f"{one['invocations']:.1f}", calls)
        yield (one["name"], str(one["jobs"]), *_life_cells(one["job"], one["dollars_per_1000_jobs"]), *others)
    for one in figures.get("baseline", {}).get("lives", ()):
        name = f"the article's queue, {'alone' if one['jobs'] == 1 else 'burst'}, {one['capacity']} instances"
        yield (name, str(one["jobs"]), *_life_cells(one, one["dollars_per_1000"]), "", "", "")


def _life_cells(one: dict[str, float], price: float) -> Sequence[str]:
    return (f"{one['write_units']:.1f}", f"{one['read_units']:.1f}", f"{one['calls']:.1f}", f"${price:.4f}")


def _steps(figures: Figures) -> Iterator[Sequence[str]]:
    alone, *others = [one for one in figures["life"] if one["name"] in ("alone", "burst, one pool of 8")]
    for step in alone["steps"]:
        yield (step, *(_units(one["steps"].get(step, alone["steps"][step])) for one in (alone, *others)))


def _idle(figures: Figures) -> Iterator[Sequence[str]]:
    for one in figures["idle"]:
        yield (str(one["running"]), _units(one["tick"]), f"${one['dollars_per_month']:.3f}")


def _start(figures: Figures) -> Iterator[Sequence[str]]:
    for one in figures["start"]["functions"]:
        yield (
            one["function"],
            "as shipped" if one["compiled"] else "without compiled files",
            f"{one['import_processor_ms']:.0f}",
            f"{one['import_ms']:.0f}",
            f"{one['ready_processor_ms']:.0f}",
            f"{one['ready_ms']:.0f}",
            ", ".join(f"{name} {ms:.0f}" for name, ms in one["parts_processor_ms"].items() if ms >= 1),
        )


def _bundle(figures: Figures) -> Iterator[Sequence[str]]:
    for name, one in figures["start"]["bundle"].items():
        heaviest = ", ".join(f"{part} {size}" for part, size in one["heaviest_mb"].items())
        yield (name, f"{one['zipped_mb']} MB", f"{one['unzipped_mb']} MB", heaviest)


def _commands(figures: Figures) -> Iterator[Sequence[str]]:
    for one in figures["start"].get("commands", ()):
        yield (
            one["command"] if one["modules"] is None else f"trainmaster {one['command']}",
            f"{one['processor_ms']:.0f}",
            f"{one['processor_ratio']:.1f}",
            f"{one['ms']:.0f}",
            f"{one['ratio']:.1f}",
            "" if one["modules"] is None else str(one["modules"]),
        )


def _units(one: dict[str, float]) -> str:
    return f"{one['read_units']:g} R, {one['write_units']:g} W, {one['calls']:g} calls"


_Rows = Callable[[Figures], Iterator[Sequence[str]]]
_SHEETS: dict[str, tuple[str, Sequence[str], _Rows]] = {
    "depth": (
        "Cost by depth: 80 running in two pools, the rest waiting in two lanes",
        (
            *("waiting", "a pass", "pass time, ms", "planning alone, ms"),
            *("a job ends, the next one runs", "a submission", "submission time, ms"),
        ),
        _depth,
    ),
    "baseline": (
        "Comparison with the article's queue: ours and the article's",
        (
            *("waiting", "read units of a pass", "ratio", "calls of a pass", "ratio", "time of a pass, ms"),
            *("DynamoDB, 1,000 jobs", "ratio"),
        ),
        _article,
    ),
    "depth/answers": (
        "API responses by depth: read units, calls, time",
        (),
        _answers,
    ),
    "growth": (
        "Cost of a read by running jobs and lanes",
        (
            *("running", "lanes", "considered", "a pass, read units in calls", "a queue read, read units"),
            *("reading, ms", "planning, ms"),
        ),
        _growth,
    ),
    "planner": ("Planning alone", ("active + considered", "kind", "pools", "median, ms", "spread, ms"), _planner),
    "life": (
        "A job from submission to end",
        (
            *("scenario", "jobs", "write units a job", "read units", "calls", "DynamoDB, 1,000 jobs"),
            *("SQS messages a job", "manager invocations", "SageMaker calls"),
        ),
        _life,
    ),
    "life/steps": ("An average job, step by step", ("step", "alone", "burst, one pool of 8"), _steps),
    "idle": ("A tick of an idle queue", ("running jobs", "a tick", "a month of ticks"), _idle),
    "start": (
        "A new Lambda environment: CPU time and wall time, ms",
        ("function", "bundle", "import, CPU", "import, wall", "until ready, CPU", "until ready, wall", "parts, CPU"),
        _start,
    ),
    "start/commands": (
        "The command line: CPU time and wall time of whole commands, ms",
        ("command", "CPU", "ratio", "wall", "ratio", "modules"),
        _commands,
    ),
    "start/bundle": ("The bundles", ("of", "zipped", "unzipped", "heaviest, MB"), _bundle),
}
