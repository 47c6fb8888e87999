"""Every way in which Trainmaster says no, as one tree.

    TrainmasterError
    ├── Refused                 the caller can mend it; names the field and a hint
    │   ├── InvalidRequest      a value of the wrong type, form or meaning
    │   │   ├── UnknownOption   a `trainmaster:` tag that means nothing here
    │   │   └── TooLarge        more than one item of the table can hold
    │   ├── RoleNotAllowed      a role that the caller may not pass through the queue
    │   ├── ShareNotAllowed     a share that the caller may not use
    │   ├── BudgetExhausted     the share has spent its budget, and takes no jobs until it renews
    │   ├── NeverFits           a demand that no pool could ever meet
    │   ├── JobNotFound         no job of that name
    │   ├── PoolNotFound        no pool of that name
    │   ├── PoolInUse           jobs, shares or warm pools need the pool
    │   ├── NameTaken           the name belongs to another request
    │   ├── NotOffered          this deployment does not take such jobs
    │   ├── IllegalTransition   the job is in a state that does not allow it
    │   └── VersionConflict     somebody else changed it first
    └── ServiceError          an AWS service did not do it; the cause is kept
        ├── Throttled           ask again later
        ├── Unavailable         5xx, time-out, connection lost: it may or may not have happened
        ├── CapacityExhausted   the account's limit or EC2 has no room now: wait and learn
        ├── RequestRefused      SageMaker will not take this request, ever
        ├── NotPermitted        our own role lacks a permission
        ├── UnreadableGroup     a rendezvous whose state no release of ours has written
        └── Fenced              a later pass has begun; this one must stop

What containers of elastic jobs say besides, is in `worker/rendezvous/errors.py`. This must not know HTTP: the
status of each type is a table in `handlers/`.
"""

from __future__ import annotations


class TrainmasterError(Exception):
    """Base of all errors that Trainmaster raises on purpose."""


class Refused(TrainmasterError):
    """A request that the caller can mend.

    Args:
        message: what is wrong, in one sentence.
        field: path of the field at fault, such as `ResourceConfig.InstanceCount`; None where there is none.
        hint: what to do about it.
    """

    def __init__(self, message: str, *, field: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.hint = hint


class InvalidRequest(Refused):
    """A value has the wrong type, form or meaning."""


class UnknownOption(InvalidRequest):
    """A `trainmaster:` tag names an option that does not exist."""


class TooLarge(InvalidRequest):
    """The request is larger than one item of the table."""


class RoleNotAllowed(Refused):
    """The caller may not pass this role through the queue."""


class ShareNotAllowed(Refused):
    """The caller may not submit jobs to this share."""


class BudgetExhausted(Refused):
    """The share has spent its budget and refuses jobs until the next period begins."""


class NeverFits(Refused):
    """No pool could ever meet the demand, however long the job waited."""


class JobNotFound(Refused):
    """The queue knows no job of this name."""


class PoolNotFound(Refused):
    """The queue has no pool of this name."""


class PoolInUse(Refused):
    """A pool cannot go while these jobs, shares or warm pools need it."""


class NameTaken(Refused):
    """The name belongs to a job with another request."""


class NotOffered(Refused):
    """This deployment has been made without what such jobs need."""


class IllegalTransition(Refused):
    """The state of the job does not allow this change."""


class VersionConflict(Refused):
    """Somebody else changed it since it was read."""


class ServiceError(TrainmasterError):
    """An AWS service did not do what was asked; the cause is kept as `__cause__`."""


class Throttled(ServiceError):
    """The service asked us to slow down; nothing happened."""


class Unavailable(ServiceError):
    """5xx, time-out or lost connection: it may or may not have happened."""


class CapacityExhausted(ServiceError):
    """The account's limit, or EC2, has no room for this now (`ResourceLimitExceeded`)."""


class RequestRefused(ServiceError):
    """SageMaker will never take this request (`ValidationException` and its like)."""


class NotPermitted(ServiceError):
    """Our own role lacks a permission (`AccessDeniedException`)."""


class UnreadableRendezvous(ServiceError):
    """The state of a rendezvous is none that a release of ours writes; whoever may write its row has written this."""


class Fenced(ServiceError):
    """A later pass has begun, so this one's reads are stale and it must stop."""
