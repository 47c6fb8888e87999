"""Sentences that summarize the figures, generated so that text and tables agree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.common.meter import Cost
from benchmarks.common.prices import dollars
from benchmarks.queue.goals import (
    GOAL_STORIES,
    MAX_IMPORT_MS,
    MAX_READS_BEHIND,
    MAX_UNITS,
    MAX_ZIPPED_MB,
    import_times,
)
from benchmarks.queue.planning import GOALS_MS

Figures = dict[str, Any]
OPTIONAL_SECTIONS = {
    "idle": "a tick",
    "baseline": "the article's algorithm",
    "start": "start-up and the bundle",
}
"""Sections that saved figures may omit."""


def summary(figures: Figures) -> list[str]:
    """Return the sentences for which there are figures."""
    return [
        *_lives(figures),
        *_behind(figures),
        *_article(figures),
        *_planning(figures),
        *_start(figures),
        *_rest(figures),
    ]


def _lives(figures: Figures) -> Iterator[str]:
    lives = [one for one in figures.get("life", ()) if one["name"] in GOAL_STORIES]
    if lives:
        writes, reads = ([one["job"][f"{kind}_units"] for one in lives] for kind in ("write", "read"))
        yield (
            f"{_judged(max(*writes, *reads) <= MAX_UNITS)}: at most {MAX_UNITS} write and {MAX_UNITS} read units for"
            f" a job,** alone and in bursts. A job takes {_between(writes)} write and {_between(reads)} read units."
        )


def _behind(figures: Figures) -> Iterator[str]:
    """Yield the cost of a job at the greatest depth: its submission and its turn."""
    for one in figures.get("depth", ())[-1:]:
        submitted, turn = one["submit"], one["turn"]
        reads = submitted["read_units"] + turn["read_units"]
        writes = submitted["write_units"] + turn["write_units"]
        yield (
            f"{_judged(writes <= MAX_UNITS and reads <= MAX_READS_BEHIND)}: at most {MAX_UNITS} write and"
            f" {MAX_READS_BEHIND} read units with many running jobs.** With {one['active']} running and"
            f" {one['waiting']:,} waiting jobs, a job takes {reads:g} read units:"
            f" {submitted['read_units']:g} at its submission, {turn['read_units']:g} when a job ends and this one takes"
            f" its place, {one['pass']['read_units']:g} of them for the pass. With {writes:g} write units that is"
            f" ${dollars(Cost(reads=reads, writes=writes)) * 1000:.3f} for 1,000 jobs."
        )


def _article(figures: Figures) -> Iterator[str]:
    ours = {one["waiting"]: one["pass"]["read_units"] for one in figures.get("depth", ())}
    for one in figures.get("baseline", {}).get("passes", ()):
        if one["waiting"] in ours and one["how"] == "counted":
            yield (
                f"At {one['waiting']:,} waiting jobs, a pass of the article takes {one['read_units']:,.0f} read units,"
                f" and a pass of the queue {ours[one['waiting']]:g}."
            )


def _planning(figures: Figures) -> Iterator[str]:
    for size, most in GOALS_MS.items():
        taken = [one["median_ms"] for one in figures.get("planner", ()) if one["active"] == size]
        if taken:
            yield (
                f"{_judged(max(taken) <= most)}: {most:,g} ms to plan {size:,} active and {size:,} considered jobs.**"
                f" The most expensive kind takes {max(taken) / most:.0%} of that, the cheapest {min(taken) / most:.0%}."
            )


def _start(figures: Figures) -> Iterator[str]:
    started = figures.get("start")
    if started is None:
        return
    took = import_times(figures)
    yield (
        f"{_judged(took[True] <= MAX_IMPORT_MS)}: {MAX_IMPORT_MS} ms to import the API handler.** It takes"
        f" {took[True]:.0f} ms of CPU time, {took[True] / took[False]:.0%} of what it takes without compiled files."
    )
    heaviest = max(one["zipped_mb"] for one in started["bundle"].values())
    yield (
        f"{_judged(heaviest <= MAX_ZIPPED_MB)}: {MAX_ZIPPED_MB} MB for the zipped bundle.** The heaviest takes"
        f" {heaviest / MAX_ZIPPED_MB:.0%} of that."
    )


def _rest(figures: Figures) -> Iterator[str]:
    absent = [what for section, what in OPTIONAL_SECTIONS.items() if section not in figures]
    if absent:
        yield f"These figures do not include: {'; '.join(absent)}. `make bench` measures them too."


def _judged(met: bool) -> str:  # noqa: FBT001 -- formats a Boolean
    return "**Met" if met else "**Missed"


def _between(units: list[float]) -> str:
    return f"{min(units):.1f} to {max(units):.1f}"
