"""Resizes of elastic jobs: every step from one size to another, for each of the three ways (`elastic.Hook`).

    restart   resize -> the attempt stops -> resumes: a new attempt of the new size -> resized, when it is at work
    members   resize -> members are launched and come to work, or are drained, stopped and end -> resized
    custom    resize -> told -> resized, or give_up

At every moment the attempt's units are all that SageMaker may hold for it, so that a cap holds in the middle of a
resize too. A growth that does not come in time is given up. They must not talk to anybody: `service/resizing` does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from trainmaster.domain.elastic.sizes import Cause, Elastic, Hook, Member, Resizing
from trainmaster.domain.errors import IllegalTransition
from trainmaster.domain.jobs.attempt import Attempt, Outcome
from trainmaster.domain.jobs.job import Job, JobState
from trainmaster.domain.jobs.lifecycle.transition import closed, current, followed, move, note, touch
from trainmaster.domain.jobs.names import attempt_name, member_name


def resize(  # noqa: PLR0913 - all that a resize decides
    job: Job, size: int, cause: Cause, now: datetime, *, until: datetime, freed_for: str | None = None
) -> Job:
    """A running elastic job is to have another size; what it may hold meanwhile it holds from now on.

    Args:
        job: a running job that does not stop.
        size: instances.
        cause: why.
        now: UTC.
        until: a growth that has not come by then is given up; a member that has not left by then is stopped.
        freed_for: the job that what it frees is for.

    Whoever decides that it goes on with less than it had before a member was lost, settles that loss. A growth that is
    under way may be turned round into a shrink, unless it is somebody else's to carry out.

    Raises `IllegalTransition` where the size is none that the job may have, or the one that it has; where it stops.
    """
    attempt, elastic = current(job), elastic_of(job)
    if size not in elastic.sizes or size == attempt.size or job.stopping:
        raise IllegalTransition(f"job {job.name} cannot go from {attempt.size} to {size} instances", field="size")
    under_way = Resizing(before=attempt.size, after=size, cause=cause, asked_at=now, until=until, freed_for=freed_for)
    known = attempt if size >= attempt.wanted else replace(attempt, faulty_since=None, wanted=0)
    begun = _BEGIN[elastic.hook](job, replace(known, resizing=under_way), now)
    if _turns_round(job, size):
        return note(job, now, _words(under_way), attempt=begun)
    return move(job, JobState.RESIZING, now, _words(under_way), attempt=begun)


def resumes(job: Job, now: datetime) -> Job:
    """The attempt that was stopped for a resize has ended: the next one has the new size. SageMaker is asked later."""
    attempt, under_way = current(job), resizing_of(job)
    number = attempt.number + 1
    ended = closed(job, Outcome.RESIZED, now, _words(under_way))
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
    return note(job, now, f"goes on with {under_way.after} instances", attempt=fresh, **followed(job, ended))


def resized(job: Job, now: datetime, size: int | None = None) -> Job:
    """The resize is done: the job runs with this size, or with what it holds.

    A growth of which a part never came has met no capacity, unless it is for a loss that it lacks something.
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


def give_up(job: Job, now: datetime, reason: str) -> Job:
    """The resize does not come to be: the job goes back to the size that it had.

    Of a group of training jobs, members that have come stay, as far as that is a legal size. An attempt that SageMaker
    is not known to have must have been refused, since it is asked for again under the same name.
    """
    attempt, under_way = current(job), resizing_of(job)
    back = replace(under_way, before=under_way.after, after=under_way.before, given_up=True)
    failed = replace(job, capacity_failures=job.capacity_failures + under_way.grows)
    text = f"gives up {under_way.after} instances: {reason}"
    hook = elastic_of(job).hook
    if hook is Hook.MEMBERS:
        came = replace(attempt, members=tuple(m if m.started_at else _left(m, now) for m in attempt.members))
        return settled(_drops_surplus(note(failed, now, text, attempt=came), now), now)
    if hook is Hook.CUSTOM:
        unchanged = replace(attempt.holding(under_way.before, now), resizing=None)
        return move(failed, JobState.RUNNING, now, text, attempt=unchanged)
    if not attempt.launched:
        return note(failed, now, text, attempt=replace(attempt.holding(back.after, now), resizing=back))
    return note(failed, now, text, attempt=replace(attempt, resizing=back, stop_asked_at=attempt.stop_asked_at or now))


