"""Resizes of elastic jobs: the steps from one size to another for each hook (`elastic.Hook`).

    restart   resize -> the attempt stops -> resume_resized: a new attempt of the new size -> complete_resize
    members   resize -> members are launched and start, or are drained, stopped and end -> complete_resize
    custom    resize -> record_hook_call -> complete_resize, or abandon_resize

At any time the attempt's units include all that SageMaker may hold for it, so that caps hold during a resize too. A
growth that does not complete in time is given up. `service/resizing` carries the steps out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from trainmaster.domain.elastic.sizes import Cause, Elastic, Hook, Member, Resizing
from trainmaster.domain.errors import IllegalTransition
from trainmaster.domain.jobs.attempt import Attempt, Outcome
from trainmaster.domain.jobs.job import WAITING, Job, JobState
from trainmaster.domain.jobs.lifecycle.transition import archive_attempt, close_attempt, current, move, note, touch
from trainmaster.domain.jobs.names import attempt_name, member_name
from trainmaster.domain.times import SAME_TIME


def resize(  # noqa: PLR0913 - the parts of a resize
    job: Job, size: int, cause: Cause, now: datetime, *, until: datetime, freed_for: str | None = None
) -> Job:
    """Begin the resize of a running elastic job; from now on it holds all units that the resize may need.

    A resize to less than the size before a loss settles that loss. A growth that is under way may become a shrink,
    unless a custom hook carries it out.

    Args:
        job: a running job that does not stop.
        size: instances.
        cause: its cause.
        now: UTC.
        until: when a growth is given up, or a member that has not left is stopped.
        freed_for: the job for which units are freed.

    Raises `IllegalTransition` if the size is not legal, or is the current one, or if the job stops.
    """
    attempt, elastic = current(job), elastic_of(job)
    if size not in job.sizes or size == attempt.size or job.stopping:
        raise IllegalTransition(f"job {job.name} cannot go from {attempt.size} to {size} instances", field="size")
    under_way = Resizing(before=attempt.size, after=size, cause=cause, asked_at=now, until=until, freed_for=freed_for)
    begun = _BEGIN[elastic.hook](job, replace(_settled_at(attempt, elastic, size), resizing=under_way), now)
    if _reverses_growth(job, size):
        return note(job, now, _resize_text(under_way), attempt=begun)
    return move(job, JobState.RESIZING, now, _resize_text(under_way), attempt=begun)


def set_bounds(job: Job, elastic: Elastic, now: datetime, who: str) -> Job:
    """Set the bounds of an elastic job's size, which then demands its new minimum.

    A running job keeps its size until a pass resizes it. A waiting one keeps no reservation of units for another
    minimum, and with a smaller one it need not wait longer after a start without capacity.

    Raises `IllegalTransition` if the base of its attempt has more instances than the new maximum.
    """
    before, demand = elastic_of(job), job.demand.sized(elastic.min_instances)
    changed = replace(job, elastic=elastic, demand=demand)
    if not changed.sizes:
        least = current(job).base_size
        raise IllegalTransition(
            f"Job {job.name} runs as a training job of {least} instances, which other training jobs join: it cannot "
            f"have fewer than {least}.",
            field="maxInstances",
            hint=f"Specify at least {least}, or change it while the job waits.",
        )
    if job.state in WAITING and demand != job.demand:
        retry_at = job.retry_at if elastic.min_instances > before.min_instances else None
        changed = replace(changed, reservation=None, retry_at=retry_at)
    bounds = [f"{each.min_instances} to {each.max_instances}" for each in (before, elastic)]
    return note(changed, now, f"size bounds {bounds[0]} -> {bounds[1]} instances by {who}")


def bounds_for_nodes(job: Job) -> Elastic:
    """Return the bounds that the nodes of its attempt receive: those of the job, and the sizes decided before them.

    Otherwise the nodes of a job whose bounds were changed could form no world of its present size.
    """
    attempt, elastic = current(job), elastic_of(job)
    if attempt.faulty_since is not None:
        return elastic.including(attempt.wanted)
    before = attempt.expected_size if attempt.resizing is None else attempt.resizing.before
    return elastic.including(before).including(attempt.expected_size)


def resume_resized(job: Job, now: datetime) -> Job:
    """Return the job with a new attempt of the new size, after the one stopped for the resize has ended."""
    attempt, under_way = current(job), resizing_of(job)
    number = attempt.number + 1
    ended = close_attempt(job, Outcome.RESIZED, now, _resize_text(under_way))
    fresh = Attempt(
        number=number,
        training_job_name=attempt_name(job.name, number),
        units=dict.fromkeys(attempt.units, under_way.after),
        created_at=now,
        instance_type=attempt.instance_type,
        reclaimed_at=attempt.reclaimed_at,
        resizing=under_way,
        resizes=attempt.resizes,
    )
    return note(job, now, f"continues with {under_way.after} instances", attempt=fresh, **archive_attempt(job, ended))


def complete_resize(job: Job, now: datetime, size: int | None = None) -> Job:
    """Complete the resize: the job runs with this size, or with the units that it holds.

    A growth that came only in part counts as a capacity failure, unless the missing part is due to a loss.
    """
    attempt, under_way = current(job), resizing_of(job)
    at_work = attempt.holding(attempt.size if size is None else size, now)
    came = not under_way.given_up and at_work.size != under_way.before
    new = replace(at_work, resizing=None, resizes=attempt.resizes + came)
    size, failures = new.size, job.capacity_failures
    if under_way.grows:
        failures = 0 if size >= under_way.after else failures + (new.faulty_since is None)
    return move(
        job, JobState.RUNNING, now, f"runs with {size} instances", size=size, attempt=new, capacity_failures=failures
    )


def abandon_resize(job: Job, now: datetime, reason: str) -> Job:
    """Give up the resize: the job returns to its size before.

    Members that have started stay if that is a legal size. An attempt that is not known to be created must have been
    refused, since it is created again under the same name.
    """
    attempt, under_way = current(job), resizing_of(job)
    back = replace(under_way, before=under_way.after, after=under_way.before, given_up=True)
    failed = replace(job, capacity_failures=job.capacity_failures + under_way.grows)
    text = f"gives up {under_way.after} instances: {reason}"
    hook = elastic_of(job).hook
    if hook is Hook.MEMBERS:
        came = replace(attempt, members=tuple(m if m.started_at else _mark_left(m, now) for m in attempt.members))
        return settle_members(_drop_surplus(note(failed, now, text, attempt=came), now), now)
    if hook is Hook.CUSTOM:
        unchanged = replace(attempt.holding(under_way.before, now), resizing=None)
        return move(failed, JobState.RUNNING, now, text, attempt=unchanged)
    if not attempt.launched:
        return note(failed, now, text, attempt=replace(attempt.holding(back.after, now), resizing=back))
    return note(failed, now, text, attempt=replace(attempt, resizing=back, stop_asked_at=attempt.stop_asked_at or now))


def record_hook_call(job: Job) -> Job:
    """Note that the custom hook has received the request."""
    return touch(job, attempt=replace(current(job), resizing=replace(resizing_of(job), hook_called=True)))


def mark_member_launched(job: Job, name: str, now: datetime | None = None) -> Job:
    """Note that this member is created: now, or just after that was decided."""

    def launched(member: Member) -> Member:
        late = now is not None and now > member.created_at + SAME_TIME
        return replace(member, launched=True, called_at=now if late else member.called_at)

    return _with_member(job, name, launched)


def mark_member_started(job: Job, name: str, at: datetime, now: datetime) -> Job:
    """Note that a member's instance works."""
    known = _with_member(job, name, lambda member: replace(member, launched=True, started_at=member.started_at or at))
    return settle_members(known, now)


