"""What becomes of an image job: how many of its regions are done, what it gives back for that, a variant found late.

Finished regions give their requests back at once, so that others start while the rest goes on. The history tells what
people want to see of it, not each region. It must not read where regions are kept.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.lifecycle.transition import current, note, touch
from trainmaster.domain.jobs.observation import Observation
from trainmaster.images.domain.demand import advanced, demand_of, pool_of, still_held
from trainmaster.images.domain.work import ImageWork


def told(job: Job, seen: Observation, now: datetime) -> Job:
    """The job with what the report tells of its regions, of the same version; itself where that is nothing new.

    A region that is done is never done again, so its end is a checkpoint: what the job would lose by stepping aside
    counts from there.
    """
    work, progress = job.image_work, seen.progress
    if work is None or progress is None:
        return job
    known = advanced(work, progress)
    # One that comes late tells of fewer; what has been given back since is somebody else's.
    late = progress.done + progress.failed < known.done + known.failed
    attempt = current(job)
    units = dict(attempt.units) if late else still_held(attempt.units, progress)
    if known == work and units == attempt.units:
        return job
    saved_at = now if known.done > work.done else attempt.saved_at
    return replace(job, image_work=known, attempt=replace(attempt, units=units, saved_at=saved_at))


def on_variant(job: Job, variant: str, now: datetime) -> Job:
    """The waiting job with a variant chosen for it; it could not be when the job entered."""
    if job.image_work is None:
        return job
    work = replace(job.image_work, variant=variant)
    words = f"the endpoint could be described by now, and its variant {variant} was chosen"
    return note(job, now, words, image=pool_of(work), image_work=work, demand=demand_of(work))


def noted(before: Job, after: Job, now: datetime) -> Job:
    """The job after a report that told of its regions alone, with a line where people want one."""
    words = "" if before.image_work is None or after.image_work is None else _words(before.image_work, after.image_work)
    return note(after, now, words) if words else touch(after)


def _words(before: ImageWork, after: ImageWork) -> str:
    """When the first region has failed, and when the last one is done or failed; "" between."""
    settled = after.done + after.failed
    if settled == after.regions and before.done + before.failed < settled:
        failed = f", {after.failed} failed" if after.failed else ""
        return f"{after.done} of {after.regions} regions done{failed}; the results are being merged"
    if after.failed and not before.failed:
        return f"{after.failed} of {after.regions} regions failed so far"
    return ""
