"""Resizes of jobs that are groups of training jobs: a member joins, or leaves the rendezvous first and is stopped then.

Also what members need besides: they come and go with the job's own training job. It must not stop a member of a job
that runs on before the member has left, or is out of time: the group would pay for it with a restart.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from trainmaster.domain.elastic.rendezvous import Control
from trainmaster.domain.elastic.sizes import Member
from trainmaster.domain.errors import CapacityExhausted, RequestRefused, UnreadableRendezvous
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.attempt import Attempt
from trainmaster.domain.jobs.job import Job, JobState
from trainmaster.ports.sagemaker import CreateResult
from trainmaster.service.attempt_request import PoolGoneError, request_of_member
from trainmaster.service.context import ManagerContext, commit
from trainmaster.service.launch import confirm_or_stop, poll, poll_training_job

log = logging.getLogger(__name__)

SLACK = timedelta(seconds=60)
"""Beside the time that a member has to leave: as long as it takes at most until a pass looks again."""


@dataclass(frozen=True, slots=True)
class MembersHook:
    """See `ports.ResizeHook`."""

    context: ManagerContext

    def advance(self, job: Job) -> Job:
        """Create, drain and stop members as the job's row has them; see `ports.ResizeHook.advance`."""
        attempt = lifecycle.current(job)
        if not attempt.launched:
            return job
        if job.state is JobState.STARTING:
            # Else the first world would wait a while for as many nodes as the job may ever have.
            self._direct(job)
        job = self._out_of_time(job)
        for step in (self._stop_or_drop, self._leave, self._stop_or_drop, self._launch):
            job = step(job)
        if job.attempt is not None and job.attempt.base_ended_at is not None and not job.attempt.members:
            # What has become of the job, its own training job tells.
            return poll(self.context, job)
        return self._makes_do(job)

    def _out_of_time(self, job: Job) -> Job:
        """Give up a growth whose time is over, after a last look: reports of members' work may have been lost."""
        now = self.context.clock.now()
        if not _grows(job) or now < lifecycle.resizing_of(job).until:
            return job
        for member in _members(job):
            if member.launched and member.started_at is None and _has(job, member):
                job = poll_training_job(self.context, job, member.training_job_name)
        if not _grows(job):
            return job
        return commit(self.context, job, lifecycle.give_up(job, now, "SageMaker has not had the instances in time"))

    def _stop_or_drop(self, job: Job) -> Job:
        """Stop members that have left, and forget those that SageMaker never had."""
        for member in _members(job):
            if _has(job, member) and not member.launched and (member.leaving or job.stop_asked):
                job = self._drop(job, member)
            elif _has(job, member) and member.launched and member.left_at is not None and not member.stop_sent:
                job = self._stop(job, member)
        return job

    def _drop(self, job: Job, member: Member) -> Job:
        """Nobody knows whether SageMaker has it, until it is asked."""
        name = member.training_job_name
        if self.context.launcher.describe(name) is not None:
            return commit(self.context, job, lifecycle.member_launched(job, name))
        now = self.context.clock.now()
        return commit(self.context, job, lifecycle.member_ended(job, name, now, "is not needed any more", lost=False))

    def _stop(self, job: Job, member: Member) -> Job:
        name = member.training_job_name
        if self.context.launcher.stop(name, end_warm_pool=False):
            return commit(self.context, job, lifecycle.member_stop_sent(job, name))
        return poll_training_job(self.context, job, name)

    def _leave(self, job: Job) -> Job:
        """Ask the group to let members go, and note which have gone, or are out of time."""
        attempt, now = lifecycle.current(job), self.context.clock.now()
        leaving = [member for member in attempt.members if member.launched and member.left_at is None]
        leaving = [member for member in leaving if member.drain_asked_at is not None]
        late = {member.training_job_name for member in leaving if _is_late(job, member, now)}
        asked = [member.training_job_name for member in leaving if member.training_job_name not in late]
        for name in (*sorted(late), *(self._gone_of(job, attempt, asked) if asked else ())):
            # Another manager may have seen its end meanwhile.
            if name in {member.training_job_name for member in _members(job)}:
                job = commit(self.context, job, lifecycle.member_left(job, name, now))
        return job

    def _gone_of(self, job: Job, attempt: Attempt, asked: list[str]) -> list[str]:
        """Those of which no node is left in the rendezvous.

        Asked first, looked at then: a node that joins in between finds that it is to leave. So does one of a training
        job that is stopped already: until that has ended its container may come, or come back.
        """
        if self.context.rendezvous is None:
            return asked
        try:
            self._direct(job)
            group = self.context.rendezvous.get(attempt.training_job_name)
        except UnreadableRendezvous as error:
            log.warning("cannot read a rendezvous", extra={"job": job.name, "cause": str(error)})
            return []
        return [name for name in asked if group is None or not group.holds(name)]

    def _direct(self, job: Job) -> None:
        """Tell the group how many nodes to expect, and who is to leave; the same again changes nothing."""
        if self.context.rendezvous is not None:
            attempt = lifecycle.current(job)
            self.context.rendezvous.set(attempt.training_job_name, _control(job, attempt))

    def _launch(self, job: Job) -> Job:
        """Create members that SageMaker is not known to have; the group expects them before they come."""
        if any(not (member.launched or member.leaving) for member in _members(job)):
            self._direct(job)
        for member in _members(job):
            # The job may have changed with the one before: its growth may have been given up.
            if job.stop_asked or job.attempt is None or job.attempt.base_ended_at is not None:
                return job
            if _has(job, member) and not member.launched and not member.leaving:
                job = self._create(job, lifecycle.current(job), member.training_job_name)
        return self._stop_or_drop(job)

    def _create(self, job: Job, attempt: Attempt, name: str) -> Job:
        context, now = self.context, self.context.clock.now()
        try:
            request = request_of_member(context, job, attempt)
            created = context.launcher.create(job, replace(attempt, training_job_name=name), request)
        except (CapacityExhausted, RequestRefused, PoolGoneError) as error:
            return commit(context, job, _without(job, name, now, str(error)))
        if created is CreateResult.NAME_TAKEN:
            reason = "cannot be created: its name belongs to a training job that the queue did not start"
            return commit(context, job, lifecycle.member_ended(job, name, now, reason, lost=False))
        known = confirm_or_stop(context, job, lifecycle.member_launched(job, name), name)
        return poll_training_job(context, known, name) if created is CreateResult.ALREADY_THERE else known

    def _makes_do(self, job: Job) -> Job:
        """Where a lost member has not been replaced within its wait, the job goes on without it."""
        attempt, elastic = lifecycle.current(job), lifecycle.elastic_of(job)
        since, running = attempt.faulty_since, job.state is JobState.RUNNING and not job.stop_asked
        if since is None or not running or attempt.size not in elastic.sizes:
            return job
        now = self.context.clock.now()
        if now < since + elastic.faulty_scale_down_timeout:
            return job
        return commit(self.context, job, lifecycle.accept_smaller_size(job, now))