def mark_member_left(job: Job, name: str, now: datetime) -> Job:
    """Note that a member has left the rendezvous, or is out of time, so that it can be stopped."""
    return _with_member(job, name, lambda member: _mark_left(member, now))


def mark_member_stop_sent(job: Job, name: str) -> Job:
    """Note that StopTrainingJob was called for this member."""
    return _with_member(job, name, lambda member: replace(member, stop_sent=True))


def remove_member(job: Job, name: str, now: datetime, reason: str, *, lost: bool) -> Job:
    """Remove a member that has ended; one that was not asked to leave is lost and may be replaced.

    A member of a growth that never started is not lost: the job continues without it.
    """
    attempt = current(job)
    member, under_way = member_of(attempt, name), attempt.resizing
    rest = tuple(other for other in attempt.members if other is not member)
    after = replace(attempt.holding(attempt.size - 1, now), members=rest)
    never_came = member.started_at is None
    growing = under_way is not None and under_way.grows
    if (lost or never_came) and not member.leaving and not job.stopping and not (never_came and growing):
        wanted = attempt.wanted or (attempt.size if under_way is None else under_way.after)
        after = replace(after, faulty_since=attempt.faulty_since or now, wanted=wanted)
    return settle_members(note(job, now, f"member {name} {reason}", attempt=after), now)


def successor_of(attempt: Attempt) -> Member | None:
    """Return the member that would take the place of a lost base: the oldest that works and stays; None without one."""
    return next((member for member in attempt.members if member.started_at and not member.leaving), None)


