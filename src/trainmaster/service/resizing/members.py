"""Resize jobs that consist of several training jobs: add members, or drain them from the rendezvous and stop them.

Members also start with the job's own training job and end with its base; if SageMaker loses the base, a member takes
its place. A member of a job that runs on is stopped only after it has left the rendezvous or its time is over, since a
sudden stop would cost all nodes a restart.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from trainmaster.domain.elastic.rendezvous import Control
from trainmaster.domain.elastic.sizes import Member
from trainmaster.domain.errors import CapacityExhausted, RequestRefused, UnreadableRendezvous
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.attempt import Attempt
from trainmaster.domain.jobs.job import Job, JobState
from trainmaster.domain.times import VISIBLE_AFTER
from trainmaster.ports.sagemaker import CreateResult, StopResult, Unconfirmed
from trainmaster.service.admission.launch_check import LaunchNotAllowedError, check_repeated_launch
from trainmaster.service.attempt_request import PoolGoneError, request_of_member, run_of
from trainmaster.service.capacity.ownership import OURS, UNSETTLED, find_creator
from trainmaster.service.capacity.quotas import note_quota
from trainmaster.service.context import ManagerContext, commit
from trainmaster.service.launch import confirm_or_stop
from trainmaster.service.observe import poll, poll_training_job

log = logging.getLogger(__name__)

SLACK = timedelta(seconds=60)
"""Added to the time that a member has to leave: the maximum time between two passes."""
_NAME_TAKEN = "cannot be created: its name belongs to a training job that the queue did not start"


@dataclass(frozen=True, slots=True)
class MembersHook:
    """Implements `ports.ResizeHook`."""

    context: ManagerContext

    def advance(self, job: Job, *, retry: bool) -> Job:
        """Create, drain and stop members as the stored job requires; see `ports.ResizeHook.advance`."""
        attempt = lifecycle.current(job)
        if not attempt.launched:
            return job
        if job.state is JobState.STARTING:
            # Otherwise the first round would wait for the maximum number of nodes.
            self._set_control(job)
        job = self._give_up_overdue_growth(job)
        for step in (self._stop_or_drop, self._drain, self._stop_or_drop, partial(self._launch, retry=retry)):
            job = step(job)
        if job.attempt is not None and job.attempt.base_ended_at is not None and not job.attempt.members:
            # The job ends as its base has ended.
            return poll(self.context, job)
        return self._settle_loss(job)

    def _give_up_overdue_growth(self, job: Job) -> Job:
        """Give up a growth whose time is over, after a last poll: events of its members may have been lost."""
        now = self.context.clock.now()
        if not _grows(job) or now < lifecycle.resizing_of(job).until:
            return job
        for member in _members(job):
            if member.launched and member.started_at is None and _has(job, member):
                job = poll_training_job(self.context, job, member.training_job_name)
        if not _grows(job):
            return job
        return commit(
            self.context, job, lifecycle.abandon_resize(job, now, "SageMaker did not provide the instances in time")
        )

    def _stop_or_drop(self, job: Job) -> Job:
        """Stop members that have left, and drop those that were never created."""
        for member in _members(job):
            if _has(job, member) and not member.launched and (member.leaving or job.stop_asked):
                job = self._drop(job, member)
            elif _has(job, member) and member.launched and member.left_at is not None and not member.stop_sent:
                job = self._stop(job, member)
        return job

    def _drop(self, job: Job, member: Member) -> Job:
        """Drop a member that is not known to be created; confirm it if SageMaker has it after all.

        Another's training job of the same name is neither confirmed nor stopped.
        """
        name, now = member.training_job_name, self.context.clock.now()
        creator = find_creator(self.context, job, name)
        if creator in OURS:
            return commit(self.context, job, lifecycle.mark_member_launched(job, name, now))
        if creator in UNSETTLED and self._may_appear(job, member, now):
            return job
        return commit(self.context, job, lifecycle.remove_member(job, name, now, "is no longer needed", lost=False))

    @staticmethod
    def _may_appear(job: Job, member: Member, now: datetime) -> bool:
        """Return whether a pass may have created the member before it was to leave, or the job to stop."""
        dropped = max(
            (at for at in (member.drain_asked_at, member.left_at, lifecycle.current(job).stop_asked_at) if at),
            default=member.created_at,
        )
        return member.may_appear(now) or now < dropped + VISIBLE_AFTER

    def _stop(self, job: Job, member: Member) -> Job:
        name = member.training_job_name
        if self.context.launcher.stop(name, end_warm_pool=False) in (StopResult.ACCEPTED, StopResult.ALREADY_STOPPING):
            return commit(self.context, job, lifecycle.mark_member_stop_sent(job, name))
        return poll_training_job(self.context, job, name)

    def _drain(self, job: Job) -> Job:
        """Drain leaving members from the rendezvous; commit which have left, or are out of time."""
        attempt, now = lifecycle.current(job), self.context.clock.now()
        leaving = [member for member in attempt.members if member.launched and member.left_at is None]
        leaving = [member for member in leaving if member.drain_asked_at is not None]
        late = {member.training_job_name for member in leaving if _is_late(job, member, now)}
        draining = [member.training_job_name for member in leaving if member.training_job_name not in late]
        for name in (*sorted(late), *(self._drained(job, draining) if draining else ())):
            # Another manager may have applied its end meanwhile.
            if name in {member.training_job_name for member in _members(job)}:
                job = commit(self.context, job, lifecycle.mark_member_left(job, name, now))
        return job

    def _drained(self, job: Job, draining: list[str]) -> list[str]:
        """Return the members that have no node left in the rendezvous.

        The control is set before the rendezvous is read, so a node that joins in between finds that it has to leave.
        The same holds for a node of a stopped training job, whose container may still start.
        """
        if self.context.rendezvous is None:
            return draining
        try:
            self._set_control(job)
            state = self.context.rendezvous.get(run_of(self.context, job))
        except UnreadableRendezvous as error:
            log.warning("cannot read a rendezvous", extra={"job": job.name, "cause": str(error)})
            return []
        return [name for name in draining if state is None or not state.holds(name)]

    def _set_control(self, job: Job) -> None:
        """Set how many nodes the rendezvous expects, and which have to leave; idempotent."""
        if self.context.rendezvous is not None:
            self.context.rendezvous.set(run_of(self.context, job), _control(job, lifecycle.current(job)))

    def _launch(self, job: Job, *, retry: bool) -> Job:
        """Create members that are not known to be created, after the rendezvous has been told to expect them."""
        if any(not (member.launched or member.leaving) for member in _members(job)):
            self._set_control(job)
        for member in _members(job):
            # The previous member may have changed the job, such as by giving up its growth.
            if job.stop_asked or job.attempt is None or job.attempt.base_ended_at is not None:
                return job
            if _has(job, member) and not member.launched and not member.leaving:
                job = self._create(job, lifecycle.current(job), member.training_job_name, retry=retry)
        return self._stop_or_drop(job)

    def _create(self, job: Job, attempt: Attempt, name: str, *, retry: bool) -> Job:
        context, now = self.context, self.context.clock.now()
        try:
            request = request_of_member(context, job, attempt)
            check_repeated_launch(context, job, request, name, retry=retry)
            created = context.launcher.create(job, replace(attempt, training_job_name=name), request, retry=retry)
        except Unconfirmed as error:
            if _member_of(attempt, name).may_appear(now):
                raise
            if error.refusal is None:
                return commit(context, job, lifecycle.remove_member(job, name, now, _NAME_TAKEN, lost=False))
            return commit(context, job, _without(job, name, now, str(error.refusal), retry=retry))
        except (CapacityExhausted, LaunchNotAllowedError, RequestRefused, PoolGoneError) as error:
            if isinstance(error, CapacityExhausted):
                note_quota(context, error)
            return commit(context, job, _without(job, name, now, str(error), retry=retry))
        if created in (CreateResult.NAME_TAKEN, CreateResult.EARLIER_START):
            return commit(context, job, lifecycle.remove_member(job, name, now, _NAME_TAKEN, lost=False))
        known = confirm_or_stop(context, job, lifecycle.mark_member_launched(job, name, now), name)
        return poll_training_job(context, known, name) if created is CreateResult.ALREADY_THERE else known

    def _settle_loss(self, job: Job) -> Job:
        """Settle a loss that has not been replaced within `faulty_scale_down_timeout`.

        The job continues at the smaller size if that is legal. Below its minimum it cannot work, so it starts again.
        """
        attempt, elastic = lifecycle.current(job), lifecycle.elastic_of(job)
        since, running = attempt.faulty_since, job.state is JobState.RUNNING and not job.stop_asked
        now = self.context.clock.now()
        if since is None or not running or now < since + elastic.faulty_scale_down_timeout:
            return job
        if attempt.size < elastic.min_instances:
            return commit(self.context, job, lifecycle.give_up_attempt(job, now))
        if attempt.size not in elastic.sizes:
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


def _member_of(attempt: Attempt, name: str) -> Member:
    return next(member for member in attempt.members if member.training_job_name == name)


def _has(job: Job, member: Member) -> bool:
    """Return whether the job still has the member, unchanged."""
    return member in _members(job)


def _without(job: Job, name: str, now: datetime, reason: str, *, retry: bool) -> Job:
    """Return the job after a member could not be created: give up a growth, or start with fewer members.

    The members that were never called for are dropped with it; after an earlier pass, those may exist.
    """
    if not _grows(job):
        return lifecycle.remove_member(job, name, now, f"cannot be created: {reason}", lost=False)
    absent = [member.training_job_name for member in _members(job) if not member.launched]
    job = lifecycle.abandon_resize(job, now, reason)
    for dropped in [name] if retry else absent:
        job = lifecycle.remove_member(job, dropped, now, "is no longer needed", lost=False)
    return job


def _is_late(job: Job, member: Member, now: datetime) -> bool:
    since, grace = member.drain_asked_at, lifecycle.elastic_of(job).graceful_shutdown_timeout
    return since is not None and now >= since + grace + SLACK


def _control(job: Job, attempt: Attempt) -> Control:
    elastic = lifecycle.bounds_for_nodes(job)
    return Control(
        # Increases with every change of the job, and stays the same if a pass is repeated.
        epoch=job.version,
        min_nodes=elastic.min_instances,
        # A round with this many nodes is complete at once. A shrinking job still holds the units that it gives back.
        max_nodes=max(elastic.min_instances, attempt.expected_size),
        sizes=elastic.sizes,
        # Members belong to the attempt until SageMaker reports that their training jobs have ended.
        drain=tuple(member.training_job_name for member in attempt.members if member.leaving),
        grace=elastic.graceful_shutdown_timeout.total_seconds(),
    )
