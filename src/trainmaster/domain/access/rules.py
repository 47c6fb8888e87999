"""Actions of callers, and the roles that may take each; `service/access` decides by them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from trainmaster.domain.access.caller import Caller
from trainmaster.domain.compat import StrEnum
from trainmaster.domain.jobs.job import Job


class Role(StrEnum):
    """A caller's role towards a queue, a share or a job.

    anyone: every caller that IAM lets call the API.
    viewer: callers that the deployment's `Viewers` name, and the admins of shares.
    submitter: callers that the share's `submitters` name; all callers if it names none.
    owner: the principal that submitted the job.
    resizer: callers that the share's `resizers` name, such as the Lambda function of a custom hook.
    share-admin: callers that the share's `admins` name.
    queue-admin: callers that the deployment's `Admins` name.
    """

    ANYONE = "anyone"
    VIEWER = "viewer"
    SUBMITTER = "submitter"
    OWNER = "owner"
    RESIZER = "resizer"
    SHARE_ADMIN = "share-admin"
    QUEUE_ADMIN = "queue-admin"


class Action(StrEnum):
    """Action that a caller asks for; `MAY` has the roles that each takes.

    describe: read the API's own description.
    read: read the queue: its jobs, pools and settings.
    read-job: read one job.
    read-request: read what a job's request keeps for its owner, such as its environment.
    submit: submit a job to a share, or plan it.
    change-job: cancel, hold, release, re-prioritize or purge a job.
    answer-resize: report the outcome of a job's custom resize, or its speed.
    read-audit: read the audit entries.
    administer: change settings and pools, pause and resume the manager, restore, export and import.
    """

    DESCRIBE = "describe"
    READ = "read"
    READ_JOB = "read-job"
    READ_REQUEST = "read-request"
    SUBMIT = "submit"
    CHANGE_JOB = "change-job"
    ANSWER_RESIZE = "answer-resize"
    READ_AUDIT = "read-audit"
    ADMINISTER = "administer"


_ADMINS: Final = frozenset({Role.SHARE_ADMIN, Role.QUEUE_ADMIN})
_ABOVE_JOB: Final = _ADMINS | {Role.OWNER}
MAY: Final[Mapping[Action, frozenset[Role]]] = {
    Action.DESCRIBE: frozenset({Role.ANYONE}),
    Action.READ: frozenset({Role.VIEWER, Role.QUEUE_ADMIN}),
    Action.READ_JOB: frozenset({Role.VIEWER, Role.OWNER, Role.QUEUE_ADMIN}),
    Action.READ_REQUEST: _ABOVE_JOB,
    Action.SUBMIT: _ADMINS | {Role.SUBMITTER},
    Action.CHANGE_JOB: _ABOVE_JOB,
    Action.ANSWER_RESIZE: _ABOVE_JOB | {Role.RESIZER},
    Action.READ_AUDIT: frozenset({Role.QUEUE_ADMIN}),
    Action.ADMINISTER: frozenset({Role.QUEUE_ADMIN}),
}
"""Roles that may take each action; one of them suffices."""
WITHOUT_SUBJECT: Final = frozenset({Action.DESCRIBE, Action.READ, Action.READ_AUDIT, Action.ADMINISTER})
"""Actions that concern no single job or share, so that a route can be decided before its request is read."""


def owns(caller: Caller, job: Job) -> bool:
    """Return whether the caller's principal submitted the job; an unknown caller owns nothing."""
    return caller.principal != "" and job.submitted_by == caller.principal
