"""Summarizes the runs of a cell over its seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmarks.placement.experiments import ARTICLE_POLICIES, REFERENCE, Cell
from benchmarks.placement.figures import Mean, differences, gains, mean

Runs = Mapping[str, Sequence[Mapping[str, float]]]
"""Figures of runs by policy, in the order of the seeds."""
LESS_IS_BETTER = {"throughput": False, "makespan": True, "completion": True, "wait": True}
IN_SECONDS = "wait"
"""Compared by differences: it can be 0, and a ratio of 0 is undefined."""
PACKING = "best-fit"


def summarize(cell: Cell, runs: Runs) -> dict[str, Any]:
    """Return the saved figures of a cell."""
    metrics = next(iter(runs.values()))[0].keys()
    return {
        "experiment": cell.experiment,
        "setting": cell.setting,
        "nodes": cell.nodes,
        "point": cell.point,
        "x": cell.x,
        "seeds": len(next(iter(runs.values()))),
        "policies": {
            policy: {metric: _pair(mean([one[metric] for one in found])) for metric in metrics}
            for policy, found in runs.items()
        },
        "gains_over_random": _gains(runs),
        "best_fit_over_best": _over_best(runs),
    }


def mean_of(pair: Sequence[float]) -> Mean:
    """Return a saved mean."""
    return Mean(pair[0], pair[1])


def _gains(runs: Runs) -> dict[str, dict[str, list[float]]]:
    if REFERENCE not in runs:
        return {}
    others = (policy for policy in runs if policy != REFERENCE)
    return {policy: _compared(runs[policy], runs[REFERENCE]) for policy in others}


def _over_best(runs: Runs) -> dict[str, Any]:
    """Return the gains of `best-fit` over the best of the article's policies, selected for each figure."""
    articles = [policy for policy in ARTICLE_POLICIES if policy in runs]
    if PACKING not in runs or not articles:
        return {}
    found = {}
    for metric, fewer in LESS_IS_BETTER.items():
        best = (min if fewer else max)(
            articles, key=lambda policy, m=metric: mean([one[m] for one in runs[policy]]).value
        )
        found[metric] = {"best": best, "gain": _compared(runs[PACKING], runs[best])[metric]}
    return found


def _compared(ours: Iterable[Mapping[str, float]], others: Iterable[Mapping[str, float]]) -> dict[str, list[float]]:
    ours, others = list(ours), list(others)
    found = {}
    for metric, fewer in LESS_IS_BETTER.items():
        mine, theirs = [one[metric] for one in ours], [one[metric] for one in others]
        compared = differences(mine, theirs) if metric == IN_SECONDS else gains(mine, theirs, less_is_better=fewer)
        found[metric] = _pair(compared)
    return found


def _pair(value: Mean) -> list[float]:
    return [round(value.value, 4), round(value.half, 4)]
