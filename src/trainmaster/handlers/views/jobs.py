"""Builds responses about jobs and plans from values of the domain, without I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from trainmaster.domain.access.redaction import redacted_fields, redacted_text
from trainmaster.domain.capacity.units import Demand
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.attempt import Attempt
from trainmaster.domain.jobs.attempt_totals import AttemptTotals
from trainmaster.domain.jobs.deadline import Outlook
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.plan import Estimate, Expand
from trainmaster.domain.reasons.capacity import NotConsideredYet
from trainmaster.handlers.models import forecast as forecast_models
from trainmaster.handlers.models import jobs as job_models
from trainmaster.handlers.models.reasons import Reason, reason_view
from trainmaster.handlers.views.elastic import elastic_view, scaling_view
from trainmaster.handlers.views.pools import pool_change_view
from trainmaster.ports.store import Request
from trainmaster.service.explain.consequences import Consequences, Delay
from trainmaster.service.explain.explain import Explanation
from trainmaster.service.explain.scaling import BelievedScaling
from trainmaster.service.explain.why import ExternalHolders, Holder, WaitDiagnosis
from trainmaster.service.submit import Submission


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """Queue-derived fields shown with a job; all None if it is not queued.

    `demand` has the pools in force now, of a job that asks for resources; `end` is that of a job that holds units.
    """

    position: int | None = None
    at_least: int | None = None
    reason: Reason | None = None
    estimated_start: datetime | None = None
    earliest_start: datetime | None = None
    latest_start: datetime | None = None
    deadline: forecast_models.Deadline | None = None
    demand: Demand | None = None
    end: Estimate | None = None
    scaling: BelievedScaling | None = None


def queue_status_of(explanation: Explanation | None) -> QueueStatus:
    """Return the fields that the plan gives a job."""
    if explanation is None:
        return QueueStatus()
    return QueueStatus(
        explanation.position,
        explanation.at_least,
        reason_view(explanation.reason if explanation.considered else NotConsideredYet()),
        explanation.estimated_start,
        explanation.earliest_start,
        explanation.latest_start,
        deadline_view(explanation.outlook),
        scaling=explanation.scaling,
    )


def status_without_plan(
    job: Job,
    deadline: Outlook | None = None,
    end: Estimate | None = None,
    scaling: BelievedScaling | None = None,
) -> QueueStatus:
    """Return the fields of a job outside the queue: why it is held, its deadline or expected end, how it scales."""
    reason = reason_view(lifecycle.held_reason(job))
    return QueueStatus(reason=reason, deadline=deadline_view(deadline), end=end, scaling=scaling)


def deadline_view(outlook: Outlook | None) -> forecast_models.Deadline | None:
    """Return the outlook for a job's deadline."""
    if outlook is None:
        return None
    return forecast_models.Deadline(
        deadline=outlook.deadline,
        prospect=outlook.prospect.value,
        latest_start=outlook.latest_start,
        urgent_from=outlook.urgent_from,
        message=outlook.message(),
    )


def job_view(job: Job, status: QueueStatus | None = None) -> job_models.Job:
    """Return a job, with the plan's fields if it waits."""
    return job_models.Job(**_members(job, status))


def submission_view(submission: Submission) -> job_models.Submission:
    """Return a submitted job, its warnings, and the jobs that it would preempt."""
    explanation = submission.explanation
    return job_models.Submission(
        **_members(submission.job, None if explanation is None else queue_status_of(explanation)),
        submitted_before=not submission.new,
        warnings=list(submission.warnings),
        would_preempt=[] if explanation is None else list(explanation.would_preempt),
    )


def detail_view(
    job: Job, request: Request, status: QueueStatus | None, why: WaitDiagnosis | None = None
) -> job_models.JobDetail:
    """Return a job with its history and request, and its diagnosis if it waits."""
    history = [
        job_models.HistoryEntry(
            at=line.at,
            before=line.before,
            after=line.after,
            reason=redacted_text(line.reason),
            attempt=line.attempt,
        )
        for line in job.history
    ]
    return job_models.JobDetail(
        **_members(job, status),
        history=history,
        job_details=dict(request),
        redacted=redacted_fields(request),
        why=why_view(why),
    )


def why_view(story: WaitDiagnosis | None) -> forecast_models.Why | None:
    """Return the diagnosis of a waiting job."""
    if story is None:
        return None
    reserved = story.reserved
    return forecast_models.Why(
        in_the_way=[_holder_view(holder) for holder in story.holders],
        jobs_in_the_way=story.held_by_jobs,
        external=[_external_view(holders) for holders in story.external],
        reserved=None if reserved is None else forecast_models.Reserved(instances=dict(reserved.units), at=reserved.at),
        rule=story.rule,
        advice=[
            forecast_models.Advice(message=each.message, priority=each.priority, pool=each.pool)
            for each in story.advice
        ],
    )