def replace_base(job: Job, now: datetime, reason: str, *, warm_until: datetime | None = None) -> Job:
    """Continue without the base, which SageMaker has lost: a member becomes the base, and the lost units are missing.

    The attempt keeps its number and the name of its rendezvous. Raises `IllegalTransition` without a member that works.

    Args:
        job: a job that runs or is resized, and does not stop.
        now: UTC.
        reason: why SageMaker ended the base.
        warm_until: when the warm pool that the base leaves ends; None if it leaves none.
    """
    attempt = current(job)
    under_way, member = attempt.resizing, successor_of(attempt)
    if member is None or job.stop_asked:
        raise IllegalTransition(f"{attempt.base_name} has no member that can take its place", field="members")
    after = replace(
        attempt.holding(len(attempt.members), now),
        members=tuple(other for other in attempt.members if other is not member),
        successor=member.training_job_name,
        called_at=member.called_at or member.created_at,
        base_lost=reason,
        warm_until=warm_until,
        faulty_since=attempt.faulty_since or now,
        wanted=attempt.wanted or (attempt.size if under_way is None else under_way.after),
    )
    text = f"its base {attempt.base_name} has ended: {reason}; {member.training_job_name} takes its place"
    return settle_members(note(job, now, text, attempt=after), now)


def give_up_attempt(job: Job, now: datetime) -> Job:
    """Stop what is left of an attempt that fell below its minimum size and was not replaced; then the job waits again.

    The failure of its lost base counts then, as if it had ended the attempt at once.
    """
    attempt, elastic = current(job), elastic_of(job)
    text = f"is stopped to start again: {attempt.size} of at least {elastic.min_instances} instances are left"
    stopped = replace(stop_attempt(attempt, now), stop_asked_at=now, given_up=True, faulty_since=None, wanted=0)
    return note(job, now, text, attempt=stopped)


def stop_members(job: Job, now: datetime) -> Job:
    """Stop the members after the job's base has ended; the job ends with the last of them.

    Its outcome is read again then. Until then its members' units count, and its own if SageMaker keeps them warm.
    """
    attempt = stop_attempt(current(job), now)
    held = attempt.size if job.keep_alive and not attempt.successor else len(attempt.members)
    ended = replace(attempt.holding(held, now), base_ended_at=now, wanted=max(attempt.size, attempt.wanted))
    text = "its base has ended; its members are stopped" if attempt.successor else _BASE_ENDED
    return note(job, now, text, attempt=replace(ended, faulty_since=None))


def stop_attempt(attempt: Attempt, now: datetime) -> Attempt:
    """Return the attempt as it stops for good: without a resize, and with all members stopping."""
    if attempt.own_size != attempt.size:
        attempt = attempt.holding(attempt.own_size, now)
    return replace(attempt, resizing=None, members=tuple(_mark_left(member, now) for member in attempt.members))


def settle_members(job: Job, now: datetime) -> Job:
    """Return the job after changes of its members; if none is pending, its resize or repair is complete."""
    attempt = current(job)
    if job.stopping or any(member.leaving or member.started_at is None for member in attempt.members):
        return job
    if attempt.faulty_since is not None and attempt.size >= attempt.wanted:
        job = touch(job, attempt=replace(attempt, faulty_since=None, wanted=0))
    if job.state is not JobState.RESIZING:
        return job
    # A partial growth may not be a legal size; a loss, and a size outside changed bounds, are the planner's to repair.
    elastic, complete = elastic_of(job), attempt.size == resizing_of(job).after or attempt.size in elastic_of(job).sizes
    if attempt.faulty_since is None and not complete and attempt.size > elastic.min_instances:
        return _drop_surplus(replace(job, capacity_failures=job.capacity_failures + resizing_of(job).grows), now)
    return complete_resize(job, now)


def accept_smaller_size(job: Job, now: datetime) -> Job:
    """Continue at the smaller size after a lost member was not replaced in time."""
    attempt = current(job)
    text = f"continues with {attempt.size} of {attempt.wanted} instances"
    return note(job, now, text, attempt=replace(attempt, faulty_since=None, wanted=0))


def add_members(job: Job, attempt: Attempt, count: int, now: datetime) -> Attempt:
    """Return the attempt with this many more members, not created yet; its units stay the same."""
    numbers = range(attempt.joined + 1, attempt.joined + count + 1)
    fresh = (
        Member(training_job_name=member_name(job.name, attempt.number, number), created_at=now) for number in numbers
    )
    return replace(attempt, members=(*attempt.members, *fresh), joined=attempt.joined + count)


def member_of(attempt: Attempt, name: str) -> Member:
    """Return the member of that name. Raises `IllegalTransition` if there is none."""
    for member in attempt.members:
        if member.training_job_name == name:
            return member
    raise IllegalTransition(f"{attempt.training_job_name} has no member {name}", field="members")


