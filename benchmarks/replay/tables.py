"""Tables of replays: goals, each trace under each policy, comparison with the oracle, estimates, speed.

Measured values are compared unrounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import geometric_mean
from typing import Any

from benchmarks.common.table import ReportTable
from trainmaster.local.replay.report.tables import duration

SKIP, EASY, ORACLE = "baseline-skip", "baseline-easy", "baseline-srpt"
REFERENCES = (SKIP, EASY, ORACLE)
"""Reference policies of the goals."""
BUSY = ("ee9e8c", "7f04ca", "cluster02", "cluster03")
"""Traces whose jobs wait long under skip-ahead on 128 GPUs."""
GITTINS, BACKFILL = "gittins", "backfill"
WORST, WORST_OF_ALL = "worst5_wait_large_s", "worst5_wait_s"
MAX_RATIO_TO_SKIP, MAX_MEAN_RATIO_TO_SKIP, MAX_RATIO_TO_EASY = 1.05, 0.70, 1.10
MAX_WORST_RATIO, SHORT_WORST_SECONDS = 1.15, 36 * 3_600
MAX_WORST_RATIO_OF_BACKFILL = 1.25
MAX_LOST, MAX_PREEMPTIONS = 0.012, 2
MAX_WALL_SECONDS = 60
MIN_ETA_INSIDE, MIN_ASKED = 0.80, 20
EXPECTED = {
    "goals": (
        "JCT is the job completion time, from submission to end. Ratios are the same on any machine; the replay time "
        "is that of this machine. All traces have one setting. The worst 5% are those large jobs that waited longest, "
        "or those of all jobs where none is large. Estimates are judged where at least 20 jobs were asked for."
    ),
    "traces": (
        "Where the load is low, jobs hardly wait and all ratios are near 1. Where it is high, skip-ahead has a "
        "better average than EASY and a worse tail of the large jobs; `gittins` has a better average without knowing "
        "any duration. The 99th percentile of a trace with a dozen large jobs is its worst one or two. The commit is "
        "that of the queue in this run; files of `--resume` may have runs of several."
    ),
    "oracle": (
        "The oracle knows every duration and pays the same for a restart, so no real scheduler can be expected to "
        "reach it. It has the best average at the cost of the longest jobs' tail."
    ),
    "estimates": (
        "A start without an estimate counts as outside. Later arrivals can pass a job under every order but fifo, "
        "and future arrivals are unknown, so ranges have to be wide where the load is high."
    ),
    "speed": (
        "At most 60 s, or 4 ms for each job, most of it planning. Under `gittins`, jobs of equal priority preempt each "
        "other, so there are more passes, and nearly all waiting jobs have an age and an index of their own."
    ),
}
Figures = dict[str, Any]


def make_tables(found: Figures) -> list[ReportTable]:
    """Return the tables for which there are figures."""
    by_trace = _by_trace(found["runs"], found.get("options", {}).get("cap"))
    columns = (
        *("trace", "jobs", "load", "policy", "avg JCT", "relative to skip"),
        *("avg wait 8+", "p99 wait 8+", "relative to EASY", "worst 5% wait 8+", "relative to EASY"),
        *("utilization", "preemptions a job", "lost", "commit"),
    )
    made = [
        ReportTable(
            "Replay: goals",
            ("goal", "at most", "measured", "met"),
            list(_goals(found, by_trace)),
            EXPECTED["goals"],
            headline=True,
        ),
        ReportTable("Replay: every trace", columns, list(_traces(by_trace)), EXPECTED["traces"]),
        ReportTable(
            "Replay: average JCT compared with the oracle",
            ("trace", "policy", "relative to the oracle", "part of skip-ahead's loss against the oracle regained"),
            list(_oracle(by_trace)),
            EXPECTED["oracle"],
        ),
        estimates_table(found["runs"]),
        ReportTable(
            "Replay: 15,000 jobs as one trace",
            ("policy", "jobs", "seconds", "ms a job", "preemptions a job"),
            list(_speed(found["speed"])),
            EXPECTED["speed"],
        ),
    ]
    return [sheet for sheet in made if sheet.rows]


def estimates_table(runs: Sequence[Figures]) -> ReportTable:
    """Return the table of the accuracy of estimated starts."""
    return ReportTable(
        "Replay: estimated starts of jobs that had to wait on arrival",
        (
            "trace",
            "policy",
            "asked",
            "with an estimate",
            "inside the range",
            "inside, immediate starts included",
            "median error",
            "median width",
        ),
        list(_estimates(_by_trace(runs))),
        EXPECTED["estimates"],
    )


def _by_trace(runs: Sequence[Figures], usual_cap: int | None = None) -> dict[str, dict[str, Figures]]:
    """Group the runs by cluster, with its GPUs if they are not the usual ones, and policy."""
    result: dict[str, dict[str, Figures]] = {}
    for one in runs:
        name = one["vc"] if usual_cap in (None, one["cap"]) else f"{one['vc']}, {one['cap']} GPUs"
        result.setdefault(name, {})[one["policy"]] = one
    return result


def _goals(found: Figures, by_trace: dict[str, dict[str, Figures]]) -> Iterator[Sequence[str]]:
    yield from _gittins_goals({vc: runs for vc, runs in by_trace.items() if GITTINS in runs})
    for vc, runs in by_trace.items():
        if BACKFILL in runs:
            yield from _backfill_goals(vc, runs)
    for vc, runs in by_trace.items():
        for policy, one in runs.items():
            if one.get("eta_asked", 0) >= MIN_ASKED:
                what = f"{policy}, {vc}: starts within the estimated range"
                yield _minimum_goal(what, MIN_ETA_INSIDE, one["eta_inside"])
    for one in found["speed"]:
        yield _goal(f"{one['policy']}: seconds to replay {one['jobs']:,} jobs", MAX_WALL_SECONDS, one["wall_s"])


def _backfill_goals(vc: str, runs: dict[str, Figures]) -> Iterator[Sequence[str]]:
    ratio = _ratio(runs, BACKFILL, EASY, "avg_jct_s")
    yield _goal(f"{BACKFILL}, {vc}: avg JCT relative to EASY", MAX_RATIO_TO_EASY, ratio)
    name, jobs = (WORST_OF_ALL, "wait") if runs[BACKFILL].get(WORST) is None else (WORST, "wait 8+")
    worst = _ratio(runs, BACKFILL, EASY, name)
    yield _goal(f"{BACKFILL}, {vc}: worst 5% {jobs} relative to EASY", MAX_WORST_RATIO_OF_BACKFILL, worst)


def _gittins_goals(by_trace: dict[str, dict[str, Figures]]) -> Iterator[Sequence[str]]:
    ratios = {}
    for vc, runs in by_trace.items():
        one = runs[GITTINS]
        ratios[vc] = _ratio(runs, GITTINS, SKIP, "avg_jct_s")
        yield _goal(f"{GITTINS}, {vc}: avg JCT relative to skip-ahead", MAX_RATIO_TO_SKIP, ratios[vc])
        if one.get(WORST) is not None:
            yield _goal_of_worst(vc, runs)
        yield _goal(f"{GITTINS}, {vc}: GPU-hours lost to restarts", MAX_LOST, one["lost_fraction"])
        yield _goal(f"{GITTINS}, {vc}: preemptions a job", MAX_PREEMPTIONS, one["preemptions_per_job"])
    busy = [ratio for vc in BUSY if (ratio := ratios.get(vc))]
    if len(busy) == len(BUSY):
        what = f"{GITTINS}: avg JCT relative to skip-ahead, geometric mean over {', '.join(BUSY)}"
        yield _goal(what, MAX_MEAN_RATIO_TO_SKIP, geometric_mean(busy))


def _goal_of_worst(vc: str, runs: dict[str, Figures]) -> Sequence[str]:
    """Return the goal of the longest waits, which waits of up to a day and a half meet whatever EASY's are."""
    ratio = _ratio(runs, GITTINS, EASY, WORST)
    row = _goal(f"{GITTINS}, {vc}: worst 5% wait 8+ relative to EASY, or 36 h", MAX_WORST_RATIO, ratio)
    return (*row[:3], "yes") if runs[GITTINS][WORST] <= SHORT_WORST_SECONDS else row


