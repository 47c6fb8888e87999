"""Check the rules on callers again at each launch, so that the queue launches nothing for people who have left.

Permissions, roles and the deployment's request policy may have changed since the job was submitted.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from trainmaster.domain.errors import NotPermitted, ServiceError
from trainmaster.domain.jobs.job import Job
from trainmaster.ports.sagemaker import Unconfirmed
from trainmaster.ports.store import Request
from trainmaster.service.capacity.ownership import OURS, find_creator
from trainmaster.service.context import ManagerContext

log = logging.getLogger(__name__)

MAX_UNCONFIRMED = timedelta(hours=24)
"""For this time after a job's entry, its launches need no answer from IAM: it was asked at submission."""


class LaunchNotAllowedError(ServiceError):
    """The deployment or IAM no longer allows the job's submitter this training job."""


def check_launch(context: ManagerContext, job: Job, request: Request) -> None:
    """Raise `LaunchNotAllowedError` for an objection to the job's launch; `NotPermitted` if IAM cannot answer for long.

    Args:
        context: the manager's dependencies; without `caller_rules`, every training job is allowed.
        job: the job; its kind checks it if it is not a training job.
        request: the request that goes to SageMaker; empty for other kinds.
    """
    if job.work is not None:
        runs = context.kinds.get(job.work.kind)
        if runs is not None and (reason := runs.objection(job)) is not None:
            raise LaunchNotAllowedError(reason)
        return
    if context.caller_rules is None:
        return
    found = list(context.caller_rules.objections(request, job.submitted_by or "", [request]))
    for objection in found:
        if objection.certain:
            raise LaunchNotAllowedError(objection.error.message)
    if found and context.clock.now() >= job.entry_time + MAX_UNCONFIRMED:
        raise NotPermitted(found[0].error.message)
    if found:
        log.warning("launched without an answer from IAM", extra={"job": job.name, "cause": found[0].error.message})


def check_repeated_launch(context: ManagerContext, job: Job, request: Request, name: str, *, retry: bool) -> None:
    """Check a launch that an earlier pass may have made already; then it stands. Raises what `check_launch` raises.

    Raises `Unconfirmed` while an earlier create call may take effect.

    Args:
        context: the manager's dependencies.
        job: the job.
        request: the request that goes to SageMaker.
        name: the attempt's or member's training job.
        retry: whether an earlier pass may have called SageMaker for it.
    """
    try:
        check_launch(context, job, request)
    except (LaunchNotAllowedError, NotPermitted) as error:
        if not retry:
            raise
        if find_creator(context, job, name) not in OURS:
            raise Unconfirmed(str(error), error) from error
