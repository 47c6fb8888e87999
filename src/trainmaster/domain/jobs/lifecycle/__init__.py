"""All changes of a job, as pure functions from the job before to the job after.

    transition.py  shared by all: the table of transitions, the version, the line of history
    running.py     starts, preemptions, stops
    resizing.py    steps from one size to another
    waiting.py     holds, releases, parents, priorities, cancellations
    failures.py    retries of failures, or the job's end
    progress.py    progress of jobs of other kinds than training
    reports.py     SageMaker's reports

Each checks `TRANSITIONS`, increments the version and adds one line of history.
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
    record_hook_call,
    resize,
    resized,
    resizing_of,
    resumes,
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
    "record_hook_call",
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
    "with_work",
]
