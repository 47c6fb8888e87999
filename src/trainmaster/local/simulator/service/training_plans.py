"""Training plans: capacity reserved for blocks of time, which SageMaker reclaims 30 minutes before each ends.

Sources: "Training plans utilization for SageMaker training jobs" and "View training plan details" (SageMaker developer
guide). They do not state the status of a job that ends with its plan: the simulator stops it. Not simulated: plans that
only an entry of `InstancePreferences` names, and limits on the time that a job may be pending in an active plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from trainmaster.local.simulator.service import interruptions
from trainmaster.local.simulator.service.ending import finish
from trainmaster.local.simulator.service.job import FAILED, STOPPED, Ending, Stage, TrainingJob
from trainmaster.local.simulator.service.state import AccountState
from trainmaster.local.simulator.wire.errors import invalid, not_found

RECLAIM_LEAD = timedelta(minutes=30)
PLAN_ENDED = Ending(STOPPED, STOPPED, "Training job stopped: the reserved capacity of its training plan ends")
NO_PLAN_CAPACITY = Ending(
    FAILED,
    FAILED,
    "Training job failed",
    "InsufficientCapacityError: The training plan has no capacity for this job.",
)

Block = tuple[datetime, datetime]
"""Start and end of one reserved capacity."""


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """A training plan for training jobs."""

    name: str
    arn: str
    instance_type: str
    count: int
    blocks: tuple[Block, ...]

    def status(self, now: datetime) -> str:
        """Return the `TrainingPlanStatus`; it is Scheduled again between two reserved capacities."""
        if now >= self.blocks[-1][1]:
            return "Expired"
        return "Active" if any(starts <= now < ends for starts, ends in self.blocks) else "Scheduled"


def add_plan(state: AccountState, plan: TrainingPlan, now: datetime) -> None:
    """Add a plan, and schedule its capacity."""
    state.plans[plan.arn] = plan
    state.ec2.set_capacity(plan.instance_type, 0, plan.arn)
    for starts, ends in plan.blocks:
        state.timers.at(max(starts, now), partial(_open, state, plan))
        state.timers.at(ends - RECLAIM_LEAD, partial(_reclaim, state, plan))


def check_plan(state: AccountState, request: Mapping[str, Any], now: datetime) -> None:
    """Raise `ApiError` if the request names a plan that cannot serve it."""
    config = request.get("ResourceConfig", {})
    arn = config.get("TrainingPlanArn")
    if arn is None:
        return
    plan: TrainingPlan | None = state.plans.get(arn)
    if plan is None:
        raise invalid(f"Training plan {arn} does not exist.")
    if plan.status(now) == "Expired":
        raise invalid("The training plan must be in the Scheduled or Active status.")
    if config.get("InstanceType") != plan.instance_type or config.get("InstanceCount", 0) > plan.count:
        raise invalid(f"The training plan has {plan.count} instances of {plan.instance_type}.")
    if request.get("EnableManagedSpotTraining"):
        raise invalid("A training plan cannot be used by managed spot training.")


def describe_plan(state: AccountState, name_or_arn: str, now: datetime) -> dict[str, Any]:
    """Return the DescribeTrainingPlan response. Raises `ApiError` if there is no such plan."""
    plan: TrainingPlan | None = next((p for p in state.plans.values() if name_or_arn in (p.arn, p.name)), None)
    if plan is None:
        raise not_found("ResourceNotFound")
    status = plan.status(now)
    in_use = state.ec2.running(plan.instance_type, plan.arn)
    capacities = [_capacity(plan, index, now) for index in range(len(plan.blocks))]
    hours = sum((ends - starts for starts, ends in plan.blocks), timedelta()) // timedelta(hours=1)
    return {
        "TrainingPlanArn": plan.arn,
        "TrainingPlanName": plan.name,
        "Status": status,
        "DurationHours": hours,
        "StartTime": plan.blocks[0][0],
        "EndTime": plan.blocks[-1][1],
        "TotalInstanceCount": plan.count,
        "AvailableInstanceCount": plan.count - in_use if status == "Active" else 0,
        "InUseInstanceCount": in_use,
        "TargetResources": ["training-job"],
        "ReservedCapacitySummaries": capacities,
    }


def _capacity(plan: TrainingPlan, index: int, now: datetime) -> dict[str, Any]:
    starts, ends = plan.blocks[index]
    return {
        "ReservedCapacityArn": plan.arn.replace("training-plan/", "reserved-capacity/") + f"-{index}",
        "InstanceType": plan.instance_type,
        "TotalInstanceCount": plan.count,
        "Status": "Scheduled" if now < starts else "Active" if now < ends else "Expired",
        "StartTime": starts,
        "EndTime": ends,
    }


def _open(state: AccountState, plan: TrainingPlan, _now: datetime) -> None:
    state.ec2.set_capacity(plan.instance_type, plan.count, plan.arn)
    state.capacity_changed = True


def _reclaim(state: AccountState, plan: TrainingPlan, now: datetime) -> None:
    """Reclaim the plan's instances; jobs wait for the next reserved capacity, or end with the last."""
    state.ec2.set_capacity(plan.instance_type, 0, plan.arn)
    last = now >= plan.blocks[-1][1] - RECLAIM_LEAD
    for job in [job for job in state.jobs.values() if job.market == plan.arn and not job.terminal]:
        if job.status == "Stopping" or job.stage is Stage.UPLOADING:
            continue
        if job.instances and last:
            interruptions.end(state, job, PLAN_ENDED, now)
        elif job.instances:
            interruptions.lose_instances(state, job, "Pending", "Training job waiting for capacity", now)
        elif last:
            _give_up(state, job, now)


def _give_up(state: AccountState, job: TrainingJob, now: datetime) -> None:
    job.ending = NO_PLAN_CAPACITY
    finish(state, job, now)
