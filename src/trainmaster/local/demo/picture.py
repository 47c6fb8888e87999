"""Draws a run of the elastic scenario: instances, loss and steps over time. matplotlib is an optional dependency."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from trainmaster.local.demo.elastic_requests import ELASTIC, URGENT
from trainmaster.local.demo.elastic_scenario import Record, Step

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE = (10.0, 8.0)
_DOTS_PER_INCH = 110
_INK = "#444444"
_WORLDS = {1: "#f58518", 3: "#4c78a8"}
_OTHERS, _URGENT = "#79706e", "#e45756"


def draw(record: Record, path: Path) -> None:
    """Draw a record into a PNG file. Raises `OSError` if it cannot be written."""
    from matplotlib.figure import Figure

    # Not pyplot, which keeps every figure and looks for a display.
    figure = Figure(figsize=_SIZE, layout="constrained")
    above, middle, below = figure.subplots(3, 1, sharex=True, height_ratios=(1.1, 1, 1))
    begin = min(job.start for job in record.training_jobs)
    _instances(above, record, begin)
    for axes, value in ((middle, "loss"), (below, "step")):
        _curve(axes, record.steps, value, begin)
    above.set_title("An elastic job in the local stack: one instance, three, one, three")
    middle.set(ylabel="loss", yscale="log")
    below.set(ylabel="step", xlabel="seconds")
    middle.legend(loc="upper right", frameon=False)
    for axes in (above, middle, below):
        axes.spines[["top", "right"]].set_visible(False)
        for number in _boundaries(record.steps):
            axes.axvline(number - begin, color=_INK, linewidth=0.6, linestyle=":")
    figure.savefig(path, dpi=_DOTS_PER_INCH, metadata={"Software": None})


def _instances(axes: Axes, record: Record, begin: float) -> None:
    """Draw a bar for each training job, as high as its number of instances."""
    floor = 0.0
    ticks, names = [], []
    for job in reversed(record.training_jobs):
        bar = ((job.start - begin, job.end - job.start),)
        axes.broken_barh(bar, (floor + 0.1, job.instances - 0.2), color=_color(job.name))
        ticks.append(floor + job.instances / 2)
        names.append(job.name)
        floor += job.instances
    axes.set_yticks(ticks, names, fontsize=8)


def _color(name: str) -> str:
    if name == URGENT:
        return _URGENT
    if name == ELASTIC:
        return _WORLDS[1]
    return _WORLDS[3] if name.startswith(ELASTIC) else _OTHERS


def _curve(axes: Axes, steps: tuple[Step, ...], value: str, begin: float) -> None:
    for world, color in _WORLDS.items():
        mine = [step for step in steps if step.world == world]
        times = [step.at - begin for step in mine]
        label = f"{world} {'process' if world == 1 else 'processes'}"
        axes.plot(times, [getattr(step, value) for step in mine], ".", markersize=3, color=color, label=label)


def _boundaries(steps: tuple[Step, ...]) -> list[float]:
    """Return the times at which a new world took its first step."""
    return [step.at for before, step in pairwise(steps) if before.round != step.round]
