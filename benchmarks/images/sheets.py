"""The figures as sheets: goals, passes, starts, and lives. It must not round in favor of either queue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from benchmarks.common.meter import Cost
from benchmarks.common.prices import dollars
from benchmarks.common.table import ReportTable
from benchmarks.images import scanning
from trainmaster.domain.capacity.read_limits import FIRST_OF_FULL, FIRST_OF_SERVICE

Figures = dict[str, Any]
STARTS_PER_S = 100
PLACE = ("waiting", "endpoints")
PASS_COLUMNS = (
    "a pass",
    "pass time, ms",
    "decisions",
    "units a decision",
    "decisions a second",
    "stock ModelRunner's scan",
    "scan of a full table",
)
START_COLUMNS = (
    "starts a second",
    "starts a CPU second",
    "passes",
    "a start",
    "dollars for a million starts",
    "stock ModelRunner",
    "with a full table",
)
EXPECTED = {
    "goals": (
        "Units and calls are counted and are the same on any machine; times are those of this machine and its "
        f"loopback. Depths are compared if every endpoint has more waiting jobs than the {FIRST_OF_SERVICE} that a "
        "pass may read of it; shorter queues cost less."
    ),
    "pass": (
        "A pass reads the running jobs (100 rows), a row for each endpoint with image jobs, and the first "
        f"{FIRST_OF_FULL} waiting requests of each endpoint ({FIRST_OF_SERVICE} if some might start), in a query of "
        "its own. So its cost grows with the number of endpoints that have waiting requests, never with the number "
        "of requests. The pass decides about each request that it reads. ModelRunner's scan reads every row of its "
        f"table in each cycle, and decides about one request; computed, {scanning.ROW_BYTES} bytes a row. Stock, its "
        f"table has at most {scanning.LOOK_AHEAD} rows, running images included: its scan is cheaper than a pass here, "
        "and it neither runs nor sees more images than that. With a full table it sees all of them."
    ),
    "starts": (
        "Ten starts need one transaction for the jobs' state changes with their fence, and a write for each of their "
        "runs with up to 20 regions: 5.2 write units for each start. The read units of a start are its share of the "
        "one pass that starts 100. The rate by the manager's own CPU time excludes waiting for the engine and for "
        "other processes on the machine. ModelRunner's start is one write and a scan of its own (computed); dollars "
        "are those of both queues' units on demand. Stock, a start costs half of one here, where writes are nearly "
        "the whole price. Only with a table of some 120 rows does it cost more."
    ),
    "cpu": (
        "Processor time of the scheduler's own process, not of the engine, which both use; a pass is part of a start. "
        "ModelRunner is its own code, run from a checkout: the median of ten cycles, each of which starts one image "
        "and reads all requests in its table; its units are computed. Stock, it sees at most "
        f"{scanning.LOOK_AHEAD}."
    ),
    "turn": (
        "The manager receives the end of each image in batches of ten from SQS, runs a pass, ends the job and "
        "deletes its regions; one pass follows each batch and starts as many others. The workers' own calls are not "
        "counted."
    ),
}


def sheets(found: Figures) -> list[ReportTable]:
    """Return all tables of the report."""
    sizes = found["sizes"]
    return [
        ReportTable(
            "Image jobs: goals",
            ("goal", "wanted", "measured", "met"),
            list(goals(sizes)),
            EXPECTED["goals"],
            headline=True,
        ),
        ReportTable(
            "Image jobs: a pass while 100 run and no more can start",
            (*PLACE, *PASS_COLUMNS),
            list(_passes(sizes)),
            EXPECTED["pass"],
        ),
        ReportTable(
            "Image jobs: starts with capacity for 100",
            (*PLACE, *START_COLUMNS),
            list(_starts(sizes)),
            EXPECTED["starts"],
        ),
        ReportTable(
            "Image jobs: 100 jobs end and the next 100 start",
            (*PLACE, "images a second", "passes", "an end and a start"),
            list(_turns(sizes)),
            EXPECTED["turn"],
        ),
        *_cpu_sheets(found),
    ]


def _cpu_sheets(found: Figures) -> list[ReportTable]:
    """Return the table of single starts and of processor time; none for figures saved before these were measured."""
    if "lone" not in found:
        return []
    columns = ("scheduler", "requests that it sees", "a start", "CPU ms a start", "starts a CPU second")
    return [ReportTable("Image jobs: a start, and its processor time", columns, list(_cpu(found)), EXPECTED["cpu"])]


def _cpu(found: Figures) -> Iterator[Sequence[str]]:
    waiting = f"{found['sizes'][0]['outstanding']:,} over 1 endpoint"
    yield _ours("this queue, alone in its pass", waiting, found["lone"])
    for one in found["sizes"]:
        where = f"{one['outstanding']:,} over {one['endpoints']} endpoint{'s' * (one['endpoints'] > 1)}"
        yield _ours("this queue, with 99 others", where, one["starts"])
    for one in found.get("modelrunner", ()):
        cost, rate = scanning.start(one["rows"]), 1000 / one["cpu_ms"]
        where = f"{one['rows']:,} over 10 endpoints"
        yield "ModelRunner", where, f"{cost.reads:g} R, {cost.writes:g} W", f"{one['cpu_ms']:.1f}", f"{rate:.0f}"


def _ours(scheduler: str, where: str, starts: Figures) -> Sequence[str]:
    rate = starts["per_processor_s"]
    units = f"{starts['read_units']:g} R, {starts['write_units']:g} W"
    return scheduler, where, units, f"{1000 / rate:.1f}", f"{rate:.0f}"


def goals(sizes: Sequence[Figures]) -> Iterator[Sequence[str]]:
    """Each goal that can be judged: what, wanted, measured, and yes or no."""
    ordered = sorted(sizes, key=lambda one: (one["endpoints"], one["outstanding"]))
    for endpoints, group in groupby(ordered, key=lambda one: one["endpoints"]):
        here = list(group)
        deep = [one for one in here if one["outstanding"] > FIRST_OF_SERVICE * endpoints]
        if len(deep) > 1:
            same = len({_cost(one) for one in deep}) == 1
            shallow = all(_cost(one) <= _cost(deep[0]) for one in here if one not in deep)
            depths = ", ".join(f"{one['outstanding']:,}" for one in deep)
            shown = " / ".join(_units(one["pass"]) for one in here)
            what = f"a pass over {endpoints} endpoint{'s' * (endpoints > 1)} costs the same at {depths} waiting"
            yield (what, "equal", shown, _yes(same and shallow))
    if ordered:
        slowest = min(ordered, key=lambda one: one["starts"]["per_s"])
        where = f"{slowest['outstanding']:,} waiting, {slowest['endpoints']} endpoints"
        rate = slowest["starts"]["per_s"]
        what = "starts a second through one manager, at the slowest size"
        yield (what, f"at least {STARTS_PER_S}", f"{rate:.0f} ({where})", _yes(rate >= STARTS_PER_S))


def _cost(one: Figures) -> tuple[float, float, float]:
    return one["pass"]["read_units"], one["pass"]["write_units"], one["pass"]["calls"]


def _passes(sizes: Sequence[Figures]) -> Iterator[Sequence[str]]:
    for one in sizes:
        passed = one["pass"]
        units = passed["read_units"] + passed["write_units"]
        yield (
            *_place(one),
            _units(passed),
            f"{passed['median_ms']:.0f}",
            f"{passed['decisions']:,}",
            f"{units / passed['decisions']:.2f}",
            f"{passed['decisions_per_s']:,.0f}",
            _scan(scanning.stock_rows(_rows(one))),
            _scan(_rows(one)),
        )


def _starts(sizes: Sequence[Figures]) -> Iterator[Sequence[str]]:
    for one in sizes:
        starts, rows = one["starts"], _rows(one)
        ours = Cost(reads=starts["read_units"], writes=starts["write_units"])
        yield (
            *_place(one),
            f"{starts['per_s']:.0f}",
            f"{starts['per_processor_s']:.0f}",
            str(starts["passes"]),
            _units(starts),
            _millions(ours),
            _millions(scanning.start(scanning.stock_rows(rows))),
            _millions(scanning.start(rows)),
        )


def _turns(sizes: Sequence[Figures]) -> Iterator[Sequence[str]]:
    for one in sizes:
        turn = one["turn"]
        yield (*_place(one), f"{turn['per_s']:.0f}", str(turn["passes"]), _units(turn))


def _place(one: Figures) -> tuple[str, str]:
    return f"{one['outstanding']:,}", str(one["endpoints"])


def _rows(one: Figures) -> int:
    return int(one["outstanding"] + one["running"])


def _scan(rows: int) -> str:
    return f"{scanning.units(rows):,} R, {scanning.calls(rows)} calls"


def _millions(cost: Cost) -> str:
    return f"{dollars(cost) * 1_000_000:,.2f}"


def _units(one: Figures) -> str:
    return f"{one['read_units']:g} R, {one['write_units']:g} W, {one['calls']:g} calls"


def _yes(answer: bool) -> str:  # noqa: FBT001 -- it puts an answer into a word
    return "yes" if answer else "NO"