def plan_view(
    explanation: Explanation, warnings: Sequence[str], consequences: Consequences | None = None
) -> forecast_models.Plan:
    """Return the consequences of a request for itself and for other jobs."""
    status, consequences = queue_status_of(explanation), consequences or Consequences()
    preempts = list(explanation.would_preempt)
    return forecast_models.Plan(
        decision="start" if explanation.starts else "preempt" if preempts else "wait",
        position=status.position,
        position_at_least=status.at_least,
        reason=status.reason,
        would_take=dict(explanation.takes),
        would_preempt=preempts,
        would_start=list(consequences.starts),
        would_delay=[_delay_view(delay) for delay in consequences.delays],
        would_create=[_creation_view(each) for each in consequences.creates],
        would_create_none=consequences.refused or None,
        expansion_enabled=consequences.expands,
        would_change=[pool_change_view(each) for each in consequences.changes],
        made_dollars_per_hour=_dollars_view(consequences.dollars),
        estimated_start=status.estimated_start,
        estimated_start_low=status.earliest_start,
        estimated_start_high=status.latest_start,
        deadline=status.deadline,
        scaling=scaling_view(status.scaling),
        warnings=list(warnings),
    )


def _dollars_view(dollars: tuple[float, float] | None) -> forecast_models.MadeDollars | None:
    return None if dollars is None else forecast_models.MadeDollars(now=dollars[0], then=dollars[1])


def _creation_view(decided: Expand) -> forecast_models.Creation:
    return forecast_models.Creation(
        pool=decided.pool.name,
        instance_type=decided.pool.instance_type,
        instances=decided.pool.cap,
        dollars_per_hour=decided.dollars_per_hour or None,
    )


def _members(job: Job, status: QueueStatus | None) -> dict[str, Any]:
    status = status or status_without_plan(job)
    demand = status.demand or job.demand
    return {
        "job_name": job.name,
        "kind": job.kind,
        "job_state": job.state,
        "priority": job.priority,
        "share": job.share,
        "entry_time": job.entry_time,
        "pools": list(demand.pools),
        "demand": [dict(units) for units in demand.alternatives],
        "resources": None if demand.resources is None else job_models.Resources(**asdict(demand.resources)),
        "instances": None if demand.resources is None else demand.instances,
        "preemptible": job.preemptible,
        "position": status.position,
        "position_at_least": status.at_least,
        "reason": status.reason,
        "estimated_start": status.estimated_start,
        "estimated_start_low": status.earliest_start,
        "estimated_start_high": status.latest_start,
        "expected_end": None if status.end is None else status.end.expected,
        "expected_end_low": None if status.end is None else status.end.low,
        "expected_end_high": None if status.end is None else status.end.high,
        "deadline": status.deadline,
        "ended_at": job.ended_at,
        "submitted_by": job.submitted_by,
        "failure_reason": None if job.failure is None else redacted_text(job.failure),
        "training_job_name": None if job.attempt is None else job.attempt.base_name,
        "attempts": [_attempt_view(attempt) for attempt in job.attempts],
        "earlier_attempts": _earlier_view(job.attempt_totals),
        "elastic": elastic_view(job, status.scaling),
        "details": None if job.work is None else job.work.details(None if status.end is None else status.end.expected),
    }


def _holder_view(holder: Holder) -> forecast_models.Holder:
    return forecast_models.Holder(
        job_name=holder.job,
        pool=holder.pool,
        instances=holder.units,
        expected_end=holder.until,
        overdue=holder.overdue,
        stopping=holder.stopping,
        giving_back=holder.giving_back,
    )


def _external_view(holders: ExternalHolders) -> forecast_models.ExternalHolders:
    return forecast_models.ExternalHolders(
        pool=holders.pool,
        instances=holders.units,
        training_job_names=list(holders.training_jobs),
        training_jobs=holders.count,
    )


def _delay_view(delay: Delay) -> forecast_models.Delay:
    return forecast_models.Delay(
        job_name=delay.job,
        by_seconds=round(delay.by.total_seconds()),
        expected_start=delay.expected,
        would_start=delay.after,
    )


def _attempt_view(attempt: Attempt) -> job_models.Attempt:
    return job_models.Attempt(
        number=attempt.number,
        training_job_name=attempt.training_job_name,
        units=dict(attempt.units),
        instance_type=attempt.instance_type or None,
        outcome=attempt.outcome,
        created_at=attempt.created_at,
        launched=attempt.launched,
        started_at=attempt.started_at,
        ended_at=attempt.ended_at,
        interruptions=attempt.interruptions,
        reason=None if attempt.reason is None else redacted_text(attempt.reason),
    )


def _earlier_view(totals: AttemptTotals) -> job_models.EarlierAttempts | None:
    if totals.began_at is None:
        return None
    return job_models.EarlierAttempts(
        count=totals.count,
        outcomes=dict(totals.outcomes),
        began_at=totals.began_at,
        at_work_seconds=totals.at_work,
        instance_seconds=totals.served,
    )
