"""Every change that a job can go through, as a pure function from the job before to the job after.

    moves.py     what all of them share: one table of transitions, one version, one line of history
    running.py   starts, preemptions, stops
    resizing.py  from one size to another
    waiting.py   holds, releases, parents, priorities, cancellations
    failures.py  what failed is tried again, or ends the job
    reports.py   what SageMaker says

Each asks `TRANSITIONS`, counts the version up and writes one line of history. They must not read a clock, store
anything or decide whether a change is wise.
"""

from __future__ import annotations

from trainmaster.domain.jobs.lifecycle.failures import Retries, back_off, fail, failed_as, give_back
from trainmaster.domain.jobs.lifecycle.progress import with_work
from trainmaster.domain.jobs.lifecycle.reports import ends, observe, restarted
from trainmaster.domain.jobs.lifecycle.resizing import (
    accept_smaller_size,
    elastic_of,
    give_up,
    member_ended,
    member_launched,
    member_left,
    member_of,
    member_stop_sent,
    resize,
    resized,
    resizing_of,
    resumes,
    told,
)
from trainmaster.domain.jobs.lifecycle.running import (
    ask_stop,
    launched,
    preempt,
    record_checkpoint,
    reserve,
    set_reclaim_time,
    start,
    stop_sent,
)
from trainmaster.domain.jobs.lifecycle.transition import CLOCK_TOLERANCE, current
from trainmaster.domain.jobs.lifecycle.waiting import (
    cancel,
    enqueue_if_due,
    held_reason,
    hold,
    hold_if_needed,
    parent_ended,
    pool_made,
    release,
    reprioritise,
)

__all__ = [
    "CLOCK_TOLERANCE",
    "Retries",
    "accept_smaller_size",
    "ask_stop",
    "back_off",
    "cancel",
    "current",
    "elastic_of",
    "ends",
    "enqueue_if_due",
    "fail",
    "failed_as",
    "give_back",
    "give_up",
    "held_reason",
    "hold",
    "hold_if_needed",
    "launched",
    "member_ended",
    "member_launched",
    "member_left",
    "member_of",
    "member_stop_sent",
    "observe",
    "parent_ended",
    "pool_made",
    "preempt",
    "record_checkpoint",
    "release",
    "reprioritise",
    "reserve",
    "resize",
    "resized",
    "resizing_of",
    "restarted",
    "resumes",
    "set_reclaim_time",
    "start",
    "stop_sent",
    "told",
    "with_work",
]
