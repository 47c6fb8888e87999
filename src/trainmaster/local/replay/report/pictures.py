"""Pictures of a run as SVG and PNG: queue and used units over time, and the Gantt chart.

matplotlib is an optional dependency, so only drawing imports it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmaster.local.replay.report.gantt import Bar, bars
from trainmaster.local.replay.report.results import JobResult, usage_over_time
from trainmaster.local.replay.runs import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SIZE = (12.0, 6.0)
_DOTS_PER_INCH = 130
_FORMATS = ("svg", "png")
_MAX_VECTOR_ITEMS = 3_000
"""Items in a picture above which the SVG holds a bitmap: browsers are slow with more."""
_MAX_LABELS = 40
_MAX_SHARES = 10
_UNITS = ((3 * 86_400.0, 86_400.0, "days"), (3 * 3_600.0, 3_600.0, "hours"), (0.0, 60.0, "minutes"))
_SIZES = ((1, "1 GPU"), (7, "2 to 7"), (31, "8 to 31"), (None, "32 and more"))
_COLORS = (
    *("#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2"),
    *("#b279a2", "#eeca3b", "#9d755d", "#ff9da6", "#79706e"),
)
_INK, _QUEUE, _USED = "#444444", "#e45756", "#4c78a8"


def draw(run: Run, directory: str) -> list[Path]:
    """Draw a run into a directory, which is created if necessary; return the files.

    Raises `OSError` if they cannot be written.
    """
    import matplotlib as mpl

    Path(directory).mkdir(parents=True, exist_ok=True)
    kinds: Mapping[str, Callable[[Run], Figure]] = {"queue": queue_figure, "gantt": gantt_figure}
    written: list[Path] = []
    # Keep text as text, without formulas between dollar signs, and make files reproducible.
    with mpl.rc_context(
        {"svg.fonttype": "none", "svg.hashsalt": "trainmaster", "text.parse_math": False, "font.size": 10}
    ):
        for kind, make in kinds.items():
            figure = make(run)
            for form in _FORMATS:
                path = Path(directory) / f"{run.policy}-{kind}.{form}"
                figure.savefig(
                    path, dpi=_DOTS_PER_INCH, metadata={"Date": None} if form == "svg" else {"Software": None}
                )
                written.append(path)
    return written


def queue_figure(run: Run) -> Figure:
    """Plot the number of waiting jobs and of used units over time."""
    figure = _figure()
    above, below = figure.subplots(2, 1, sharex=True)
    scale, unit, begin = _scale(run.results)
    found = usage_over_time(run.results)
    times = [(usage.at - begin) / scale for usage in found]
    dots = len(found) > _MAX_VECTOR_ITEMS
    waiting, used = [usage.waiting for usage in found], [usage.used for usage in found]
    above.fill_between(times, waiting, step="post", color=_QUEUE, alpha=0.35, linewidth=0, rasterized=dots)
    above.step(times, waiting, where="post", color=_QUEUE, linewidth=1, rasterized=dots)
    below.fill_between(times, used, step="post", color=_USED, alpha=0.8, linewidth=0, rasterized=dots)
    below.axhline(run.cap, color=_INK, linewidth=1, linestyle="--")
    above.set(title=_title(run), ylabel="waiting jobs")
    below.set(ylabel=f"GPUs used of {run.cap}", xlabel=unit, ylim=(0, run.cap * 1.05))
    above.set_ylim(bottom=0)
    _plain(above, below)
    return figure


def gantt_figure(run: Run) -> Figure:
    """Plot the units of each job over time; colored by share if there are several, else by size."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Patch, Rectangle

    figure = _figure()
    axes = figure.subplots()
    scale, unit, begin = _scale(run.results)
    boxes = bars(run.results, run.cap)
    names, kind_of = _color_keys(run.results)
    places = [Rectangle(((b.start - begin) / scale, b.first), (b.end - b.start) / scale, b.count) for b in boxes]
    colors = [_shade(_color(kind_of(box.results)), box.number) for box in boxes]
    edge = 0.4 if len(boxes) <= _MAX_VECTOR_ITEMS else 0.0
    axes.add_collection(
        PatchCollection(
            places, facecolor=colors, edgecolor="white", linewidth=edge, rasterized=len(boxes) > _MAX_VECTOR_ITEMS
        )
    )
    end = max(each.finish for each in run.results)
    axes.set(title=_title(run), xlabel=unit, ylabel="GPU", xlim=(0, (end - begin) / scale or 1), ylim=(0, run.cap))
    _label(axes, boxes, begin, scale)
    patches = [Patch(color=_color(number), label=_printable(name)) for number, name in enumerate(names)]
    axes.legend(handles=patches, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    _plain(axes)
    return figure


def _figure() -> Figure:
    """Return an empty figure. pyplot would keep every figure and look for a display."""
    from matplotlib.figure import Figure

    return Figure(figsize=_SIZE, layout="constrained")


def _label(axes: Axes, boxes: Sequence[Bar], begin: float, scale: float) -> None:
    """Label the bars if they are few enough to be read."""
    if len(boxes) > _MAX_LABELS:
        return
    for box in boxes:
        middle = ((box.start + box.end) / 2 - begin) / scale
        place: dict[str, Any] = {"ha": "center", "va": "center", "color": "white", "fontsize": 8, "clip_on": True}
        axes.text(middle, box.first + box.count / 2, _printable(box.results.job.job_id), **place)


def _printable(name: str) -> str:
    """Return the name without characters that XML excludes."""
    return "".join(character if character.isprintable() else " " for character in name)


def _color_keys(results: Sequence[JobResult]) -> tuple[list[str], Callable[[JobResult], int]]:
    """Return the names of the colors, and a function from a job to its color."""
    shares = sorted({each.job.share for each in results})
    if 1 < len(shares) <= _MAX_SHARES:
        return shares, lambda each: shares.index(each.job.share)
    names = [name for _, name in _SIZES]
    return names, lambda each: next(n for n, (high, _) in enumerate(_SIZES) if high is None or each.job.gpus <= high)


def _color(number: int) -> str:
    return _COLORS[number % len(_COLORS)]


def _shade(color: str, number: int) -> tuple[float, ...]:
    """Lighten the color for every second and third job, to tell adjacent jobs apart."""
    from matplotlib.colors import to_rgb

    return tuple(part + (1 - part) * 0.14 * (number % 3) for part in to_rgb(color))


def _scale(results: Sequence[JobResult]) -> tuple[float, str, float]:
    """Return seconds in a unit of the time axis, the unit's name, and the second at which the axis begins."""
    begin = min(each.job.submit for each in results)
    length = max(each.finish for each in results) - begin
    scale, name = next((scale, name) for low, scale, name in _UNITS if length >= low)
    return scale, name, begin


def _title(run: Run) -> str:
    return f"{run.policy}: {len(run.results):,} jobs on {run.cap} GPUs"


def _plain(*all_axes: Axes) -> None:
    for axes in all_axes:
        axes.spines[["top", "right"]].set_visible(False)
        axes.margins(x=0)
