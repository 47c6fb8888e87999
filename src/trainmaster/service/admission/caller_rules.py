"""Rules on what the queue does for a caller: nothing that the deployment forbids, or the caller could not do directly.

They apply when a job is submitted, and again at each of its launches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from trainmaster.domain.access.create_context import CREATE, Context, create_contexts
from trainmaster.domain.access.request_policy import RequestPolicy
from trainmaster.domain.errors import Refused, RequestNotAllowed, RoleNotAllowed
from trainmaster.domain.policy.roles import may_pass
from trainmaster.domain.requests.fields import part, text
from trainmaster.domain.requests.resources import CONFIG
from trainmaster.ports.permissions import Permissions
from trainmaster.ports.store import Request

_TO_SAGEMAKER = {"iam:PassedToService": ("sagemaker.amazonaws.com",)}
MAX_QUESTIONS = 16
"""Questions about one request, at most; its launch asks about the pool that the queue has chosen."""
_MAX_VALUE_LENGTH = 100
_HINT = (
    "Your identity needs this permission with these condition keys, as for SageMaker itself. A policy that requires "
    "aws:CalledVia=trainmaster allows it through the queue alone."
)


@dataclass(frozen=True, slots=True)
class Objection:
    """A reason against a request.

    Attributes:
        error: the error for the caller.
        certain: False if IAM could not answer.
    """

    error: Refused
    certain: bool = True


@dataclass(frozen=True, slots=True)
class CallerRules:
    """The rules of a deployment.

    Attributes:
        allowed_roles: patterns of role ARNs that the queue may pass.
        role_mapping: caller ARN pattern to role ARN patterns; if not empty, callers may use only these.
        request_policy: rules for every request.
        permissions: answers whether callers may do the same directly; None to ask about nothing.
        checks_pass_role: whether to ask about `iam:PassRole`.
        training_jobs: ARN of the queue's training jobs up to their name, to ask about `sagemaker:CreateTrainingJob`;
            "" to ask nothing about it.
    """

    allowed_roles: tuple[str, ...] = ()
    role_mapping: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    request_policy: RequestPolicy = field(default_factory=RequestPolicy)
    permissions: Permissions | None = None
    checks_pass_role: bool = True
    training_jobs: str = ""

    def check(self, request: Request, caller: str, sent: Sequence[Request]) -> None:
        """Raise `RoleNotAllowed` or `RequestNotAllowed` for the first objection, also if IAM cannot answer.

        Args:
            request: as submitted.
            caller: the caller's ARN; "" if unknown.
            sent: the requests that the queue may send to SageMaker for it.
        """
        for objection in self.objections(request, caller, sent):
            raise objection.error

    def objections(self, request: Request, caller: str, sent: Sequence[Request]) -> Iterator[Objection]:
        """Yield the objections to a request; see `check`. What needs no question to IAM comes first."""
        role = str(request.get("RoleArn"))
        yield from self._role_objections(role, caller)
        for error in self.request_policy.violations(request):
            yield Objection(error)
        if self.permissions is None:
            return
        if self.checks_pass_role:
            answer = self.permissions.allows(caller, "iam:PassRole", role, _TO_SAGEMAKER)
            if not answer:
                yield Objection(_may_not_pass(caller, role, answer), certain=answer is False)
        if self.training_jobs:
            yield from self._create_objections(self.permissions, str(request.get("TrainingJobName")), caller, sent)

    def _role_objections(self, role: str, caller: str) -> Iterator[Objection]:
        if not may_pass(caller, role, self.allowed_roles, self.role_mapping):
            error = RoleNotAllowed(
                f"The queue may not pass the role {role} for {caller or 'an unknown caller'}.",
                field="RoleArn",
                hint="Use a role that the deployment's AllowedRoles (and RoleMapping) name, or have it added there.",
            )
            yield Objection(error)

    def _create_objections(
        self, permissions: Permissions, name: str, caller: str, sent: Sequence[Request]
    ) -> Iterator[Objection]:
        for resource, context in self._questions(name, sent)[:MAX_QUESTIONS]:
            answer = permissions.allows(caller, CREATE, resource, context)
            if not answer:
                yield Objection(_may_not_create(caller, resource, context, answer), certain=answer is False)

    def _questions(self, name: str, sent: Sequence[Request]) -> list[tuple[str, Context]]:
        """Return what the action concerns, each once: the training job and a training plan that it uses."""
        region = self.training_jobs.split(":")[3]
        questions: list[tuple[str, Context]] = []
        for request in sent:
            plan = text(part(request, CONFIG), "TrainingPlanArn")
            resources = [f"{self.training_jobs}{name}", *([plan] if plan else [])]
            asked = [(resource, context) for context in create_contexts(request, region) for resource in resources]
            questions += [each for each in asked if each not in questions]
        return questions


def _may_not_pass(caller: str, role: str, answer: bool | None) -> RoleNotAllowed:  # noqa: FBT001 - IAM's answer
    return RoleNotAllowed(
        f"{caller or 'An unknown caller'} {_why(answer)} pass the role {role}.",
        field="RoleArn",
        hint="You need iam:PassRole on that role, as for CreateTrainingJob itself.",
    )


def _may_not_create(caller: str, resource: str, context: Context, answer: bool | None) -> RequestNotAllowed:  # noqa: FBT001
    keys = ", ".join(f"{key}={','.join(values)[:_MAX_VALUE_LENGTH]}" for key, values in sorted(context.items()))
    return RequestNotAllowed(
        f"{caller or 'An unknown caller'} {_why(answer)} use {CREATE} on {resource} with {keys}.", hint=_HINT
    )


def _why(answer: bool | None) -> str:  # noqa: FBT001 - IAM's answer
    return "may not" if answer is False else "could not be confirmed to have permission to"