def _grows(job: Job) -> bool:
    attempt = job.attempt
    return (
        job.state is JobState.RESIZING
        and attempt is not None
        and attempt.resizing is not None
        and attempt.resizing.grows
    )


def _members(job: Job) -> tuple[Member, ...]:
    return () if job.attempt is None or not job.units else job.attempt.members


def _has(job: Job, member: Member) -> bool:
    """Whether the job still has the member just as it was."""
    return member in _members(job)


def _without(job: Job, name: str, now: datetime, reason: str) -> Job:
    """The job where SageMaker will not have this member: a growth is given up, a start makes do with less."""
    if _grows(job):
        return lifecycle.give_up(job, now, reason)
    return lifecycle.member_ended(job, name, now, f"cannot be created: {reason}", lost=False)


def _is_late(job: Job, member: Member, now: datetime) -> bool:
    asked, grace = member.drain_asked_at, lifecycle.elastic_of(job).graceful_shutdown_timeout
    return asked is not None and now >= asked + grace + SLACK


def _expected(attempt: Attempt) -> int:
    """Nodes that the group is to have; what shrinks still holds what it lets go."""
    under_way = attempt.resizing
    return attempt.size if under_way is None or under_way.given_up else under_way.after


def _control(job: Job, attempt: Attempt) -> Control:
    elastic = lifecycle.elastic_of(job)
    return Control(
        # Grows with every change of the job, and a crashed pass says the same again.
        epoch=job.version,
        least=elastic.least,
        # So many are expected: a world of as many is complete at once.
        most=max(elastic.least, _expected(attempt)),
        sizes=elastic.sizes,
        # Members are of the attempt until SageMaker has said that their training jobs have ended.
        drain=tuple(member.training_job_name for member in attempt.members if member.leaving),
        grace=elastic.graceful_shutdown_timeout.total_seconds(),
    )
