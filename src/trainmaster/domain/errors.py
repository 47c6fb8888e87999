"""The tree of all errors that Trainmaster raises.

    TrainmasterError
    ├── Refused                 the caller can fix the request; names the field and a hint
    │   ├── InvalidRequest      a value of the wrong type, form or meaning
    │   │   ├── UnknownOption   a `trainmaster:` tag of an unknown option
    │   │   └── TooLarge        more than one item of the table can hold
    │   ├── AccessDenied        an action for which the caller lacks the role
    │   ├── RoleNotAllowed      a role that the caller may not pass through the queue
    │   ├── RequestNotAllowed   a training job that the caller, or the deployment, may not create
    │   ├── ShareNotAllowed     a share that the caller may not use
    │   ├── BudgetExhausted     the share has spent its budget and refuses jobs until it renews
    │   ├── NeverFits           a demand that no pool could ever meet
    │   ├── JobNotFound         no job of that name
    │   ├── PoolNotFound        no pool of that name
    │   ├── PoolInUse           jobs, shares or warm pools need the pool
    │   ├── NameTaken           the name belongs to another request
    │   ├── NotOffered          this deployment does not support such jobs
    │   ├── IllegalTransition   the job is in a state that does not allow it
    │   └── VersionConflict     another change came first
    └── ServiceError          an AWS service failed; the cause is kept
        ├── Throttled           try again later
        ├── Unavailable         5xx, time-out, connection lost: it may or may not have happened
        ├── CapacityExhausted   no capacity now: EC2 has none
        │   └── AccountLimitReached  the account's quota is used up
        ├── ExecutionGone       the execution that waited for a job has ended
        ├── RequestRefused      SageMaker will never accept this request
        ├── NotPermitted        the queue's own role lacks a permission
        ├── UnreadableRendezvous  a rendezvous whose state is malformed
        ├── UnreadableRow       a row of the table that the queue cannot have written
        ├── Suspended           the queue acts on nothing now; callers are told why
        │   ├── UnsupportedSchema  another release wrote the table
        │   └── Paused          an administrator has paused the manager
        └── Fenced              a later pass has begun; this one must stop

Errors of the worker's rendezvous are in `worker/rendezvous/errors.py`. The HTTP status of each type is a table in
`handlers/`.
"""

from __future__ import annotations


class TrainmasterError(Exception):
    """Base of all errors that Trainmaster raises on purpose."""


class Refused(TrainmasterError):
    """A request that the caller can fix.

    Args:
        message: the problem, in one sentence.
        field: path of the wrong field, such as `ResourceConfig.InstanceCount`; None if there is none.
        hint: how to fix it.
    """

    def __init__(self, message: str, *, field: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.hint = hint

    @property
    def message_and_hint(self) -> str:
        """The problem and how to fix it, for where there is one text."""
        return f"{self.message} {self.hint}" if self.hint else self.message


class InvalidRequest(Refused):
    """A value has the wrong type, form or meaning."""


class UnknownOption(InvalidRequest):
    """A `trainmaster:` tag names an option that does not exist."""


class TooLarge(InvalidRequest):
    """The request is larger than one item of the table."""


class AccessDenied(Refused):
    """The caller lacks the role that the action takes; the hint says where it is granted."""


class RoleNotAllowed(Refused):
    """The caller may not pass this role through the queue."""


class RequestNotAllowed(Refused):
    """The deployment's request policy forbids the request, or the caller could not create it in SageMaker directly."""


class ShareNotAllowed(Refused):
    """The caller may not submit jobs to this share."""


class BudgetExhausted(Refused):
    """The share has spent its budget and accepts no jobs until the next period begins."""


class NeverFits(Refused):
    """No pool could ever meet the demand."""


class JobNotFound(Refused):
    """The queue has no job of this name."""


class PoolNotFound(Refused):
    """The queue has no pool of this name."""


class PoolInUse(Refused):
    """The pool cannot be removed or changed while jobs, shares or warm pools need it."""


class NameTaken(Refused):
    """The name belongs to a job with another request."""


class NotOffered(Refused):
    """This deployment does not support such jobs."""


class IllegalTransition(Refused):
    """The state of the job does not allow this change."""


class VersionConflict(Refused):
    """Another change was stored since it was read."""


class ServiceError(TrainmasterError):
    """An AWS service failed; the cause is kept as `__cause__`."""


class Throttled(ServiceError):
    """The service throttled the call; nothing happened."""


def too_many_conflicts(what: str) -> Throttled:
    """Return the error of a change that other changes of the same thing have prevented at each try."""
    return Throttled(f"too many changes of {what} at once; try again")


class Unavailable(ServiceError):
    """The service answered 5xx, timed out or lost the connection; the call may have taken effect."""


class CapacityExhausted(ServiceError):
    """The account's limit, or EC2, has no capacity for this now (`ResourceLimitExceeded`)."""


class AccountLimitReached(CapacityExhausted):
    """`ResourceLimitExceeded`, with the figures in its text.

    Attributes:
        quota: the quota's name, such as `ml.p5.48xlarge for training job usage`; None if the text has none.
        limit: instances that the account may use.
        in_use: instances that it uses now.
        asked: instances that the request would have added.
    """

    def __init__(
        self,
        message: str,
        quota: str | None = None,
        limit: int | None = None,
        in_use: int | None = None,
        asked: int | None = None,
    ) -> None:
        super().__init__(message)
        self.quota, self.limit, self.in_use, self.asked = quota, limit, in_use, asked


class ExecutionGone(ServiceError):
    """The execution that waited for a job waits no longer: it was stopped, timed out, or has its answer."""


class RequestRefused(ServiceError):
    """SageMaker will never accept this request (such as `ValidationException`)."""


class NotPermitted(ServiceError):
    """The queue's own role lacks a permission (`AccessDeniedException`)."""


class UnreadableRendezvous(ServiceError):
    """The state of a rendezvous is malformed; its row can be written by users' containers."""


class Suspended(ServiceError):
    """The queue does not act now; the message says why and what to do, and is for callers too."""


class UnsupportedSchema(Suspended):
    """A release that this one is not compatible with wrote the table."""


class Paused(Suspended):
    """An administrator has paused the manager: no pass begins, and events are ignored."""


class Fenced(ServiceError):
    """A later pass has begun, so this one's snapshot is stale and it must stop."""


class UnreadableRow(ServiceError):
    """A row of the queue's table is damaged, misplaced or of an unknown kind; only what needs this row fails."""
