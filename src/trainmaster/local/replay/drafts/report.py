"""The answer of a replay: figures with the settings in force and with the draft, and the jobs that changed most."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from trainmaster.domain.percentile import percentile
from trainmaster.local.replay.drafts.queue import HORIZON, JobOutcome
from trainmaster.local.replay.drafts.week import Week
from trainmaster.local.replay.virtual_queue import RESTART_SECONDS

MAX_CHANGED = 50
"""Jobs that the answer lists, at most."""
_HOUR = 3_600.0
_MIN_CHANGE_SECONDS = 1.0
Figures = dict[str, Any]

ASSUMPTIONS = (
    "Jobs arrive when they really did, with the priorities that they have now.",
    "Each works as long as it really worked, on any instance type; elastic jobs in proportion to their instances.",
    "Jobs that have not ended work as long as the queue expects.",
    "The queue begins empty, except for the jobs that worked then, and knows no run times and no earlier usage.",
    f"A preempted job resumes after {RESTART_SECONDS / 60:.0f} minutes from its checkpoint, or else starts again.",
    "A stop frees the instances at once, and elastic jobs are resized by restarts.",
    "Pools, caps and quotas of the account are those of now, and SageMaker always has capacity.",
    "Spot interruptions, holds by people, and training jobs from outside the queue are not replayed.",
    "Every job is accepted: the rules on submissions do not apply.",
)
"""Assumptions of a replay."""


def report_of(
    week: Week, in_force: Sequence[JobOutcome], draft: Sequence[JobOutcome], left_out: Mapping[str, int]
) -> Figures:
    """Return the answer for two replays of the same jobs, in the same order."""
    changed = sorted(filter(_differs, zip(in_force, draft, strict=True)), key=_rank)
    missing = {**left_out, "unfit": week.unfit}
    return {
        "since": _text(week.since),
        "at": _text(week.at),
        "jobs": len(week.jobs),
        "leftOut": {name: count for name, count in missing.items() if count},
        "assumptions": list(ASSUMPTIONS),
        "recorded": _waits([each.past.recorded_wait for each in in_force if not each.past.worked]),
        "inForce": _all_figures(in_force),
        "draft": _all_figures(draft),
        "changedJobs": len(changed),
        "changed": [_change(*pair) for pair in changed[:MAX_CHANGED]],
        "horizonDays": HORIZON.days,
    }


def _all_figures(outcomes: Sequence[JobOutcome]) -> Figures:
    """Return the figures of all jobs, by share, and by priority from the highest down."""
    shares = _grouped(outcomes, lambda each: each.past.job.share)
    priorities = _grouped(outcomes, lambda each: each.past.job.priority)
    return {
        "total": _figures(outcomes),
        "shares": [{"name": name, **_figures(group)} for name, group in sorted(shares.items())],
        "priorities": [
            {"name": str(name), **_figures(group)} for name, group in sorted(priorities.items(), reverse=True)
        ],
    }


def _grouped(outcomes: Iterable[JobOutcome], key: Callable[[JobOutcome], Any]) -> dict[Any, list[JobOutcome]]:
    groups: dict[Any, list[JobOutcome]] = {}
    for each in outcomes:
        groups.setdefault(key(each), []).append(each)
    return groups


def _figures(outcomes: Sequence[JobOutcome]) -> Figures:
    completions = sorted(each.completion for each in outcomes if each.completion is not None)
    return {
        "jobs": len(outcomes),
        "ended": len(completions),
        **_waits([each.wait for each in outcomes]),
        "completionP50Seconds": percentile(completions, 0.5),
        "completionP95Seconds": percentile(completions, 0.95),
        "preemptions": sum(each.preemptions for each in outcomes),
        "lostInstanceHours": sum(each.lost_instance_seconds for each in outcomes) / _HOUR,
        "dollars": sum(each.dollars for each in outcomes),
    }


def _waits(waits: Iterable[float | None]) -> Figures:
    known = sorted(wait for wait in waits if wait is not None)
    return {"waitP50Seconds": percentile(known, 0.5), "waitP95Seconds": percentile(known, 0.95)}


def _differs(pair: tuple[JobOutcome, JobOutcome]) -> bool:
    before, after = pair
    if before.preemptions != after.preemptions:
        return True
    times = ((before.wait, after.wait), (before.completion, after.completion))
    return any(
        (one is None) != (other is None) or abs((one or 0.0) - (other or 0.0)) >= _MIN_CHANGE_SECONDS
        for one, other in times
    )


def _rank(pair: tuple[JobOutcome, JobOutcome]) -> tuple[bool, float, str]:
    """Sort jobs that end with one of the settings only first, then by the change of their completion time."""
    before, after = pair
    both = before.completion is not None and after.completion is not None
    change = abs((after.completion or 0.0) - (before.completion or 0.0)) if both else 0.0
    return both, -change, before.past.job.name


def _change(before: JobOutcome, after: JobOutcome) -> Figures:
    job = before.past.job
    return {
        "jobName": job.name,
        "share": job.share,
        "priority": job.priority,
        "inForce": _of_job(before),
        "draft": _of_job(after),
    }


def _of_job(outcome: JobOutcome) -> Figures:
    return {
        "waitSeconds": outcome.wait,
        "completionSeconds": outcome.completion,
        "preemptions": outcome.preemptions,
    }


def _text(time: Any) -> str:
    return str(time.isoformat(timespec="seconds").replace("+00:00", "Z"))
