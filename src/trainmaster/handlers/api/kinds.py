"""Registers the kinds of jobs beside training jobs in the API; the only module of this layer that names one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from aws_lambda_powertools.event_handler.api_gateway import Response

from trainmaster.domain.access.caller import Caller
from trainmaster.domain.access.rules import Action
from trainmaster.domain.errors import NotOffered
from trainmaster.handlers.api.openapi import KindDocument
from trainmaster.handlers.api.operations import Operation
from trainmaster.handlers.models.forecast import Plan
from trainmaster.service.kinds import JobKind

CurrentCaller = Callable[[], Caller]
"""Returns the caller of the request that is being answered."""


class ApiKind(Protocol):
    """A kind of jobs in the API, with methods for the routes of its own."""

    @property
    def operations(self) -> Mapping[str, tuple[str, Operation]]:
        """The method and the declaration of each route, by the operation's name; see `operations_of`."""
        ...

    @property
    def document(self) -> KindDocument | None:
        """The kind's part of the OpenAPI document; None to leave its operations out of it."""
        ...

    def recognizes(self, body: Mapping[str, Any]) -> bool:
        """Return whether this is a request for a job of this kind."""
        ...

    def plan(self, body: Mapping[str, Any], caller: Caller) -> Plan:
        """Return the forecast of a submission. Raises the errors of a submission."""
        ...

    def refusal(self, name: str) -> str | None:
        """Return a sentence about a refused request for a job of this name; None if none is known."""
        ...


class Parts(Protocol):
    """Parts of the application that kinds use."""

    @property
    def kinds(self) -> Mapping[str, JobKind]:
        """The kinds of jobs that the deployment has."""


_DEPLOY_IMAGES = "Deploy images/template.yaml, and this queue with its JobKindSettings (docs/how-to/image-jobs.md)."


def api_kinds(parts: Parts, caller: CurrentCaller = Caller) -> tuple[ApiKind, ...]:
    """Return the kinds of jobs beside training jobs, those that the deployment does not have too."""
    if "image" not in parts.kinds:
        return (NotDeployed("image jobs", "/image-jobs", ("imageUrls", "imageProcessor"), _DEPLOY_IMAGES),)
    from trainmaster.images.handlers.api import ImageApi

    return (ImageApi(parts.kinds["image"], caller),)


@dataclass(frozen=True, slots=True)
class NotDeployed:
    """A kind of jobs that the deployment does not have: its requests are refused with the parameter to set.

    Attributes:
        jobs: what such jobs are called.
        route: the path of its requests.
        members: a request for a training job has none of these members, a request of this kind one at least.
        hint: how to deploy the kind.
    """

    jobs: str
    route: str
    members: Collection[str]
    hint: str

    @property
    def document(self) -> None:
        """Routes that only refuse are not documented."""

    @property
    def operations(self) -> Mapping[str, tuple[str, Operation]]:
        """The refused submission."""
        return {self.route: ("refuse", Operation("POST", self.route, Action.SUBMIT, f"Refuse {self.jobs}", {}))}

    def refuse(self) -> Response[str]:
        """Raise `NotOffered`."""
        raise self._refusal

    def recognizes(self, body: Mapping[str, Any]) -> bool:
        """Return whether this is a request of this kind."""
        return "TrainingJobName" not in body and any(member in body for member in self.members)

    def plan(self, body: Mapping[str, Any], caller: Caller) -> Plan:  # noqa: ARG002 - see ApiKind
        """Raise `NotOffered`."""
        raise self._refusal

    def refusal(self, name: str) -> str | None:  # noqa: ARG002 - see ApiKind
        """Return None: no request came this far."""
        return None

    @property
    def _refusal(self) -> NotOffered:
        return NotOffered(f"This queue does not accept {self.jobs}.", hint=self.hint)