def told(job: Job) -> Job:
    """Whoever does a custom resize is known to have been asked."""
    return touch(job, attempt=replace(current(job), resizing=replace(resizing_of(job), told=True)))


def member_launched(job: Job, name: str) -> Job:
    """SageMaker is known to have this member."""
    return _with_member(job, name, lambda member: replace(member, launched=True))


def member_at_work(job: Job, name: str, at: datetime, now: datetime) -> Job:
    """A member's instance is at work."""
    known = _with_member(job, name, lambda member: replace(member, launched=True, started_at=member.started_at or at))
    return settled(known, now)


def member_left(job: Job, name: str, now: datetime) -> Job:
    """A member has left the rendezvous, or is out of time: it can be stopped."""
    return _with_member(job, name, lambda member: _left(member, now))


def member_stop_sent(job: Job, name: str) -> Job:
    """SageMaker is known to have been asked to stop this member."""
    return _with_member(job, name, lambda member: replace(member, stop_sent=True))


def member_ended(job: Job, name: str, now: datetime, reason: str, *, lost: bool) -> Job:
    """A member holds nothing any more; one that nobody had asked to leave was lost, and may be replaced.

    One that a growth was to bring, and that never came, is not lost: the job goes on without it.
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
    return settled(note(job, now, f"member {name} {reason}", attempt=after), now)


def base_ended(job: Job, now: datetime) -> Job:
    """The job's own training job has ended while members hold instances: they are stopped, and the job ends with them.

    What became of the job is asked again then; until that its members count, and its own instances where SageMaker
    keeps them warm.
    """
    attempt = stops(current(job), now)
    held = attempt.size if job.keep_alive else len(attempt.members)
    ended = replace(attempt.holding(held, now), base_ended_at=now, wanted=max(attempt.size, attempt.wanted))
    text = "its own training job has ended; its members are stopped"
    return note(job, now, text, attempt=replace(ended, faulty_since=None))


def stops(attempt: Attempt, now: datetime) -> Attempt:
    """An attempt that stops for good: a resize is forgotten, and all members are stopped with it."""
    if attempt.own_size != attempt.size:
        attempt = attempt.holding(attempt.own_size, now)
    return replace(attempt, resizing=None, members=tuple(_left(member, now) for member in attempt.members))


def settled(job: Job, now: datetime) -> Job:
    """The job after its members have moved: where all are as they should be, it is resized, or whole again."""
    attempt = current(job)
    if job.stopping or any(member.leaving or member.started_at is None for member in attempt.members):
        return job
    if attempt.faulty_since is not None and attempt.size >= attempt.wanted:
        job = touch(job, attempt=replace(attempt, faulty_since=None, wanted=0))
    if job.state is not JobState.RESIZING:
        return job
    # What a growth has brought may be no legal size; what a loss has left is for whoever decides to mend.
    if attempt.faulty_since is None and attempt.size not in elastic_of(job).sizes:
        return _drops_surplus(replace(job, capacity_failures=job.capacity_failures + resizing_of(job).grows), now)
    return resized(job, now)


def accept_smaller_size(job: Job, now: datetime) -> Job:
    """No replacement came for a lost member within the wait: the job goes on with what is left."""
    attempt = current(job)
    text = f"goes on with {attempt.size} of {attempt.wanted} instances"
    return note(job, now, text, attempt=replace(attempt, faulty_since=None, wanted=0))


def new_members(job: Job, attempt: Attempt, count: int, now: datetime) -> Attempt:
    """The attempt with so many more members, which SageMaker does not have yet; its units are not touched."""
    numbers = range(attempt.joined + 1, attempt.joined + count + 1)
    fresh = (
        Member(training_job_name=member_name(job.name, attempt.number, number), created_at=now) for number in numbers
    )
    return replace(attempt, members=(*attempt.members, *fresh), joined=attempt.joined + count)


def member_of(attempt: Attempt, name: str) -> Member:
    """The member of that SageMaker name. Raises `IllegalTransition` where there is none."""
    for member in attempt.members:
        if member.training_job_name == name:
            return member
    raise IllegalTransition(f"{attempt.training_job_name} has no member {name}", field="members")


def elastic_of(job: Job) -> Elastic:
    """What the job may be resized to. Raises `IllegalTransition` where it is not elastic."""
    if job.elastic is None:
        raise IllegalTransition(f"job {job.name} is not elastic", field="size")
    return job.elastic


def resizing_of(job: Job) -> Resizing:
    """The resize that is under way. Raises `IllegalTransition` where none is."""
    under_way = current(job).resizing
    if under_way is None:
        raise IllegalTransition(f"job {job.name} is not being resized", field="size")
    return under_way


def _turns_round(job: Job, size: int) -> bool:
    attempt, hook = current(job), elastic_of(job).hook
    grows = attempt.resizing is not None and attempt.resizing.grows and attempt.stop_asked_at is None
    return job.state is JobState.RESIZING and grows and size < attempt.size and hook is not Hook.CUSTOM


def _begin_restart(_job: Job, attempt: Attempt, now: datetime) -> Attempt:
    most = max(attempt.size, attempt.resizing.after if attempt.resizing else 0)
    return replace(attempt.holding(most, now), stop_asked_at=now)


def _begin_members(job: Job, attempt: Attempt, now: datetime) -> Attempt:
    size = attempt.resizing.after if attempt.resizing else attempt.size
    if size > attempt.size:
        return new_members(job, attempt, size - attempt.size, now).holding(size, now)
    return _drained(attempt, attempt.size - size, now)


def _begin_custom(_job: Job, attempt: Attempt, now: datetime) -> Attempt:
    size = attempt.resizing.after if attempt.resizing else attempt.size
    return attempt.holding(size, now) if size > attempt.size else attempt


_BEGIN: dict[Hook, Callable[[Job, Attempt, datetime], Attempt]] = {
    Hook.RESTART: _begin_restart,
    Hook.MEMBERS: _begin_members,
    Hook.CUSTOM: _begin_custom,
}


def _drained(attempt: Attempt, count: int, now: datetime) -> Attempt:
    """The attempt with so many of its members asked to leave: those that do not work yet first, then the newest."""
    staying = [member for member in attempt.members if not member.leaving]
    staying.sort(key=lambda member: member.started_at is None)
    going = staying[len(staying) - count :]
    members = (replace(each, drain_asked_at=now) if each in going else each for each in attempt.members)
    return replace(attempt, members=tuple(members))


def _drops_surplus(job: Job, now: datetime) -> Job:
    """A growth that came only in part: the job keeps what makes a legal size, and the members beyond that leave."""
    attempt, under_way, elastic = current(job), resizing_of(job), elastic_of(job)
    working = attempt.size - sum(member.leaving for member in attempt.members)
    size = elastic.at_most(working) or elastic.least
    until = now + elastic.graceful_shutdown_timeout
    back = replace(under_way, before=under_way.after, after=size, until=until, given_up=True)
    return touch(job, attempt=replace(_drained(attempt, working - size, now), resizing=back))


def _left(member: Member, now: datetime) -> Member:
    return replace(member, left_at=member.left_at or now)


def _with_member(job: Job, name: str, change: Callable[[Member], Member]) -> Job:
    attempt = current(job)
    member = member_of(attempt, name)
    members = tuple(change(other) if other is member else other for other in attempt.members)
    return touch(job, attempt=replace(attempt, members=members))


def _words(under_way: Resizing) -> str:
    sizes = f"{under_way.before} -> {under_way.after} instances"
    if under_way.given_up:
        return f"goes back, {sizes}"
    whom = f" for {under_way.freed_for}" if under_way.freed_for else ""
    return f"resizes, {sizes}: {_CAUSES[under_way.cause]}{whom}"


_CAUSES = {
    Cause.GROW: "capacity is idle",
    Cause.SHRINK: "gives way",
    Cause.REPLACE: "a lost member is replaced",
    Cause.REPAIR: "what is left is no size that it may have",
}
