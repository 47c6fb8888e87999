"""All changes of a job, as pure functions from the job before to the job after.

    transition.py  shared by all: the table of transitions, the version, the line of history
    running.py     starts, preemptions, stops
    resizing.py    steps from one size to another
    waiting.py     holds, releases, parents, priorities, cancellations
    failures.py    retries of failures, or the job's end
    progress.py    speeds of elastic jobs, progress of jobs of other kinds than training
    reports.py     SageMaker's reports
    adoption.py    attempts that a restored table does not know

Each checks `TRANSITIONS`, increments the version and adds one line of history.
"""

from __future__ import annotations

from trainmaster.domain.jobs.lifecycle.failures import Retries, back_off, fail, requeue_unlaunched, retry_or_fail
from trainmaster.domain.jobs.lifecycle.progress import record_speed, set_work, widen
from trainmaster.domain.jobs.lifecycle.reports import ends_attempt, observe, record_restarts, user_stopped_it
from trainmaster.domain.jobs.lifecycle.resizing import (
    abandon_resize,
    accept_smaller_size,
    bounds_for_nodes,
    complete_resize,
    elastic_of,
    give_up_attempt,
    mark_member_launched,
    mark_member_left,
    mark_member_stop_sent,
    member_of,
    record_hook_call,
    remove_member,
    resize,
    resizing_of,
    resume_resized,
    set_bounds,
)
from trainmaster.domain.jobs.lifecycle.running import (
    give_up_start,
    mark_create_called,
    mark_end_reported,
    mark_launched,
    mark_refused,
    mark_stop_called,
    mark_stop_sent,
    mark_stopped_outside,
    pends_too_long,
    preempt,
    record_checkpoint,
    request_stop,
    reserve,
    set_reclaim_time,
    start,
    take_next_number,
    taken_names,
)
from trainmaster.domain.jobs.lifecycle.transition import CLOCK_TOLERANCE, current, note
from trainmaster.domain.jobs.lifecycle.waiting import (
    apply_parent_end,
    cancel,
    cancel_or_stop,
    end_back_off,
    enqueue_if_due,
    held_reason,
    hold,
    hold_if_needed,
    hold_unlaunched,
    record_pool_creation,
    release,
    reprioritize,
    set_feasible,
    set_infeasible,
)

__all__ = [
    "CLOCK_TOLERANCE",
    "Retries",
    "abandon_resize",
    "accept_smaller_size",
    "apply_parent_end",
    "back_off",
    "bounds_for_nodes",
    "cancel",
    "cancel_or_stop",
    "complete_resize",
    "current",
    "elastic_of",
    "end_back_off",
    "ends_attempt",
    "enqueue_if_due",
    "fail",
    "give_up_attempt",
    "give_up_start",
    "held_reason",
    "hold",
    "hold_if_needed",
    "hold_unlaunched",
    "mark_create_called",
    "mark_end_reported",
    "mark_launched",
    "mark_member_launched",
    "mark_member_left",
    "mark_member_stop_sent",
    "mark_refused",
    "mark_stop_called",
    "mark_stop_sent",
    "mark_stopped_outside",
    "member_of",
    "note",
    "observe",
    "pends_too_long",
    "preempt",
    "record_checkpoint",
    "record_hook_call",
    "record_pool_creation",
    "record_restarts",
    "record_speed",
    "release",
    "remove_member",
    "reprioritize",
    "request_stop",
    "requeue_unlaunched",
    "reserve",
    "resize",
    "resizing_of",
    "resume_resized",
    "retry_or_fail",
    "set_bounds",
    "set_feasible",
    "set_infeasible",
    "set_reclaim_time",
    "set_work",
    "start",
    "take_next_number",
    "taken_names",
    "user_stopped_it",
    "widen",
]
