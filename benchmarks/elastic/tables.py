"""Tables of elastic replays: the effect of elasticity, the comparison with the papers, every run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import geometric_mean
from typing import Any

from benchmarks.common.table import ReportTable
from benchmarks.elastic.runs import ELASTICFLOW, PAPER_POLICIES, POLICIES, POLLUX, SHIPPED
from trainmaster.local.replay.report.tables import duration

Figures = dict[str, Any]
Case = tuple[str, str, float, str | None]
"""Trace, curve, seconds of a resize, and hook; None for the hook if no run has one."""
GOALS = {"gittins, elastic": 1.0, "backfill, elastic, equals shrink": 1.15}
"""Largest average JCT by policy, relative to `pollux-style`."""
EXPECTED = {
    "summary": (
        "Below 1 is better. Ratios of average job completion times (JCT) over all jobs, elastic or not, as the "
        "geometric mean over the traces. The papers' allocators decide for the whole pool at once and without a "
        "queue's guarantees: they have no priorities, shares or reservations. ElasticFlow's allocator knows every "
        "duration and every curve, Pollux's every curve, the queue neither."
    ),
    "goals": "Average JCT over all jobs relative to `pollux-style`, which knows every curve.",
    "reports": " The queue learns curves from the speeds that workers report, with an error of 5 %.",
    "runs": (
        "Utilization is the GPU time held until the last submission, relative to the total; useful counts nominal "
        "work only, up to the last end: with Amdahl's curve a large job holds more GPU time than it uses well, a "
        "small one less. The commit is that of the queue in this run; files of `--resume` may have runs of several."
    ),
}


def make_tables(found: Figures) -> list[ReportTable]:
    """Return the tables for which there are figures."""
    cases = by_case(found["runs"])
    columns = (
        *("policy", "curve", "hook", "resize"),
        *("vs. not elastic", "vs. elasticflow-style", "vs. pollux-style", "utilization"),
    )
    every = (
        *("trace", "curve", "resize", "hook", "policy", "avg JCT", "vs. not elastic", "elastic jobs", "other jobs"),
        *("p99 JCT", "utilization", "useful", "resizes a job", "preemptions a job", "lost", "commit"),
    )
    traces = list(dict.fromkeys(case[0] for case in cases))
    goals = ("policy", "curve", "hook", "resize", *traces, "goal", "met")
    learns = EXPECTED["reports"] if found.get("options", {}).get("reports") else ""
    expected = EXPECTED["summary"] + learns
    made = [
        ReportTable("Elastic: goals", goals, list(_goals(cases, traces)), EXPECTED["goals"] + learns, headline=True),
        ReportTable("Elastic: average JCT", columns, list(_summary(cases)), expected, headline=True),
        ReportTable("Elastic: every run", every, list(_runs(cases)), EXPECTED["runs"]),
    ]
    return [sheet for sheet in made if sheet.rows]


def by_case(runs: Sequence[Figures]) -> dict[Case, dict[str, Figures]]:
    """Group the runs by case and policy; a run without elastic jobs belongs to all cases of its trace."""
    kinds = {(one["vc"], one["curve"], one["resize_cost"], one["hook"]) for one in runs if one["curve"] is not None}
    without = {kind[:3] for kind in kinds if kind[3] is not None}
    cases = [kind for kind in kinds if kind[3] is not None or kind[:3] not in without]
    result: dict[Case, dict[str, Figures]] = {}
    for case in sorted(cases, key=lambda case: (case[0], case[1] != "linear", case[2], case[3] != "restart")):
        here = (one for one in runs if one["vc"] == case[0] and _belongs(one, case))
        result[case] = {one["policy"]: one for one in sorted(here, key=_place)}
    return result


def _belongs(one: Figures, case: Case) -> bool:
    """Return True if a run has the case's curve, cost and hook, or they do not matter to it."""
    own = (one["curve"], one["resize_cost"], one["hook"])
    return all(mine is None or mine == its for mine, its in zip(own, case[1:], strict=True))


def _place(one: Figures) -> int:
    return POLICIES.index(one["policy"])


def _goals(cases: dict[Case, dict[str, Figures]], traces: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield a row for each goal and kind of case that was run."""
    for policy, goal in GOALS.items():
        for curve, cost, hook in dict.fromkeys(case[1:] for case in cases):
            runs = {case[0]: found for case, found in cases.items() if case[1:] == (curve, cost, hook)}
            ratios = [_ratio(runs[vc], policy, POLLUX) if policy in runs.get(vc, {}) else None for vc in traces]
            known = [ratio for ratio in ratios if ratio is not None]
            if known:
                met = "no" if max(known) > goal else "yes" if len(known) == len(traces) else "where run"
                yield policy, curve, hook or "-", f"{cost:g} s", *map(_shown, ratios), f"{goal:.2f}", met


def _summary(cases: dict[Case, dict[str, Figures]]) -> Iterator[Sequence[str]]:
    kinds = list(dict.fromkeys(case[1:] for case in cases))
    for policy in SHIPPED:
        order = policy.partition(", ")[0]
        for curve, cost, hook in kinds:
            runs = [found for case, found in cases.items() if case[1:] == (curve, cost, hook) and policy in found]
            if runs:
                ratios = [_mean(runs, policy, other) for other in (order, ELASTICFLOW, POLLUX)]
                used = sum(found[policy]["used_while_jobs_come"] for found in runs) / len(runs)
                yield (policy, curve, hook or "-", f"{cost:g} s", *map(_shown, ratios), f"{used:.1%}")


def _runs(cases: dict[Case, dict[str, Figures]]) -> Iterator[Sequence[str]]:
    shown = set[tuple[object, ...]]()
    for (vc, curve, cost, _), runs in cases.items():
        for policy, one in runs.items():
            if (row := (vc, curve, cost, policy, one["hook"])) in shown:
                continue
            shown.add(row)
            without = None if policy in PAPER_POLICIES else _ratio(runs, policy, policy.partition(", ")[0])
            yield (
                vc,
                curve,
                f"{cost:g} s",
                one["hook"] or "-",
                policy,
                duration(one["avg_jct_s"]),
                _shown(without),
                duration(one["avg_jct_elastic_s"]),
                duration(one["avg_jct_rigid_s"]),
                duration(one["p99_jct_s"]),
                f"{one['used_while_jobs_come']:.1%}",
                f"{one['useful']:.1%}",
                f"{one['resizes_per_elastic_job']:.2f}",
                f"{one['preemptions_per_job']:.2f}",
                f"{one['lost_fraction']:.2%}",
                one.get("commit") or "-",
            )


def _mean(runs: Sequence[dict[str, Figures]], policy: str, other: str) -> float | None:
    found = [_ratio(each, policy, other) for each in runs]
    known = [ratio for ratio in found if ratio is not None]
    return geometric_mean(known) if known and len(known) == len(found) else None


def _ratio(runs: dict[str, Figures], policy: str, other: str) -> float | None:
    return runs[policy]["avg_jct_s"] / runs[other]["avg_jct_s"] if other in runs else None


def _shown(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.3f}"
