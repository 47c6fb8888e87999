"""Draws elastic replays: average completion times, and GPUs held over time. matplotlib is an optional dependency."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.common.pictures import drawing, save
from benchmarks.elastic.runs import POLICIES
from benchmarks.elastic.tables import by_case

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Figures = dict[str, Any]
_COLORS = dict(
    zip(
        POLICIES,
        ("#bab0ac", "#79706e", "#9ecae9", "#4c78a8", "#ffbf79", "#f58518", "#54a24b", "#b279a2"),
        strict=True,
    )
)
_ELASTIC, _RIGID, _WAITING = "#4c78a8", "#bab0ac", "#e45756"
_HOUR, _DAY = 3600.0, 86_400.0


def draw(runs: Sequence[Figures], cap: int, directory: Path, forms: Sequence[str] = ("png",)) -> list[Path]:
    """Draw completion times, and the GPUs held on each trace; return the files."""
    with drawing():
        figures = {"completion": completion(runs)}
        figures |= {f"gpus-{vc}": held(runs, vc, cap) for vc in dict.fromkeys(one["vc"] for one in runs)}
        return save(figures, directory, forms)


def completion(runs: Sequence[Figures]) -> Figure:
    """Plot average completion times: a row for each trace, a group for each case, a bar for each policy."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    cases = by_case(runs)
    traces = list(dict.fromkeys(case[0] for case in cases))
    figure = Figure(figsize=(11, 2.6 * len(traces) + 1), layout="constrained")
    for axes, vc in zip(figure.subplots(len(traces), 1, squeeze=False)[:, 0], traces, strict=True):
        groups = {case[1:]: found for case, found in cases.items() if case[0] == vc}
        for place, found in enumerate(groups.values()):
            for policy, one in found.items():
                at = place + (POLICIES.index(policy) - len(POLICIES) / 2 + 0.5) / (len(POLICIES) + 1.5)
                axes.bar(at, one["avg_jct_s"] / _HOUR, 1 / (len(POLICIES) + 1.5), color=_COLORS[policy])
        labels = [", ".join(filter(None, (curve, f"{cost:g} s", hook))) for curve, cost, hook in groups]
        axes.set_xticks(range(len(groups)), labels)
        axes.set(title=vc, ylabel="average JCT, hours")
        axes.spines[["top", "right"]].set_visible(False)
    shown = [policy for policy in POLICIES if any(policy in found for found in cases.values())]
    patches = [Patch(color=_COLORS[policy], label=policy) for policy in shown]
    figure.legend(handles=patches, loc="outside lower center", ncols=4, frameon=False)
    return figure


def held(runs: Sequence[Figures], vc: str, cap: int) -> Figure:
    """Plot the GPUs held by each kind of job, and the waiting jobs, under each policy in the first case of a trace."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    (_, curve, cost, _), found = next((case, found) for case, found in by_case(runs).items() if case[0] == vc)
    figure = Figure(figsize=(11, 1.5 * len(found) + 1), layout="constrained")
    for axes, (policy, one) in zip(
        figure.subplots(len(found), 1, sharex=True, squeeze=False)[:, 0], found.items(), strict=True
    ):
        _plot_held(axes, policy, one["timeline"], cap)
    figure.suptitle(f"{vc}: {curve} curve, {cost:g} s a resize")
    names = {"elastic jobs": _ELASTIC, "other jobs": _RIGID, "jobs that wait (right)": _WAITING}
    patches = [Patch(color=color, label=name) for name, color in names.items()]
    figure.legend(handles=patches, loc="outside lower center", ncols=3, frameon=False)
    return figure


def _plot_held(axes: Axes, policy: str, line: Figures, cap: int) -> None:
    days = [place * line["step_s"] / _DAY for place in range(len(line["rigid"]))]
    axes.stackplot(days, line["rigid"], line["elastic"], colors=[_RIGID, _ELASTIC], linewidth=0)
    axes.set(ylim=(0, cap), xlim=(0, days[-1]), ylabel="GPUs")
    axes.set_title(policy, loc="left", fontsize=9)
    beside = axes.twinx()
    beside.plot(days, line["waiting"], color=_WAITING, linewidth=0.9)
    beside.set_ylim(bottom=0)
    for each in (axes, beside):
        each.spines[["top"]].set_visible(False)
