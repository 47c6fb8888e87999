"""Describe what a resize that is under way waits for, from the job alone."""

from __future__ import annotations

from trainmaster.domain.elastic.sizes import Elastic, Hook, Member, Resizing
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.attempt import Attempt
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.times import clock


def describe_wait(job: Job) -> str:
    """Return the next step of the resize as a phrase. Raises `IllegalTransition` if none is under way."""
    attempt, elastic, under_way = lifecycle.current(job), lifecycle.elastic_of(job), lifecycle.resizing_of(job)
    beneficiary = f", for {under_way.freed_for}" if under_way.freed_for else ""
    limit = _limit(job, attempt, elastic.hook, under_way)
    return (
        _next(attempt, elastic, under_way) + beneficiary + (f"; {limit} at {clock(under_way.until)}" if limit else "")
    )


def _limit(job: Job, attempt: Attempt, hook: Hook, under_way: Resizing) -> str:
    """Return what happens when its time is over; empty if nothing does."""
    if under_way.grows:
        return "the growth is given up"
    if hook is Hook.MEMBERS:
        return "members that have not left by then are stopped" if any(map(_drains, attempt.members)) else ""
    if hook is Hook.CUSTOM:
        gives_all = under_way.freed_for and job.preemptible
        return "without an answer the job is stopped" if gives_all else "without an answer the job keeps its size"
    return "" if attempt.stop_asked_at is None else "SageMaker terminates it"


def _next(attempt: Attempt, elastic: Elastic, under_way: Resizing) -> str:
    if elastic.hook is Hook.MEMBERS:
        return _members(attempt, under_way)
    if elastic.hook is Hook.CUSTOM:
        target = "the consumer of its event" if elastic.target == "event" else elastic.target
        return (
            f"waits for the answer of {target}" if under_way.hook_called else f"is about to send a request to {target}"
        )
    if attempt.stop_asked_at is not None:
        return f"saves its work and stops, to continue with {under_way.after} instances"
    step = "SageMaker to provide" if attempt.launched else "a pass to request"
    return f"waits for {step} {under_way.after} instances"


def _members(attempt: Attempt, under_way: Resizing) -> str:
    coming = sum(member.started_at is None and not member.leaving for member in attempt.members)
    draining = sum(map(_drains, attempt.members))
    stopping = sum(member.left_at is not None for member in attempt.members)
    parts = [
        f"{count} of its members to {what}"
        for count, what in ((coming, "start"), (draining, "save their work and leave"), (stopping, "stop"))
        if count
    ]
    return f"waits for {', '.join(parts)}" if parts else f"is about to run with {under_way.after} instances"


def _drains(member: Member) -> bool:
    return member.drain_asked_at is not None and member.left_at is None
