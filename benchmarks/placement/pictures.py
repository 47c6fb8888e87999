"""Draws the article's figures 4 to 6, and those of balance and gangs. matplotlib is an optional dependency."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.common.pictures import drawing, save
from benchmarks.placement.experiments import POLICIES
from benchmarks.placement.summary import mean_of

Figures = dict[str, Any]
_COLORS = dict(zip(POLICIES, ("#79706e", "#eeca3b", "#b279a2", "#4c78a8", "#f58518", "#54a24b"), strict=True))
_MAX_COLUMNS = 4
_ARTICLE = {"figure 4": "throughput", "figure 5": "throughput", "figure 6": "makespan"}
_LABELS = {
    "throughput": "tasks an hour",
    "makespan": "seconds to the last end",
    "wait": "mean seconds before a start",
    "deviation": "standard deviation of the nodes' use, points",
}


def draw(cells: Sequence[Figures], directory: Path, forms: Sequence[str] = ("png",)) -> list[Path]:
    """Draw each experiment that the cells include; return the files."""
    with drawing():
        return save({name: _drawn(panels) for name, panels in _panels(cells).items()}, directory, forms)


_Panel = tuple[str, str, list[Figures]]


def _panels(cells: Sequence[Figures]) -> dict[str, list[_Panel]]:
    """Return the panels of each picture: title, metric, cells."""
    found: dict[str, list[_Panel]] = {}
    for experiment, metric in _ARTICLE.items():
        for cell in (cell for cell in cells if cell["experiment"] == experiment):
            kind = cell["point"].partition(",")[0] if experiment == "figure 6" else cell["setting"]
            _add(found, experiment.replace(" ", "-"), f"{kind}, {cell['nodes']} nodes", metric, cell)
    for cell in cells:
        if cell["experiment"] == "table 3":
            _add(found, "table-3", cell["point"].partition(", ")[2], "deviation", cell)
        if cell["experiment"] == "gangs":
            for metric in ("wait", "makespan"):
                _add(found, "gangs", f"{cell['nodes']} nodes, {cell['point'].partition(', ')[2]}", metric, cell)
    return found


def _add(found: dict[str, list[_Panel]], name: str, title: str, metric: str, cell: Figures) -> None:
    panels = found.setdefault(name, [])
    for known, of_metric, lines in panels:
        if (known, of_metric) == (title, metric):
            lines.append(cell)
            return
    panels.append((title, metric, [cell]))


def _drawn(panels: list[_Panel]) -> Any:
    from matplotlib.patches import Patch

    figure, places = _figure(len(panels))
    for axes, (title, metric, lines) in zip(places, panels, strict=True):
        _draw_panel(axes, title, metric, lines)
    marks = [Patch(color=color, label=policy) for policy, color in _COLORS.items()]
    figure.legend(handles=marks, loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return figure


def _figure(panels: int) -> tuple[Any, list[Any]]:
    """Return a figure and its panels, row by row. pyplot would keep every figure and look for a display."""
    from matplotlib.figure import Figure

    columns = min(panels, _MAX_COLUMNS)
    rows = -(-panels // columns)
    figure = Figure(figsize=(max(6.0, 3.4 * columns), 3.4 * rows + 0.8), layout="constrained")
    places = list(figure.subplots(rows, columns, squeeze=False).flat)
    for unused in places[panels:]:
        unused.remove()
    return figure, places[:panels]


def _draw_panel(axes: Any, title: str, metric: str, cells: list[Figures]) -> None:
    """Draw lines for several points, else bars; whiskers are 95 % confidence intervals."""
    if len(cells) > 1:
        for policy, color in _COLORS.items():
            some = [
                (cell["x"], mean_of(cell["policies"][policy][metric])) for cell in cells if policy in cell["policies"]
            ]
            style = {"color": color, "label": policy, "marker": "o", "markersize": 3, "linewidth": 1.2, "capsize": 2}
            axes.errorbar([x for x, _ in some], [m.value for _, m in some], yerr=[m.half for _, m in some], **style)
        _scale(axes, [cell["x"] for cell in cells])
    else:
        held = [
            (policy, mean_of(cells[0]["policies"][policy][metric]))
            for policy in POLICIES
            if policy in cells[0]["policies"]
        ]
        at = range(len(held))
        colors = [_COLORS[policy] for policy, _ in held]
        axes.bar(at, [m.value for _, m in held], yerr=[m.half for _, m in held], color=colors, capsize=2)
        axes.set_xticks(at, [policy for policy, _ in held], rotation=45, ha="right", fontsize=7)
    axes.set(title=title, ylabel=_LABELS[metric])
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)


def _scale(axes: Any, xs: list[float]) -> None:
    if max(xs) >= 10 * min(xs):
        axes.set_xscale("log")
    axes.set_xticks(xs, [f"{x:g}" for x in xs])
    axes.minorticks_off()
