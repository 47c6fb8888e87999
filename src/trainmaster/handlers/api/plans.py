"""Answers `POST /plan`: the forecast for a request of any kind of jobs, as if it were submitted now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from trainmaster.domain.access.caller import Caller
from trainmaster.handlers.api import kinds
from trainmaster.handlers.models.forecast import Plan
from trainmaster.handlers.views.jobs import plan_view
from trainmaster.service.admission.policy import AdmissionPolicy
from trainmaster.service.change import ApiContext
from trainmaster.service.submit import plan


class Parts(Protocol):
    """Parts of the application that plans use."""

    @property
    def api_context(self) -> ApiContext:
        """The dependencies of the use cases."""

    @property
    def admission(self) -> AdmissionPolicy:
        """The deployment's rules for requests."""


def planned(parts: Parts, of_kinds: Iterable[kinds.ApiKind], body: Mapping[str, Any], caller: Caller) -> Plan:
    """Return the forecast for a request. Raises the errors of a submission."""
    for kind in of_kinds:
        if kind.recognizes(body):
            return kind.plan(body, caller)
    return plan_view(*plan(parts.api_context, caller, parts.admission, body))
