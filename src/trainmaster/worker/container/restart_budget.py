"""How many restarts for failures a job may have, and what follows when they are used up.

The terms are those of HyperPod's `runPolicy`. A resize is never given to it. Pure: times are handed in, and the record
of restarts is the rendezvous's own, so that every node of a job comes to the same verdict.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from trainmaster.domain.errors import InvalidRequest
from trainmaster.worker.rendezvous.state import State

VARIABLE = "TRAINMASTER_RESTARTS"
FULL = "trainmaster: full restart"
"""How the failure reason begins by which a container asks the queue for a new attempt."""
SPENT = "trainmaster: restart budget spent"
"""How it begins where the job is to fail."""
PERIOD = 3600.0
"""Seconds that restarts are counted over where nobody says otherwise."""


class Verdict(StrEnum):
    """What a restart leads to: a new world in the same containers, a new attempt of the job, or its failure."""

    RESTART = "restart"
    FULL = "full"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How often the processes of a job may be started anew for failures.

    Attributes:
        most: restarts within `period` after which the job is restarted in full, or fails where it may not be.
        period: seconds that restarts are counted over.
        total: restarts in all after which the job fails, over all of its attempts.
        used: of those, what the attempts before this one have used; the queue counts them.
        before_full: after so many within the period the next is a full restart.
        most_full: full restarts within the period that the queue allows; it counts them, across attempts.
    """

    most: int | None = None
    period: float = PERIOD
    total: int | None = None
    used: int = 0
    before_full: int | None = None
    most_full: int = 0

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Budget:
        """The budget in an environment; without bounds where there is none. Raises `InvalidRequest` for a wrong one."""
        text = environ.get(VARIABLE)
        if not text:
            return cls()
        try:
            return cls._read(json.loads(text))
        except (ValueError, TypeError, AttributeError) as error:
            raise InvalidRequest(f"{VARIABLE} is no budget: {error}", field=VARIABLE) from error

    @classmethod
    def _read(cls, given: Mapping[str, Any]) -> Budget:
        counts = ("most", "total", "used", "before_full", "most_full")
        numbers: dict[str, Any] = {name: int(given[name]) for name in counts if given.get(name) is not None}
        if given.get("period") is not None:
            numbers["period"] = float(given["period"])
        return cls(**numbers)

    def judge(self, restarts: Sequence[float], total: int, now: float) -> tuple[Verdict, str]:
        """What the newest restart leads to, and why in words.

        Args:
            restarts: when each restart that counts began, of the newest ones; seconds since the epoch.
            total: how many this attempt ever had.
            now: seconds since the epoch. Clocks of nodes differ by little against a period.
        """
        recent = sum(1 for at in restarts if at > now - self.period)
        within = f"within {self.period:g} seconds"
        in_all = self.used + total
        if self.total is not None and in_all > self.total:
            return Verdict.FAIL, f"{SPENT}: {in_all} restarts, {self.total} allowed in all"
        if self.before_full is not None and recent > self.before_full:
            return Verdict.FULL, f"{FULL}: {recent} restarts {within}, {self.before_full} allowed before it"
        if self.most is not None and recent > self.most:
            if self.most_full:
                return Verdict.FULL, f"{FULL}: {recent} restarts {within}, {self.most} allowed"
            return Verdict.FAIL, f"{SPENT}: {recent} restarts {within}, {self.most} allowed"
        return Verdict.RESTART, ""

    def overdrawn(self, state: State, now: float) -> str | None:
        """Why the job must not go on as it is; None where it may. See `judge`."""
        charged = [record.at for record in state.restarts if record.charged]
        verdict, reason = self.judge(charged, state.charged, now)
        return None if verdict is Verdict.RESTART else reason
