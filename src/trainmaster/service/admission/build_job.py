"""Build a job from a checked request, with all values that the queue needs later."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime, timedelta

from trainmaster.domain.access.caller import Caller
from trainmaster.domain.capacity.units import Demand
from trainmaster.domain.capacity.warm_pools import warm_pool_key_of
from trainmaster.domain.elastic.sizes import Elastic, Hook
from trainmaster.domain.jobs.job import Change, Job, JobState
from trainmaster.domain.requests.fields import part, text, whole
from trainmaster.domain.requests.options import Options
from trainmaster.ports.store import Request

DEFAULT_MAX_RUNTIME = timedelta(days=1)
"""SageMaker's default for `StoppingCondition.MaxRuntimeInSeconds` (CreateTrainingJob)."""


def digest_of(request: Request) -> str:
    """Return the SHA-256 of the request in canonical JSON, which does not depend on the order of keys."""
    canonical = json.dumps(request, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()


def build_job(  # noqa: PLR0913 - each is a part of the job
    request: Request,
    options: Options,
    demand: Demand,
    caller: Caller,
    now: datetime,
    *,
    elastic: Elastic | None = None,
) -> Job:
    """Return the job that a checked request describes, as it enters the queue."""
    stopping = part(request, "StoppingCondition")
    max_runtime = whole(stopping, "MaxRuntimeInSeconds")
    max_pending = whole(stopping, "MaxPendingTimeInSeconds")
    return Job(
        name=str(request["TrainingJobName"]),
        entry_time=now,
        priority=options.priority,
        preemptible=options.preemptible,
        share=options.share,
        demand=demand,
        digest=digest_of(request),
        max_runtime=DEFAULT_MAX_RUNTIME if max_runtime is None else timedelta(seconds=max_runtime),
        max_pending=None if max_pending is None else timedelta(seconds=max_pending),
        keep_alive=bool(whole(part(request, "ResourceConfig"), "KeepAlivePeriodInSeconds")),
        warm_pool_key=warm_pool_key_of(request, queue_selects_pool=demand.queue_selects_pool),
        container_image=_image(request),
        checkpointed=_writes_checkpoints(request, elastic),
        preemption_overrides=options.preemption_overrides,
        not_before=options.not_before,
        deadline=options.deadline,
        after=options.after,
        if_parent_fails=options.after_failure,
        group=options.group,
        max_concurrent=options.max_concurrent,
        retries=options.retries,
        elastic=elastic,
        notify=options.notify,
        submitted_by=caller.principal or None,
        history=(
            Change(now, None, JobState.PENDING, "submitted" if caller.arn is None else f"submitted by {caller.name}"),
        ),
    )


def _writes_checkpoints(request: Request, elastic: Elastic | None) -> bool:
    """Return whether the job writes checkpoints.

    Jobs with members write theirs without `CheckpointConfig`, whose one prefix cannot serve several training jobs.
    """
    by_itself = elastic is not None and elastic.hook is Hook.MEMBERS
    return by_itself or bool(text(part(request, "CheckpointConfig"), "S3Uri"))


def _image(request: Request) -> str:
    """Return the container image, or the algorithm's name; run times are estimated from jobs that share it."""
    specification = part(request, "AlgorithmSpecification")
    return text(specification, "TrainingImage") or text(specification, "AlgorithmName") or ""
