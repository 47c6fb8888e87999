"""The restart budget of an elastic job, in the terms of HyperPod's `runPolicy`, and the action when it is spent.

Pure: the times are arguments. All nodes evaluate the record of restarts in the rendezvous, so they reach the same
result. Resizes do not count as restarts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainmaster.domain.compat import StrEnum
from trainmaster.domain.errors import InvalidRequest
from trainmaster.worker.rendezvous.state import State

VARIABLE = "TRAINMASTER_RESTARTS"
FULL_RESTART_PREFIX = "trainmaster: full restart"
"""Prefix of the failure reason by which a container requests a new attempt from the queue."""
BUDGET_SPENT_PREFIX = "trainmaster: restart budget spent"
"""Prefix of the failure reason of a job that has no restarts left."""
PERIOD = 3600.0
"""Default period, in seconds, over which restarts are counted."""


class RestartAction(StrEnum):
    """The action after a restart: a new world in the same containers, a new attempt of the job, or its failure."""

    RESTART = "restart"
    FULL_RESTART = "full"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartBudget:
    """Limits on restarts of a job's processes after failures; None means unlimited.

    Attributes:
        max_restarts: restarts within `period` before a full restart, or before the job fails if `max_full_restarts` is
            0.
        period: seconds over which restarts are counted.
        max_total_restarts: restarts over all attempts of the job before it fails.
        used: restarts of earlier attempts that count against `max_total_restarts`, as counted by the queue.
        restarts_before_full: restarts within `period` before a full restart.
        max_full_restarts: full restarts that the queue allows within `period`; the queue counts them across attempts.
    """

    max_restarts: int | None = None
    period: float = PERIOD
    max_total_restarts: int | None = None
    used: int = 0
    restarts_before_full: int | None = None
    max_full_restarts: int = 0

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> RestartBudget:
        """Return the budget in TRAINMASTER_RESTARTS, or an unlimited one if the variable is not set.

        Raises:
            InvalidRequest: the variable does not contain a budget.
        """
        text = environ.get(VARIABLE)
        if not text:
            return cls()
        try:
            return cls._from_json(json.loads(text))
        except (ValueError, TypeError, AttributeError) as error:
            raise InvalidRequest(f"{VARIABLE} is not a restart budget: {error}", field=VARIABLE) from error

    @classmethod
    def _from_json(cls, document: Mapping[str, Any]) -> RestartBudget:
        values: dict[str, Any] = {
            key: convert(document[key]) for key, convert in _CONVERTERS.items() if document.get(key) is not None
        }
        return cls(**values)

    def evaluate(self, restarts: Sequence[float], count: int, now: float) -> tuple[RestartAction, str]:
        """Return the action after the newest restart, and the reason for it.

        Args:
            restarts: start times of the newest charged restarts, in seconds since the epoch.
            count: number of charged restarts in this attempt.
            now: seconds since the epoch. The nodes' clocks differ by little compared to a period.
        """
        recent = sum(1 for at in restarts if at > now - self.period)
        within = f"within {self.period:g} seconds"
        total = self.used + count
        if self.max_total_restarts is not None and total > self.max_total_restarts:
            spent = f"{BUDGET_SPENT_PREFIX}: {total} restarts, {self.max_total_restarts} allowed in total"
            return RestartAction.FAIL, spent
        full = f"{FULL_RESTART_PREFIX}: {recent} restarts {within}"
        if self.restarts_before_full is not None and recent > self.restarts_before_full:
            return RestartAction.FULL_RESTART, f"{full}, {self.restarts_before_full} allowed before it"
        if self.max_restarts is not None and recent > self.max_restarts:
            if self.max_full_restarts:
                return RestartAction.FULL_RESTART, f"{full}, {self.max_restarts} allowed"
            return RestartAction.FAIL, f"{BUDGET_SPENT_PREFIX}: {recent} restarts {within}, {self.max_restarts} allowed"
        return RestartAction.RESTART, ""

    def exhausted_reason(self, state: State, now: float) -> str | None:
        """Return the reason to end this attempt, or None if the budget allows the newest restart."""
        charged = [record.at for record in state.restarts if record.charged]
        action, reason = self.evaluate(charged, state.charged, now)
        return None if action is RestartAction.RESTART else reason


_CONVERTERS = {
    "max_restarts": int,
    "period": float,
    "max_total_restarts": int,
    "used": int,
    "restarts_before_full": int,
    "max_full_restarts": int,
}
