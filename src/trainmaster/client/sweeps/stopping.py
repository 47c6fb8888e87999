"""The median rule: a trial that is worse than the median of others at its age is stopped.

Source: Golovin et al., "Google Vizier: A Service for Black-Box Optimization" (KDD 2017), section 3.2.2: a trial is
stopped at a step if its best value by that step is strictly worse than the median of the running averages that
completed trials had by that step. Here a step is the time at work. SageMaker's own early stopping is such a rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import Final, NamedTuple, TypeAlias

from trainmaster.client.sweeps.sweep import Objective

Curve: TypeAlias = Sequence[tuple[float, float]]
"""Seconds at work and values of the metric, by time."""
MIN_COMPLETED: Final = 4
"""Completed trials with values by the step that a comparison needs."""
MIN_POINTS: Final = 3
"""Values of a trial before it is compared."""


class Verdict(NamedTuple):
    """Reason to stop a trial: its best value, the median that it missed, its seconds at work, the trials compared."""

    best: float
    median: float
    seconds: float
    compared: int


def median_rule(curve: Curve, completed: Mapping[str, Curve], objective: Objective) -> Verdict | None:
    """Return the reason to stop a running trial; None if it continues."""
    if len(curve) < MIN_POINTS:
        return None
    step = curve[-1][0]
    by_step = ([value for seconds, value in other if seconds <= step] for other in completed.values())
    averages = [fmean(values) for values in by_step if values]
    if len(averages) < MIN_COMPLETED:
        return None
    best = (min if objective.goal == "Minimize" else max)(value for _, value in curve)
    middle = median(averages)
    return Verdict(best, middle, step, len(averages)) if objective.is_better(middle, best) else None
