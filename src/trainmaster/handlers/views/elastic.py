"""Builds responses about elastic jobs: sizes, members, resizes, and the rendezvous of their nodes."""

from __future__ import annotations

from trainmaster.domain.elastic.rendezvous import RendezvousState
from trainmaster.domain.elastic.sizes import Member
from trainmaster.domain.jobs.attempt import Attempt
from trainmaster.domain.jobs.job import Job
from trainmaster.handlers.models import elastic as elastic_models
from trainmaster.service.explain.resize_status import describe_wait
from trainmaster.service.explain.scaling import BelievedScaling


def elastic_view(job: Job, scaling: BelievedScaling | None = None) -> elastic_models.Elastic | None:
    """Return an elastic job's bounds, its state, and how it is believed to scale; None for any other job."""
    elastic = job.elastic
    if elastic is None:
        return None
    attempt = job.attempt if job.units else None
    return elastic_models.Elastic(
        min_instances=elastic.min_instances,
        max_instances=elastic.max_instances,
        instance_step=None if elastic.values else elastic.step,
        instance_values=list(elastic.values) or None,
        hook=elastic.hook,
        target=elastic.target or None,
        scaling_timeout_seconds=elastic.scaling_timeout.total_seconds(),
        graceful_shutdown_timeout_seconds=elastic.graceful_shutdown_timeout.total_seconds(),
        faulty_scale_down_timeout_seconds=elastic.faulty_scale_down_timeout.total_seconds(),
        scale_up_snooze_seconds=elastic.scale_up_snooze.total_seconds(),
        size=None if attempt is None else attempt.size,
        sized_at=None if attempt is None else attempt.held_since,
        resizes=0 if job.attempt is None else job.attempt.resizes,
        resizing=_resizing_view(job, attempt),
        faulty_since=None if attempt is None else attempt.faulty_since,
        wanted=None if attempt is None else attempt.wanted or None,
        members=[] if attempt is None else [_member_view(member) for member in attempt.members],
        scaling=scaling_view(scaling),
    )


def scaling_view(scaling: BelievedScaling | None) -> elastic_models.Scaling | None:
    """Return how a job is believed to scale; None if nothing was reported."""
    if scaling is None:
        return None
    return elastic_models.Scaling(
        message=scaling.message,
        serial_part=scaling.curve.serial,
        communication_part=scaling.curve.communication,
        sizes=[_size_view(scaling, size) for size in scaling.sizes],
    )


def _size_view(scaling: BelievedScaling, size: int) -> elastic_models.SizeSpeed:
    speed, faster = scaling.reported.get(size), scaling.slower.get(size)
    return elastic_models.SizeSpeed(
        instances=size,
        speedup=scaling.curve.speedup(size),
        per_second=None if speed is None else speed.rate,
        reports=0 if speed is None else speed.reports,
        measured_at=None if speed is None else speed.measured_at,
        slower_than=None if faster is None else faster.instances,
        retry_at=None if faster is None or speed is None else speed.retry_at,
    )


def rendezvous_view(
    run: str | None, group: RendezvousState | None, problem: str | None = None
) -> elastic_models.Rendezvous:
    """Return the state of a run's nodes; empty if none has joined yet."""
    known = group or RendezvousState(round=0, complete=False)
    return elastic_models.Rendezvous(
        run=run,
        round=None if group is None else group.round,
        complete=known.complete,
        closed=known.closed,
        reason=known.reason or None,
        restarts=known.restarts,
        nodes=[
            elastic_models.Node(
                training_job_name=node.training_job_name,
                host=node.host,
                role=node.role,
                rank=node.rank,
            )
            for node in known.nodes
        ],
        problem=problem,
    )


def _resizing_view(job: Job, attempt: Attempt | None) -> elastic_models.Resizing | None:
    under_way = None if attempt is None else attempt.resizing
    if under_way is None:
        return None
    return elastic_models.Resizing(
        before=under_way.before,
        after=under_way.after,
        cause=under_way.cause,
        asked_at=under_way.asked_at,
        until=under_way.until,
        freed_for=under_way.freed_for,
        given_up=under_way.given_up,
        message=describe_wait(job),
    )


def _member_view(member: Member) -> elastic_models.Member:
    return elastic_models.Member(
        training_job_name=member.training_job_name,
        state=_state_of(member),
        created_at=member.created_at,
        started_at=member.started_at,
    )


def _state_of(member: Member) -> elastic_models.MemberState:
    if member.left_at is not None:
        return "stopping"
    if member.drain_asked_at is not None:
        return "draining"
    if member.started_at is not None:
        return "working"
    return "starting" if member.launched else "requested"
