"""Tables of pauses: goals, comparison, cost. Measured values are compared unrounded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from benchmarks.common.table import ReportTable
from benchmarks.rendezvous.cases import CASES, CUT, DRAIN, HOST, NODE_LOSSES
from benchmarks.rendezvous.systems import C10D, C10D_EQUAL, C10D_OWN, PRELOADED, SYSTEMS, TRAINMASTER, System

Figures = dict[str, Any]
MIN_RATIO_ON_LOSS = 3.0
WENT_ON = "went on"
DEFAULTS = (C10D.name, C10D_OWN.name)
EQUAL = (C10D_EQUAL.name,)
EXPECTED = {
    "goals": (
        "Trainmaster considers a silent node dead after 5 s (5 heartbeats of 1 s), c10d after 15 s; c10d then waits "
        "for its last call of 30 s for more nodes, while trainmaster does not wait after a loss. The rest is the "
        "same for both: agents poll once a second, stop workers, start Python and import torch. Ratios are of "
        "medians, without the import."
    ),
    "pauses": (
        "Medians. The values in brackets exclude the import of torch by the last worker to join, which no rendezvous "
        "can shorten. The last two columns give c10d's time as a multiple of trainmaster's, without the import: with "
        "c10d's default settings (the faster of its stores), and with trainmaster's settings."
    ),
    "costs": (
        "Charged: restarts counted against the job's budget; a drain costs trainmaster none. Pause: seconds from the "
        "last step before the event to the first one after it. Requests: to DynamoDB, from the event to that step, "
        "by all agents."
    ),
}


def make_tables(found: Figures) -> list[ReportTable]:
    """Return the tables for which there are figures."""
    runs = by_case(found["runs"])
    names = _measured(runs)
    columns = ("case", *names, "c10d at default settings", "c10d at equal settings")
    made = [
        ReportTable(
            "Rendezvous: goals",
            ("goal", "wanted", "measured", "met"),
            list(goals(runs)),
            EXPECTED["goals"],
            headline=True,
        ),
        ReportTable(
            "Rendezvous: seconds to the next step",
            columns,
            list(_pauses(runs, names)),
            EXPECTED["pauses"],
            headline=True,
        ),
        ReportTable(
            "Rendezvous: cost of each case",
            ("case", "engine", "repeats", "time, range", "pause", "charged", "exit code", "requests"),
            list(_costs(runs)),
            EXPECTED["costs"],
        ),
    ]
    return [sheet for sheet in made if sheet.rows]


def by_case(runs: Sequence[Figures]) -> dict[str, dict[str, list[Figures]]]:
    """Group the runs by case, in the order of the chains, and by engine."""
    result: dict[str, dict[str, list[Figures]]] = {}
    for case in CASES:
        here = [one for one in runs if one["case"] == case]
        if here:
            result[case] = {
                system.name: mine
                for system in SYSTEMS
                if (mine := [one for one in here if one["system"] == system.name])
            }
    return result


def median_of(runs: Sequence[Figures], figure: str) -> float | None:
    """Return the median of runs that continued; None if one did not, or has no such figure."""
    if not runs or any(one["outcome"] != WENT_ON or figure not in one for one in runs):
        return None
    return median(one[figure] for one in runs)


def ratio_of(
    systems: dict[str, list[Figures]], others: Sequence[str], figure: str, own: System = TRAINMASTER
) -> float | None:
    """Return the best time of the others relative to our own; None if there is nothing to compare."""
    ours = median_of(systems.get(own.name, ()), figure)
    known = [value for other in others if (value := median_of(systems.get(other, ()), figure)) is not None]
    return min(known) / ours if ours and known else None


def goals(runs: dict[str, dict[str, list[Figures]]]) -> Iterator[Sequence[str]]:
    """Yield each goal with a figure."""
    for what, others in (("default settings of each", DEFAULTS), ("equal settings", EQUAL)):
        ratios = [(ratio, case) for case, one in runs.items() if (ratio := ratio_of(one, others, "without_import"))]
        if ratios:
            worst, case = min(ratios)
            yield _goal(f"no slower than c10d anywhere, {what}", "1 x", f"{worst:.2f} x ({case})", met=worst >= 1)
    for own, how in ((TRAINMASTER, ""), (PRELOADED, ", torch preloaded")):
        ratios = [
            (ratio, case) for case in NODE_LOSSES if (ratio := ratio_of(runs.get(case, {}), DEFAULTS, "took", own))
        ]
        if ratios:
            worst, case = min(ratios)
            shown = f"{worst:.2f} x ({case})"
            what = f"faster on loss at default settings, import included{how}"
            yield _goal(what, f"{MIN_RATIO_ON_LOSS:g} x", shown, met=worst >= MIN_RATIO_ON_LOSS)
    yield from _alive(runs)
    drains = runs.get(DRAIN, {}).get(TRAINMASTER.name, [])
    if drains:
        shown = ", ".join(f"exit {one.get('exit')}, {one.get('charged')} charged" for one in drains)
        peace = all((one.get("exit"), one.get("charged")) == (0, 0) for one in drains)
        yield _goal("a drained node exits cleanly, and no restart is charged", "exit 0, 0 charged", shown, met=peace)
    split = sorted({one["case"] for case in runs.values() for one in case.get(TRAINMASTER.name, ()) if one["split"]})
    yield _goal("trainmaster never has two worlds at once", "none", ", ".join(split) or "none", met=not split)


def _alive(runs: dict[str, dict[str, list[Figures]]]) -> Iterator[Sequence[str]]:
    hosts = runs.get(HOST, {})
    if TRAINMASTER.name in hosts:
        shown = "; ".join(f"{name}: {_outcomes(mine)}" for name, mine in hosts.items())
        alive = all(one["outcome"] == WENT_ON for one in hosts[TRAINMASTER.name])
        yield _goal("alive after the store's host is lost", "alive", shown, met=alive)
    stuck = [
        case for case, one in runs.items() if any(each["outcome"] != WENT_ON for each in one.get(TRAINMASTER.name, ()))
    ]
    yield _goal("trainmaster continues in every case", "all", ", ".join(stuck) or "all", met=not stuck)


def _measured(runs: dict[str, dict[str, list[Figures]]]) -> list[str]:
    """Return the names of the engines for which there are figures."""
    found = {name for systems in runs.values() for name in systems}
    return [system.name for system in SYSTEMS if system.name in found]


def _pauses(runs: dict[str, dict[str, list[Figures]]], names: Sequence[str]) -> Iterator[Sequence[str]]:
    for case, systems in runs.items():
        cells = [_cell(systems.get(name, ())) for name in names]
        ratios = [ratio_of(systems, others, "without_import") for others in (DEFAULTS, EQUAL)]
        yield (case, *cells, *("" if ratio is None else f"{ratio:.2f} x" for ratio in ratios))


def _cell(runs: Sequence[Figures]) -> str:
    if not runs:
        return ""
    well = [one for one in runs if one["outcome"] == WENT_ON]
    if not well:
        return _outcomes(runs)
    if "took" not in well[0]:
        shown = f"paused for {median(one['still'] for one in well):.2f}"
    else:
        shown = f"{median(one['took'] for one in well):.1f} ({median(one['without_import'] for one in well):.1f})"
    return shown if len(well) == len(runs) else f"{shown}; {_outcomes([one for one in runs if one not in well])}"


def _outcomes(runs: Sequence[Figures]) -> str:
    """Count the outcomes: `died`, `never (90 s) 2 times`."""
    words = [
        f"never ({one['after']:.0f} s)"
        if one["outcome"] == "never"
        else _died(one)
        if one["outcome"] == "died"
        else WENT_ON
        for one in runs
    ]
    counts = {word: words.count(word) for word in dict.fromkeys(words)}
    return ", ".join(word if count == 1 else f"{word} {count} times" for word, count in counts.items())


def _died(one: Figures) -> str:
    return f"{one['alive']} of {one['agents']} agents left" if one["case"] == CUT else "died"


def _costs(runs: dict[str, dict[str, list[Figures]]]) -> Iterator[Sequence[str]]:
    for case, systems in runs.items():
        for name, mine in systems.items():
            well = [one for one in mine if one["outcome"] == WENT_ON]
            took = [one["took"] for one in well if "took" in one]
            yield (
                case,
                name,
                str(len(mine)),
                f"{min(took):.1f} to {max(took):.1f}" if took else _outcomes(mine),
                _median_text(well, "still", "{:.1f}"),
                _median_text(well, "charged", "{:g}"),
                ", ".join(dict.fromkeys(str(one["exit"]) for one in well if "exit" in one)),
                _median_text(well, "requests", "{:g}"),
            )


def _median_text(runs: Sequence[Figures], figure: str, form: str) -> str:
    value = median_of(runs, figure)
    return "" if value is None else form.format(value)


def _goal(what: str, wanted: str, shown: str, *, met: bool) -> Sequence[str]:
    return (what, wanted, shown, "yes" if met else "NO")
