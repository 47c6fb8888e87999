"""Run times for slow simulations: of what has ended, and of what has run for some time without an end.

Many jobs come together, such as the trials of a sweep, and may run for longer than any before. The running ones show
that hours before the first of them ends. The planner decides by ended jobs alone: in simulations of it, unfinished ones
changed decisions and improved no result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from trainmaster.domain.jobs.run_times import BUCKETS, EDGES, Sketch
from trainmaster.domain.plan import Snapshot
from trainmaster.planner.survival import survival, unfinished_by_class


def counting_unfinished(snapshot: Snapshot, now: datetime) -> Snapshot:
    """Return the snapshot with a history in which unfinished jobs count up to the age that they have reached.

    A class of which no job has ended still has no run times.
    """
    history, unfinished = snapshot.records.history, unfinished_by_class(snapshot, now)
    kinds = {
        kind: _with_unfinished(sketch, unfinished[kind]) if kind in unfinished else sketch
        for kind, sketch in history.kinds.items()
    }
    return replace(snapshot, records=replace(snapshot.records, history=replace(history, kinds=kinds)))


def _with_unfinished(sketch: Sketch, unfinished: Sequence[float]) -> Sketch:
    """Return the run times of the ended jobs of a class and of these unfinished ones.

    Beyond all data, whatever is twice as long is half as likely, as everywhere else (`run_times`).
    """
    ended = sketch.by_bucket
    alive, jobs = survival(ended, unfinished), sketch.total + sum(unfinished)
    last = 1 + max(bucket for bucket in range(BUCKETS) if ended[bucket] or unfinished[bucket])
    alive[last:] = [alive[last] * EDGES[last] / edge for edge in EDGES[last:]]
    alive[-1] = 0.0
    weights = {bucket: jobs * (alive[bucket] - alive[bucket + 1]) for bucket in range(BUCKETS)}
    return Sketch({bucket: weight for bucket, weight in weights.items() if weight > 0}, sketch.halved)
