"""Describe how the queue believes that an elastic job scales, once reports have told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trainmaster.domain.elastic.scaling import ScalingCurve
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.run_times import History


@dataclass(frozen=True, slots=True)
class BelievedScaling:
    """A learned curve at the sizes of a job that matter.

    Attributes:
        curve: the curve.
        sizes: the smallest, present and largest size, and those with reports, ascending.
        rates: reported steps or samples a second, by size.
        message: the belief as a sentence.
    """

    curve: ScalingCurve
    sizes: tuple[int, ...]
    rates: Mapping[int, float]
    message: str


def believed_scaling(job: Job, history: History) -> BelievedScaling | None:
    """Return how the job is believed to scale; None for a job that has one size, or is taken for linear."""
    elastic = job.elastic
    if elastic is None or elastic.max_instances == 1 or not history.tells_curve(job):
        return None
    curve, rates = history.curve(job), {speed.instances: speed.rate for speed in job.speeds_here.of_sizes}
    present = job.attempt.size if job.attempt is not None and job.units else None
    largest, of_interest = elastic.max_instances, {elastic.min_instances, present or elastic.min_instances, *rates}
    return BelievedScaling(curve, tuple(sorted(of_interest | {largest})), rates, _sentence(curve, present, largest))


def _sentence(curve: ScalingCurve, present: int | None, largest: int) -> str:
    would = f"{largest} instances would run {curve.speedup(largest):.1f} times as fast as 1"
    if present is None or present == 1:
        return would
    runs = f"{present} instances run {curve.speedup(present):.1f} times as fast as 1"
    return runs if present == largest else f"{runs}, {largest} would run {curve.speedup(largest):.1f} times as fast"