def _traces(by_trace: dict[str, dict[str, Figures]]) -> Iterator[Sequence[str]]:
    for vc, runs in by_trace.items():
        for policy, one in runs.items():
            yield (
                vc,
                f"{one['jobs']:,}",
                f"{one['load']:.2f}",
                policy,
                duration(one["avg_jct_s"]),
                _shown(_ratio(runs, policy, SKIP, "avg_jct_s")),
                duration(one["avg_wait_large_s"]),
                duration(one["p99_wait_large_s"]),
                _shown(_ratio(runs, policy, EASY, "p99_wait_large_s")),
                duration(one.get(WORST)),
                _shown(_ratio(runs, policy, EASY, WORST)),
                f"{one['utilization']:.1%}",
                f"{one['preemptions_per_job']:.2f}",
                f"{one['lost_fraction']:.2%}",
                one.get("commit") or "-",
            )


def _oracle(by_trace: dict[str, dict[str, Figures]]) -> Iterator[Sequence[str]]:
    for vc, runs in by_trace.items():
        skip, oracle = runs[SKIP]["avg_jct_s"], runs[ORACLE]["avg_jct_s"]
        for policy, one in runs.items():
            if policy not in REFERENCES:
                gained = (skip - one["avg_jct_s"]) / (skip - oracle) if skip > oracle else None
                regained = "-" if gained is None else f"{gained:.0%}"
                yield (vc, policy, _shown(_ratio(runs, policy, ORACLE, "avg_jct_s")), regained)


def _estimates(by_trace: dict[str, dict[str, Figures]]) -> Iterator[Sequence[str]]:
    for vc, runs in by_trace.items():
        for policy, one in runs.items():
            if one.get("eta_asked"):
                shares = (f"{one['eta_inside']:.1%}", f"{one['eta_inside_all']:.1%}")
                spans = (duration(one["eta_median_error_s"]), duration(one["eta_median_width_s"]))
                yield (vc, policy, str(one["eta_asked"]), str(one["eta_known"]), *shares, *spans)


def _speed(runs: Sequence[Figures]) -> Iterator[Sequence[str]]:
    for one in runs:
        each = f"{one['wall_s'] / one['jobs'] * 1000:.2f}"
        yield (one["policy"], f"{one['jobs']:,}", f"{one['wall_s']:.1f}", each, f"{one['preemptions_per_job']:.2f}")


def _ratio(runs: dict[str, Figures], policy: str, reference: str, name: str) -> float | None:
    """Return the ratio of a figure to the reference's; None if either has none."""
    value, other = runs[policy].get(name), runs[reference].get(name)
    if value is None or other is None:
        return None
    return value / other if other else 1.0 if value == other else float("inf")


def _goal(what: str, most: float, measured: float | None) -> Sequence[str]:
    met = "-" if measured is None else "yes" if measured <= most else "NO"
    return (what, f"{most:g}", _shown(measured), met)


def _minimum_goal(what: str, least: float, measured: float) -> Sequence[str]:
    return (f"{what} (at least)", f"{least:g}", _shown(measured), "yes" if measured >= least else "NO")


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
