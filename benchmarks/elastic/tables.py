"""Tables of elastic replays: the effect of elasticity, the comparison with the papers, every run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import geometric_mean
from typing import Any

from benchmarks.common.table import ReportTable
from benchmarks.elastic.runs import ELASTICFLOW, PAPER_POLICIES, POLICIES, POLLUX, SHIPPED
from trainmaster.local.replay.report.tables import duration

Figures = dict[str, Any]
Case = tuple[str, str, float]
"""Trace, curve, and seconds of a resize."""
EXPECTED = {
    "summary": (
        "Below 1 is better. Ratios of average job completion times (JCT) over all jobs, elastic or not, as the "
        "geometric mean over the traces. The papers' allocators decide for the whole pool at once and without a "
        "queue's guarantees: they have no priorities, shares or reservations. ElasticFlow's allocator knows every "
        "duration and every curve, Pollux's every curve, the queue neither."
    ),
    "reports": " It learns curves from the speeds that workers report, with an error of 5 %.",
    "runs": (
        "Utilization is the GPU time held until the last submission, relative to the total; useful counts nominal "
        "work only, up to the last end: with Amdahl's curve a large job holds more GPU time than it uses well, a "
        "small one less."
    ),
}


def make_tables(found: Figures) -> list[ReportTable]:
    """Return the tables for which there are figures."""
    cases = by_case(found["runs"])
    columns = (
        "policy",
        "curve",
        "resize",
        "vs. not elastic",
        "vs. elasticflow-style",
        "vs. pollux-style",
        "utilization",
    )
    every = (
        *("trace", "curve", "resize", "policy", "avg JCT", "vs. not elastic", "elastic jobs", "other jobs"),
        *("p99 JCT", "utilization", "useful", "resizes a job", "preemptions a job", "lost"),
    )
    learns = EXPECTED["reports"] if found.get("options", {}).get("reports") else ""
    expected = EXPECTED["summary"] + learns
    made = [
        ReportTable("Elastic: average JCT", columns, list(_summary(cases)), expected, headline=True),
        ReportTable("Elastic: every run", every, list(_runs(cases)), EXPECTED["runs"]),
    ]
    return [sheet for sheet in made if sheet.rows]


def by_case(runs: Sequence[Figures]) -> dict[Case, dict[str, Figures]]:
    """Group the runs by case and policy; a run without elastic jobs belongs to all cases of its trace."""
    cases = {(one["vc"], one["curve"], one["resize_cost"]) for one in runs if one["curve"] is not None}
    result: dict[Case, dict[str, Figures]] = {}
    for case in sorted(cases, key=lambda case: (case[0], case[1] != "linear", case[2])):
        here = [one for one in runs if (one["vc"], one["curve"], one["resize_cost"]) in (case, (case[0], None, None))]
        result[case] = {one["policy"]: one for one in sorted(here, key=_place)}
    return result


def _place(one: Figures) -> int:
    """Return the place of a run's policy; kept figures may name the order that `gittins` has replaced."""
    return POLICIES.index(one["policy"].replace("least-attained-service", "gittins"))


def _summary(cases: dict[Case, dict[str, Figures]]) -> Iterator[Sequence[str]]:
    kinds = list(dict.fromkeys(case[1:] for case in cases))
    for policy in SHIPPED:
        order = policy.partition(", ")[0]
        for curve, cost in kinds:
            runs = [found for case, found in cases.items() if case[1:] == (curve, cost) and policy in found]
            if runs:
                ratios = [_mean(runs, policy, other) for other in (order, ELASTICFLOW, POLLUX)]
                used = sum(found[policy]["used_while_jobs_come"] for found in runs) / len(runs)
                yield (policy, curve, f"{cost:g} s", *map(_shown, ratios), f"{used:.1%}")


def _runs(cases: dict[Case, dict[str, Figures]]) -> Iterator[Sequence[str]]:
    for (vc, curve, cost), runs in cases.items():
        for policy, one in runs.items():
            without = None if policy in PAPER_POLICIES else _ratio(runs, policy, policy.partition(", ")[0])
            yield (
                vc,
                curve,
                f"{cost:g} s",
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
            )


def _mean(runs: Sequence[dict[str, Figures]], policy: str, other: str) -> float | None:
    found = [_ratio(each, policy, other) for each in runs]
    known = [ratio for ratio in found if ratio is not None]
    return geometric_mean(known) if known and len(known) == len(found) else None


def _ratio(runs: dict[str, Figures], policy: str, other: str) -> float | None:
    return runs[policy]["avg_jct_s"] / runs[other]["avg_jct_s"] if other in runs else None


def _shown(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.3f}"