def elastic_of(job: Job) -> Elastic:
    """Return the job's legal sizes. Raises `IllegalTransition` if it is not elastic."""
    if job.elastic is None:
        raise IllegalTransition(f"job {job.name} is not elastic", field="size")
    return job.elastic


def resizing_of(job: Job) -> Resizing:
    """Return the resize that is under way. Raises `IllegalTransition` if there is none."""
    under_way = current(job).resizing
    if under_way is None:
        raise IllegalTransition(f"job {job.name} is not being resized", field="size")
    return under_way


def _settled_at(attempt: Attempt, elastic: Elastic, size: int) -> Attempt:
    """Return the attempt as it begins a resize: one to less than its size before a loss settles that loss.

    Below the minimum size it stays faulty until it has as many: if they do not come, it is given up.
    """
    if size >= attempt.wanted:
        return attempt
    if attempt.size < elastic.min_instances and attempt.faulty_since is not None:
        return replace(attempt, wanted=size)
    return replace(attempt, faulty_since=None, wanted=0)


def _reverses_growth(job: Job, size: int) -> bool:
    attempt, hook = current(job), elastic_of(job).hook
    grows = attempt.resizing is not None and attempt.resizing.grows and attempt.stop_asked_at is None
    return job.state is JobState.RESIZING and grows and size < attempt.size and hook is not Hook.CUSTOM


def _begin_restart(_job: Job, attempt: Attempt, now: datetime) -> Attempt:
    size = max(attempt.size, attempt.resizing.after if attempt.resizing else 0)
    return replace(attempt.holding(size, now), stop_asked_at=now)


def _begin_members(job: Job, attempt: Attempt, now: datetime) -> Attempt:
    size = attempt.resizing.after if attempt.resizing else attempt.size
    if size > attempt.size:
        return add_members(job, attempt, size - attempt.size, now).holding(size, now)
    return _drain(attempt, attempt.size - size, now)


def _begin_custom(_job: Job, attempt: Attempt, now: datetime) -> Attempt:
    size = attempt.resizing.after if attempt.resizing else attempt.size
    return attempt.holding(size, now) if size > attempt.size else attempt


_BEGIN: dict[Hook, Callable[[Job, Attempt, datetime], Attempt]] = {
    Hook.RESTART: _begin_restart,
    Hook.MEMBERS: _begin_members,
    Hook.CUSTOM: _begin_custom,
}


def _drain(attempt: Attempt, count: int, now: datetime) -> Attempt:
    """Return the attempt with this many members draining: first those that do not work yet, then the newest."""
    staying = [member for member in attempt.members if not member.leaving]
    staying.sort(key=lambda member: member.started_at is None)
    going = staying[len(staying) - count :]
    members = (replace(member, drain_asked_at=now) if member in going else member for member in attempt.members)
    return replace(attempt, members=tuple(members))


def _drop_surplus(job: Job, now: datetime) -> Job:
    """Complete a partial growth: keep the largest legal size, and drain the members beyond it."""
    attempt, under_way, elastic = current(job), resizing_of(job), elastic_of(job)
    working = attempt.size - sum(member.leaving for member in attempt.members)
    size = max((legal for legal in job.sizes if legal <= working), default=elastic.min_instances)
    until = now + elastic.graceful_shutdown_timeout
    back = replace(under_way, before=under_way.after, after=size, until=until, given_up=True)
    return touch(job, attempt=replace(_drain(attempt, working - size, now), resizing=back))


def _mark_left(member: Member, now: datetime) -> Member:
    return replace(member, left_at=member.left_at or now)


def _with_member(job: Job, name: str, change: Callable[[Member], Member]) -> Job:
    attempt = current(job)
    member = member_of(attempt, name)
    members = tuple(change(other) if other is member else other for other in attempt.members)
    return touch(job, attempt=replace(attempt, members=members))


def _resize_text(under_way: Resizing) -> str:
    sizes = f"{under_way.before} -> {under_way.after} instances"
    if under_way.given_up:
        return f"goes back, {sizes}"
    beneficiary = f" for {under_way.freed_for}" if under_way.freed_for else ""
    return f"resizes, {sizes}: {_CAUSES[under_way.cause]}{beneficiary}"


_BASE_ENDED = "its own training job has ended; its members are stopped"
_CAUSES = {
    Cause.GROW: "capacity is idle",
    Cause.SHRINK: "frees capacity",
    Cause.REPLACE: "replaces a lost member",
    Cause.REPAIR: "the remaining size is not legal",
    Cause.BOUNDS: "its size bounds were changed",
    Cause.SLOWER: "it runs faster with fewer",
}
