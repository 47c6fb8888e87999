"""The one decision point of authorization: every route, use case and queue message asks `Access`.

A route declares its action (`handlers.api.operations.operation`). Actions of `WITHOUT_SUBJECT` are decided before the
route runs; those that concern a job or a share are decided by the use case, which has read them:

    context.require(caller, Action.CHANGE_JOB, job=job)        # raises AccessDenied
    context.may(caller, Action.READ_REQUEST, job=job)          # True or False
    access.may(caller, Action.SUBMIT, policy, share=name)      # without an `ApiContext`, such as for a queue's message
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from trainmaster.domain.access.caller import Caller
from trainmaster.domain.access.ceilings import NO_CEILINGS, Ceilings
from trainmaster.domain.access.patterns import EVERYONE, matches
from trainmaster.domain.access.rules import MAY, Action, Role, owns
from trainmaster.domain.errors import AccessDenied
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.policy.settings import Policy, Share
from trainmaster.ports.permissions import Permissions

_UPDATE_STACK = "cloudformation:UpdateStack"


@dataclass(frozen=True, slots=True)
class Access:
    """Decides about actions of callers; by default there is no queue admin, and all callers are viewers.

    Attributes:
        admins: patterns of the queue admins; if empty, callers that IAM allows to update the stack.
        viewers: patterns of callers that may read the queue.
        stack: ARN of the deployment's CloudFormation stack; "" if there is none.
        permissions: answers of IAM; None not to ask.
        ceilings: what no caller may exceed.
    """

    admins: tuple[str, ...] = ()
    viewers: tuple[str, ...] = (EVERYONE,)
    stack: str = ""
    permissions: Permissions | None = None
    ceilings: Ceilings = NO_CEILINGS

    def require(self, caller: Caller, action: Action, policy: Callable[[], Policy], *, job: Job | None = None) -> None:
        """Raise `AccessDenied` unless the caller may; see `may`."""
        if not self.may(caller, action, policy, job=job):
            raise self._denied(caller, action, job)

    def may(
        self,
        caller: Caller,
        action: Action,
        policy: Callable[[], Policy],
        *,
        job: Job | None = None,
        share: str | None = None,
    ) -> bool:
        """Return whether the caller may take the action.

        Args:
            caller: the caller.
            action: the action.
            policy: returns the settings in force; called only if the answer depends on the roles of shares.
            job: the job that the action concerns; None for none.
            share: the share that the action concerns if it concerns no job; None for none.
        """
        roles = MAY[action]
        if Role.ANYONE in roles or (Role.OWNER in roles and job is not None and owns(caller, job)):
            return True
        if Role.VIEWER in roles and matches(caller.principal, self.viewers):
            return True
        if Role.QUEUE_ADMIN in roles and matches(caller.principal, self.admins):
            return True
        name = job.share if job is not None else share
        if _has_role_of_share(caller, roles, policy, name):
            return True
        return Role.QUEUE_ADMIN in roles and self._may_update_stack(caller)

    def _may_update_stack(self, caller: Caller) -> bool:
        """Return whether IAM makes the caller a queue admin, where the deployment names none."""
        if self.admins or not self.stack or self.permissions is None or not caller.principal:
            return False
        return self.permissions.allows(caller.arn or "", _UPDATE_STACK, self.stack, {}) is True

    def _denied(self, caller: Caller, action: Action, job: Job | None) -> AccessDenied:
        who = caller.arn or "An unknown caller"
        if Role.VIEWER not in MAY[action] and job is None:
            return AccessDenied(f"{who} is not an admin of this queue.", hint=self._admins_hint())
        if job is None:
            hint = "The deployment's parameter Viewers names the callers that may."
            return AccessDenied(f"{who} may not read this queue.", hint=hint)
        verb = _VERBS[action]
        return AccessDenied(
            f"{who} may not {verb} the job {job.name}.",
            field="name",
            hint=_JOB_HINTS[action].format(share=job.share),
        )

    def _admins_hint(self) -> str:
        if self.admins:
            return "The deployment's parameter Admins names its admins."
        if self.permissions is None or not self.stack:
            return "Name its admins in the deployment's parameter Admins."
        return f"Its admins are those that IAM allows {_UPDATE_STACK} on {self.stack}; or set the parameter Admins."


NO_ADMINS = Access()
"""Grants owners and shares only what they have by themselves; for callers that have no deployment."""

_VERBS = {
    Action.READ_JOB: "read",
    Action.READ_REQUEST: "read the request of",
    Action.CHANGE_JOB: "change",
    Action.ANSWER_RESIZE: "answer for",
}
_ADMINS_OF = "the admins of the share {share} (shares.{share}.admins) and the admins of the queue"
_JOB_HINTS = {
    Action.READ_JOB: f"Its owner, {_ADMINS_OF} may, and the callers of the deployment's parameter Viewers.",
    Action.READ_REQUEST: f"Its owner, {_ADMINS_OF} may.",
    Action.CHANGE_JOB: f"Its owner, {_ADMINS_OF} may.",
    Action.ANSWER_RESIZE: f"Its owner, {_ADMINS_OF} may, and the callers of shares.{{share}}.resizers.",
}


def _has_role_of_share(caller: Caller, roles: frozenset[Role], policy: Callable[[], Policy], name: str | None) -> bool:
    """Return whether the caller has one of the roles that shares grant: this share, or as a viewer any share."""
    if Role.VIEWER in roles:
        return any(matches(caller.principal, share.admins) for share in policy().shares.values())
    if name is None or not roles & {Role.SHARE_ADMIN, Role.SUBMITTER, Role.RESIZER}:
        return False
    share = policy().shares.get(name)
    return Role.SUBMITTER in roles if share is None else _granted(caller, roles, share)


def _granted(caller: Caller, roles: Iterable[Role], share: Share) -> bool:
    patterns = {
        Role.SHARE_ADMIN: share.admins,
        Role.SUBMITTER: share.submitters or (EVERYONE,),
        Role.RESIZER: share.resizers,
    }
    return any(matches(caller.principal, patterns.get(role, ())) for role in roles)
