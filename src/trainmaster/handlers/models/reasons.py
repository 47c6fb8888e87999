"""Why a job waits, as it travels: the planner's reasons by name, each with its own members.

It must not say anything that the plan does not.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from trainmaster.handlers.models.base import Answer

ReasonType = Literal[
    "WaitsForCapacity",
    "WaitsForRelease",
    "Preempts",
    "Shrinks",
    "EndsWarmPool",
    "Behind",
    "KeptForOther",
    "Protected",
    "PreemptsLater",
    "BackingOff",
    "NextPass",
    "CanNeverFit",
    "Infeasible",
    "Draining",
    "NotInService",
    "ShareFull",
    "UserFull",
    "BudgetSpent",
    "GroupFull",
    "PlanClosed",
    "NotBefore",
    "WaitsForJobs",
    "Held",
    "NotConsideredYet",
]


class Reason(Answer):
    """Why a job waits. Of the members after `message`, a reason has those of its type and no others."""

    type: ReasonType
    message: Annotated[str, Field(description="The reason as a sentence.")]
    pool: Annotated[
        str | None,
        Field(
            description="Of WaitsForCapacity, Behind, KeptForOther, CanNeverFit, NotInService, ShareFull, UserFull and "
            "PlanClosed."
        ),
    ] = None
    needed: Annotated[
        int | None, Field(description="Instances. Of WaitsForCapacity, KeptForOther, CanNeverFit and Infeasible.")
    ] = None
    free: Annotated[
        int | None, Field(description="Instances that it could have now. Of WaitsForCapacity and KeptForOther.")
    ] = None
    expected: Annotated[
        datetime | None, Field(description="When enough is expected to be free. Of WaitsForCapacity.")
    ] = None
    overdue: Annotated[
        str | None,
        Field(description="A job that has run for longer than was expected of it. Of WaitsForCapacity."),
    ] = None
    cap: Annotated[int | None, Field(description="The pool's cap. Of CanNeverFit.")] = None
    resources: Annotated[
        str | None, Field(description="What it asks of each instance, as its tag says it. Of Infeasible.")
    ] = None
    most: Annotated[
        int | None,
        Field(description="The most that any pool of such instances has; 0 where there is none. Of Infeasible."),
    ] = None
    expansion: Annotated[
        str | None,
        Field(description="Why the manager makes no pool for it; empty: it makes none. Of Infeasible and CanNeverFit."),
    ] = None
    at_zero: Annotated[
        bool | None,
        Field(description="Whether there are such pools, and their caps are 0. Of Infeasible and CanNeverFit."),
    ] = None
    pools: Annotated[
        list[str] | None,
        Field(description="Where jobs are stopping (WaitsForRelease), or nothing more is started (Draining)."),
    ] = None
    victims: Annotated[list[str] | None, Field(description="The jobs that step aside for it. Of Preempts.")] = None
    shrinks: Annotated[
        list[str] | None,
        Field(description="The elastic jobs that give instances for it. Of Shrinks, and of Preempts where some do."),
    ] = None
    training_jobs: Annotated[
        list[str] | None, Field(description="Whose warm pools are being ended. Of EndsWarmPool.")
    ] = None
    job: Annotated[str | None, Field(description="The job before it. Of Behind and KeptForOther.")] = None
    jobs: Annotated[
        list[str] | None,
        Field(description="Whom it may not preempt yet (Protected), or has to wait for (WaitsForJobs)."),
    ] = None
    cause: Annotated[
        str | None,
        Field(
            description="What its last start met (BackingOff), what is wrong (PlanClosed), how its endpoint stands "
            "(NotInService)."
        ),
    ] = None
    share: Annotated[str | None, Field(description="Of ShareFull and BudgetSpent.")] = None
    user: Annotated[str | None, Field(description="Of UserFull.")] = None
    group: Annotated[str | None, Field(description="Of GroupFull.")] = None
    limit: Annotated[
        int | None, Field(description="Instances (ShareFull, UserFull) or jobs (GroupFull) at once, at most.")
    ] = None
    bound: Annotated[
        str | None, Field(description="Which of the share's bounds: borrow limit, cap or own units. Of ShareFull.")
    ] = None
    spent: Annotated[float | None, Field(description="In this period. Of BudgetSpent.")] = None
    budget: Annotated[float | None, Field(description="For one period. Of BudgetSpent.")] = None
    unit: Annotated[str | None, Field(description="GPU-hours or dollars. Of BudgetSpent.")] = None
    by: Annotated[str | None, Field(description="Who holds it. Of Held.")] = None
    until: Annotated[
        datetime | None,
        Field(
            description="When that ends at the latest; null where it is not known. Of WaitsForRelease, Preempts, "
            "Shrinks, EndsWarmPool, KeptForOther, Protected, PreemptsLater, BackingOff, BudgetSpent, PlanClosed, "
            "NotBefore."
        ),
    ] = None
