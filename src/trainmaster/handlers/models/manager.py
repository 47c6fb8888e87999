"""API models of the manager's state: its pause, and comparisons of the table with SageMaker."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from trainmaster.domain.restore import MAX_LISTED, DifferenceKind
from trainmaster.handlers.models.base import RequestModel, ResponseModel


class PauseRequest(RequestModel):
    """Request to pause the manager."""

    reason: Annotated[str, Field(min_length=1, max_length=256, description="For people who meet the pause.")]


class RestoreRequest(RequestModel):
    """Request to compare the table with SageMaker."""

    adopt: Annotated[bool, Field(description="Whether to adopt the differences, not only to list them.")] = False


class ManagerPause(ResponseModel):
    """A pause of the manager."""

    reason: str
    by: Annotated[str, Field(description="Role or user that paused it; empty if unknown.")]
    at: datetime


class RestoreDifference(ResponseModel):
    """A difference between the table and SageMaker."""

    job: str
    training_job: str
    kind: Annotated[
        DifferenceKind,
        Field(
            description=(
                "ended: the job is active in the table, and its training job has ended. newer: SageMaker has a later "
                "attempt of the job. lost: the table does not have the job of a training job. surplus: the job has "
                "ended in the table, and its training job is open."
            )
        ),
    ]
    stored: Annotated[str, Field(description="State of the job in the table; empty if it is not there.")]
    status: Annotated[str, Field(description="`TrainingJobStatus`; empty if SageMaker does not know it.")]
    action: Annotated[str, Field(description="What an adoption does.")]


class RestoreReport(ResponseModel):
    """A comparison of the table with SageMaker."""

    asked_at: datetime
    asked_by: Annotated[str, Field(description="Role or user that asked for it; empty if unknown.")]
    adopt: bool
    compared_at: Annotated[datetime | None, Field(description="Null until the manager has compared.")]
    differences: Annotated[list[RestoreDifference], Field(description=f"The first {MAX_LISTED}.")]
    left_out: Annotated[int, Field(description="Number of further differences; an adoption includes them.")]
    adopted: Annotated[list[str], Field(description=f"Jobs that were changed, the first {MAX_LISTED}.")]
    failed: Annotated[
        list[str], Field(description=f"Jobs that could not be changed, each with the reason, the first {MAX_LISTED}.")
    ]


class ManagerState(ResponseModel):
    """The state of the manager."""

    pause: ManagerPause | None
    restore: Annotated[RestoreReport | None, Field(description="The newest comparison; null if there was none.")]
