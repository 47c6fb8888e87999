"""The settings of a SageMaker that misbehaves as AWS's documentation permits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self


PROBABILITIES = (
    "failed_calls", "lost_answers", "late_creates", "capacity_errors", "internal_errors", "stuck_stops",
    "refuse_repeated_stops",
)  # fmt: skip
AMOUNTS = (
    "describe_lag", "list_lag", "tags_lag", "late_seconds", "capacity_error_seconds", "stuck_seconds",
    "spot_interruptions",
)  # fmt: skip
LIMITED_OPERATIONS = frozenset({
    "CreateTrainingJob", "DescribeTrainingJob", "StopTrainingJob", "ListTrainingJobs", "ListTags",
    "UpdateTrainingJob", "DescribeTrainingPlan", "DeleteTrainingJob", "AddTags", "DeleteTags",
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Hostility:
    """The misbehavior of a simulated SageMaker; the defaults have none.

    Attributes:
        describe_lag: maximum seconds by which an answer of DescribeTrainingJob lags behind. Each call draws its own
            lag, so a later answer may be older. A training job younger than the lag is not found.
        list_lag: the same for ListTrainingJobs, which omits younger training jobs.
        tags_lag: the same for ListTags. A younger training job is not found, or has no tags.
        failed_calls: probability that a call fails without effect.
        lost_answers: probability that a call takes effect and its answer is lost.
        late_creates: probability that the answer of a CreateTrainingJob is lost and the call takes effect later, unless
            the service then refuses it.
        late_seconds: maximum delay of such a call.
        capacity_errors: probability that an accepted training job gets no instances and fails with `CapacityError`.
        capacity_error_seconds: seconds from the request to that failure.
        internal_errors: probability that a run of a script ends with `InternalServerError`.
        stuck_stops: probability that a stopping training job stays Stopping for long.
        stuck_seconds: duration of that stop.
        refuse_repeated_stops: probability that the stop of a training job that is Stopping is refused.
        spot_interruptions: expected interruptions per hour of a running spot job.
        clock_offset: seconds by which SageMaker's clock is ahead, below 0 if it is behind.
        rates: calls per second by operation.

    Raises `ValueError` for a value outside its range, and for an unknown operation.
    """

    describe_lag: float = 0
    list_lag: float = 0
    tags_lag: float = 0
    failed_calls: float = 0
    lost_answers: float = 0
    late_creates: float = 0
    late_seconds: float = 0
    capacity_errors: float = 0
    capacity_error_seconds: float = 0
    internal_errors: float = 0
    stuck_stops: float = 0
    stuck_seconds: float = 0
    refuse_repeated_stops: float = 0
    spot_interruptions: float = 0
    clock_offset: float = 0
    rates: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in PROBABILITIES:
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be a probability, from 0 to 1")
        for name in AMOUNTS:
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must be at least 0")
        for operation, rate in self.rates.items():
            if operation not in LIMITED_OPERATIONS or not rate > 0:
                raise ValueError(f"rates: {operation}={rate} is not an operation with a rate above 0")

    @property
    def max_lag(self) -> float:
        """The largest lag of any read, in seconds."""
        return max(self.describe_lag, self.list_lag, self.tags_lag)

    @classmethod
    def moderate(cls) -> Self:
        """Return the misbehavior of a bad day, with which a queue still makes progress."""
        return cls(
            describe_lag=5,
            list_lag=20,
            tags_lag=10,
            failed_calls=0.02,
            lost_answers=0.02,
            late_creates=0.02,
            late_seconds=20,
            capacity_errors=0.03,
            capacity_error_seconds=120,
            internal_errors=0.02,
            stuck_stops=0.05,
            stuck_seconds=180,
            refuse_repeated_stops=0.5,
            spot_interruptions=1,
            clock_offset=3,
            rates={"CreateTrainingJob": 5, "DescribeTrainingJob": 10, "StopTrainingJob": 5, "UpdateTrainingJob": 5},
        )
