"""Requests whose images have been read, on their way from the intake to the manager, which stores their jobs.

The intake opens images of unknown origin, so it writes no jobs: it sends what it has found, and the manager checks the
submission as if a caller had made it, and builds the job itself.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from trainmaster.domain.access.caller import Caller
from trainmaster.domain.access.ceilings import priority_problem
from trainmaster.domain.access.redaction import check_shown
from trainmaster.domain.compat import UTC
from trainmaster.domain.errors import InvalidRequest, NameTaken, Refused, ServiceError
from trainmaster.domain.jobs.job import Change, Job, JobState
from trainmaster.domain.jobs.priorities import MAX_PRIORITY
from trainmaster.domain.policy.settings import Policy
from trainmaster.domain.requests.values import job_names
from trainmaster.images.domain.refusal import Refusal
from trainmaster.images.domain.request import is_image_request
from trainmaster.images.domain.work import ImageWork, work_of
from trainmaster.images.ports import FIELD, ImageIntake, Refusals
from trainmaster.ports.runtime import Clock
from trainmaster.ports.store import Request, Store
from trainmaster.service.access import Access
from trainmaster.service.admission.build_job import digest_of
from trainmaster.service.admission.shares import check_budget, check_share
from trainmaster.service.auditing.audit import Recorder

log = logging.getLogger(__name__)

SHARE_FIELD, PRIORITY_FIELD = "trainmaster.share", "trainmaster.priority"
MEMBER = "submission"
"""Member of a message that has a submission."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A request with what the intake has found about it.

    Attributes:
        name: of the job.
        body: the request as JSON values, unchanged.
        work: the work that it defines.
        caller: the caller, as far as it is known for certain.
        since: time of the request, UTC; the job's entry time.
    """

    name: str
    body: Request
    work: ImageWork
    priority: int
    share: str
    caller: Caller
    since: datetime | None = None

    def job(self, now: datetime) -> Job:
        """Return the job that the request creates."""
        submitted = "submitted" if self.caller.arn is None else f"submitted by {self.caller.name}"
        return Job(
            name=self.name,
            entry_time=now if self.since is None else min(self.since, now),
            priority=self.priority,
            share=self.share,
            demand=self.work.demand(),
            digest=digest_of(self.body),
            # Regions that were completed before a preemption stay completed.
            checkpointed=True,
            container_image=self.work.pool,
            work=self.work,
            submitted_by=self.caller.principal or None,
            history=(Change(now, None, JobState.PENDING, submitted),),
        )

    def message(self) -> dict[str, Any]:
        """Return the submission as JSON values."""
        return {
            "name": self.name,
            "body": self.body,
            "work": self.work.values(),
            "priority": self.priority,
            "share": self.share,
            "caller": self.caller.arn,
            "since": None if self.since is None else self.since.isoformat(),
        }


def submission_of(message: Mapping[str, Any]) -> Submission:
    """Return the submission in a message. Raises `InvalidRequest` for any other message.

    The counts of its work are computed again.
    """
    try:
        said = message[MEMBER]
        name, body, priority, share, arn = (said[key] for key in ("name", "body", "priority", "share", "caller"))
        told = ImageWork.of_values(said["work"])
        work = work_of(told.endpoint, told.variant, told.part, told.cut, told.workers)
        since = None if said["since"] is None else datetime.fromisoformat(said["since"]).astimezone(UTC)
    except (ValueError, TypeError, KeyError, IndexError, ArithmeticError) as error:
        raise InvalidRequest(f"the submission cannot be read: {type(error).__name__}", field=MEMBER) from error
    given = isinstance(name, str) and isinstance(share, str) and isinstance(arn, str | None) and type(priority) is int
    if not given or not isinstance(body, dict) or not is_image_request(body) or body.get("jobId") != name:
        raise InvalidRequest("the submission is not of an image job", field=MEMBER)
    if job_names(name) != (name,) or abs(priority) > MAX_PRIORITY:
        raise InvalidRequest("the submission has a wrong name or priority", field=MEMBER)
    return Submission(name=name, body=body, work=work, priority=priority, share=share, caller=Caller(arn), since=since)


def check_submitter(  # noqa: PLR0913 - the request's own words, and what they are checked against
    access: Access, caller: Caller, body: Request, policy: Policy, *, share: str, priority: int
) -> None:
    """Raise `ShareNotAllowed` for a share that the caller may not use.

    Raises `InvalidRequest` for a redacted request, an unknown share, or a priority above its ceiling.
    """
    check_shown(body)
    problem = priority_problem(priority, PRIORITY_FIELD, access.ceilings, policy.shares.get(share))
    if problem is not None:
        raise problem.refusal()
    check_share(access, caller, body, share, policy, field=SHARE_FIELD)


def store_submission(
    store: Store, clock: Clock, submission: Submission, policy: Policy, retention: timedelta
) -> tuple[Job, bool]:
    """Store the job of a submission, with an audit entry; return it, and False if it existed already.

    Raises `BudgetExhausted`, `NameTaken`, `TooLarge`, `ServiceError`.
    """
    now = clock.now()
    job = submission.job(now)
    check_budget(store, clock, job, submission.body, policy, field=SHARE_FIELD)
    entry = Recorder(submission.caller, now, retention).submission(job)
    stored = store.submit(job, submission.body, audit=entry)
    if stored.digest != job.digest:
        raise name_taken(stored.name)
    return stored, stored is job


@dataclass(frozen=True, slots=True)
class SubmissionEntry:
    """Stores the jobs of submissions, in the manager.

    Attributes:
        access: decides who may submit to a share.
        queue: where requests are set aside.
        refusals: where refusals are kept for readers of their jobs.
        retention: how long audit entries are kept.
    """

    store: Store
    access: Access
    clock: Clock
    queue: ImageIntake
    refusals: Refusals
    retention: timedelta

    def enter(self, message: Mapping[str, Any]) -> None:
        """Store the job of the submission in a message, or set its request aside with the reason.

        Raises `InvalidRequest` if there is none, `ServiceError`.
        """
        submission = submission_of(message)
        policy = self.store.settings(catalogue=False).policy
        try:
            check_submitter(
                self.access,
                submission.caller,
                submission.body,
                policy,
                share=submission.share,
                priority=submission.priority,
            )
            store_submission(self.store, self.clock, submission, policy, self.retention)
        except Refused as error:
            self._set_aside(submission, error)

    def _set_aside(self, submission: Submission, error: Refused) -> None:
        log.warning("refused", extra={"job": submission.name, "field": error.field})
        body = json.dumps(submission.body, separators=(",", ":"), ensure_ascii=False)
        reason = error.message_and_hint
        self.queue.set_aside(body, reason, attributes={FIELD: error.field} if error.field else None)
        refusal = Refusal(job=submission.name, at=self.clock.now(), reason=reason, field=error.field or "")
        try:
            note_refused(self.store, self.refusals, refusal)
        except ServiceError:
            log.exception("a refusal could not be stored", extra={"job": submission.name})


def note_refused(store: Store, refusals: Refusals, refusal: Refusal) -> None:
    """Store the refusal of a request, for readers of its job, unless a job of that name exists.

    Raises `ServiceError`.
    """
    if store.find(refusal.job) is None:
        refusals.note(refusal)


def name_taken(name: str) -> NameTaken:
    """Return the error of a name that belongs to a job with another request."""
    return NameTaken(
        f"The name {name} belongs to a job with another request.", field="jobId", hint="Choose another jobId."
    )
