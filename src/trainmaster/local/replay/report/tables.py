"""Figures of runs as tables and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tabulate import tabulate

from trainmaster.local.replay.runs import RATIOS, REFERENCE, Run, ratios

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))
_NONE = "-"
_TITLES = {
    "avg_jct_s": "Avg JCT",
    "p50_jct_s": "p50 JCT",
    "p99_jct_s": "p99 JCT",
    "avg_wait_s": "Avg Wait",
    "p99_wait_s": "p99 Wait",
    "avg_wait_large_s": "Avg Wait 8+",
    "p99_wait_large_s": "p99 Wait 8+",
    "worst5_wait_large_s": "Worst 5% Wait 8+",
}


def as_json(runs: Sequence[Run], capped_jobs: int, *, compared: bool) -> str:
    """Return the figures of one run, or of a comparison, where each policy has ratios to the reference.

    `capped_jobs` is the number of jobs that are wider than the pool.
    """
    found = {run.policy: run.figures() for run in runs}
    capped = {"capped_jobs": capped_jobs}
    if not compared:
        return json.dumps(found[runs[0].policy] | capped, indent=2)
    reference = found[REFERENCE]
    for one in found.values():
        one["ratios"] = ratios(one, reference)
    return json.dumps({"reference": REFERENCE, **capped, "policies": found}, indent=2)


def one_table(run: Run) -> str:
    """Return the tables of one run: its figures, and the times by job size."""
    found = run.figures()
    rows = [
        ("Policy", found["policy"]),
        ("Jobs", f"{found['jobs']:,} on {found['cap']} GPUs"),
        ("Makespan", duration(found["makespan_s"])),
        ("Utilization", percent(found["utilization"])),
        ("Preemptions", f"{found['preemptions_per_job']:.3f} a job"),
        ("Lost to restarts", f"{percent(found['lost_fraction'])} ({found['lost_gpu_hours']:,.1f} GPU-hours)"),
        ("Jain's index over shares", f"{found['jain']:.3f}"),
        *_estimate_rows(found),
        ("Took", f"{found['wall_s']:.1f} s"),
    ]
    facts = tabulate(rows, tablefmt="plain", disable_numparse=True)
    return f"{facts}\n\n{_sizes(found)}"


def _estimate_rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    if not found.get("eta_asked"):
        return []
    error = duration(found["eta_median_error_s"])
    inside = percent(found["eta_inside"])
    return [("Estimated starts", f"{inside} of {found['eta_asked']} inside the range; median error {error}")]


def _sizes(found: dict[str, Any]) -> str:
    columns = ("avg_jct_s", "p50_jct_s", "p99_jct_s", "avg_wait_s", "p99_wait_s")
    classes = {**found["by_size"], "all": found}
    rows = [[name, one["jobs"], *(duration(one[column]) for column in columns)] for name, one in classes.items()]
    return _table(rows, ("GPUs", "Jobs", *(_TITLES[column] for column in columns)))


def comparison(runs: Sequence[Run]) -> str:
    """Return the table of several runs: figures, with ratios to the reference."""
    found = [run.figures() for run in runs]
    reference = next(one for one in found if one["policy"] == REFERENCE)
    rows = [
        [
            one["policy"],
            *(_with_ratio(one, reference, name) for name in RATIOS),
            percent(one["utilization"]),
            f"{one['preemptions_per_job']:.2f}",
            percent(one["lost_fraction"]),
        ]
        for one in found
    ]
    headers = ("Policy", *(_TITLES[name] for name in RATIOS), "Used", "Preempted", "Lost")
    head = f"{found[0]['jobs']:,} jobs on {found[0]['cap']} GPUs; in brackets the ratio to {REFERENCE}"
    return f"{head}\n\n{_table(rows, headers)}"


def _with_ratio(one: dict[str, Any], reference: dict[str, Any], name: str) -> str:
    ratio = ratios(one, reference)[name]
    return duration(one[name]) + ("" if ratio is None else f" ({ratio:.2f})")


def duration(seconds: float | None) -> str:
    """Format a time span: `3.1 d`, `42 s`."""
    if seconds is None:
        return _NONE
    for length, unit in _UNITS:
        if seconds >= length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s"


def percent(fraction: float) -> str:
    """Format a fraction as a percentage."""
    return f"{fraction:.1%}"


def _table(rows: Sequence[Sequence[Any]], headers: Sequence[str]) -> str:
    align = ["left", *["right"] * (len(headers) - 1)]
    return tabulate(rows, headers=headers, disable_numparse=True, colalign=align)
