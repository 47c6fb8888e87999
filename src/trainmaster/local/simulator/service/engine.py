"""The simulated service as a state machine: operations, and the passing of time, change the state.

The time is an argument. Messages for the outside are left in `state.outbox`. The caller serializes all calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from trainmaster.local.simulator.service import ending, interruptions, lifecycle, rules, warm_pools
from trainmaster.local.simulator.service.demand import alternatives, market, worst_case
from trainmaster.local.simulator.service.job import Stage, TrainingJob, WarmPool
from trainmaster.local.simulator.service.profiles import Profile
from trainmaster.local.simulator.service.state import AccountState
from trainmaster.local.simulator.service.training_plans import Block, TrainingPlan, add_plan, check_plan, describe_plan
from trainmaster.local.simulator.wire.errors import in_use, invalid, not_found
from trainmaster.local.simulator.wire.listing import list_jobs
from trainmaster.local.simulator.wire.views import describe

Response = dict[str, Any]
Request = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Account:
    """The simulated account, and the error code for a training job that does not exist."""

    number: str = "111122223333"
    region: str = "us-east-1"
    not_found_code: str = "ValidationException"

    def arn(self, name: str, kind: str = "training-job") -> str:
        """Return the ARN of a training job, or of a resource of another kind."""
        return f"arn:aws:sagemaker:{self.region}:{self.number}:{kind}/{name}"


class Engine:
    """SageMaker's training operations.

    Args:
        state: the state of the account.
        account: its number and Region.
        profile_for: returns the profile of a request's job; may raise `ApiError`.
    """

    def __init__(self, state: AccountState, account: Account, profile_for: Callable[[Request], Profile]) -> None:
        self.state = state
        self.account = account
        self.profile_for = profile_for
        self.operations: dict[str, Callable[[Request, datetime], Response]] = {
            "CreateTrainingJob": self._create,
            "DescribeTrainingPlan": lambda request, now: describe_plan(self.state, request["TrainingPlanName"], now),
            "DescribeTrainingJob": lambda request, now: describe(self._find(request), now),
            "ListTrainingJobs": lambda request, now: list_jobs(self.state.jobs.values(), request, now),
            "StopTrainingJob": self._stop,
            "UpdateTrainingJob": self._update,
            "DeleteTrainingJob": self._delete,
            "AddTags": self._add_tags,
            "ListTags": self._list_tags,
            "DeleteTags": self._delete_tags,
        }

    def call(self, operation: str, request: Request, now: datetime) -> Response:
        """Carry out one operation. Raises `ApiError`, in which case nothing has changed."""
        answer = self.operations[operation](request, now)
        self._retry_waiting_jobs(now)
        return answer

    def next_time(self) -> datetime | None:
        """Return the time of the next timer; None without one."""
        return self.state.timers.next_time()

    def step(self, now: datetime) -> bool:
        """Run the first timer that is due; return False if none is."""
        due = self.state.timers.take_due(now)
        if due is None:
            return False
        time, action = due
        action(time)
        self._retry_waiting_jobs(time)
        return True

    def exited(self, name: str, run: int, failure: str | None, now: datetime) -> None:
        """Process the exit of a command; an exit that the job does not wait for has no effect."""
        job = self.state.jobs.get(name)
        if job is None or job.run != run:
            return
        if job.stage is Stage.TERMINATING:
            ending.script_stopped(self.state, job, now)
        elif job.stage is Stage.TRAINING:
            ending.script_exited(self.state, job, failure, now)
        self._retry_waiting_jobs(now)

    def add_plan(self, name: str, instance_type: str, count: int, blocks: tuple[Block, ...], now: datetime) -> str:
        """Add a training plan, and return its ARN."""
        plan = TrainingPlan(name, self.account.arn(name, "training-plan"), instance_type, count, tuple(sorted(blocks)))
        add_plan(self.state, plan, now)
        return plan.arn

    def interrupt(self, name: str, now: datetime) -> None:
        """Interrupt a spot job. Raises `ValueError` if it has no running instances."""
        interruptions.interrupt(self.state, self.state.jobs[name], now)
        self._retry_waiting_jobs(now)

    def fail(self, name: str, now: datetime) -> None:
        """End a run of a job's script with `InternalServerError`. Raises `ValueError` if it does not train."""
        job = self.state.jobs[name]
        if job.stage is not Stage.TRAINING:
            raise ValueError(f"{job.name} does not train: it is {job.stage}")
        lifecycle.internal_error(self.state, job, now)
        self._retry_waiting_jobs(now)

    def change_pace(self, name: str, pause_seconds: float, now: datetime) -> None:
        """Apply a change of a job's pace, after a pause."""
        lifecycle.change_pace(self.state, self.state.jobs[name], pause_seconds, now)

    def capacity_changed(self, now: datetime) -> None:
        """Retry the jobs that wait for capacity."""
        lifecycle.retry_waiting(self.state, now)

    def _retry_waiting_jobs(self, now: datetime) -> None:
        if self.state.capacity_changed:
            lifecycle.retry_waiting(self.state, now)

    def _create(self, request: Request, now: datetime) -> Response:
        name = request["TrainingJobName"]
        rules.check(request)
        check_plan(self.state, request, now)
        profile = self.profile_for(request)
        if name in self.state.jobs:
            raise in_use(self.account.arn(name))
        tags = {tag["Key"]: tag["Value"] for tag in request.get("Tags", [])}
        job = TrainingJob(name, self.account.arn(name), request, now, profile, tags, last_modified=now)
        self._charge_quotas(job, now)
        self.state.jobs[name] = job
        lifecycle.begin(self.state, job, now)
        return {"TrainingJobArn": job.arn}

    def _charge_quotas(self, job: TrainingJob, now: datetime) -> None:
        """Charge the job to the quotas, all or nothing; a matching warm pool is charged already."""
        keep_alive = job.request.get("ResourceConfig", {}).get("KeepAlivePeriodInSeconds", 0)
        units = worst_case(alternatives(job.request))
        pool = warm_pools.find_pool(self.state, job.request)
        if pool is None:
            self.state.quotas.check(units, market(job.request))
            if keep_alive:
                self.state.quotas.check_warm(units)
            self.state.quotas.charge(units, market(job.request))
            job.quota_units = units
        else:
            warm_pools.reuse(self.state, pool, job, now)
        if keep_alive:
            warm_pools.change_keep_alive(self.state, job, keep_alive, now)

    def _stop(self, request: Request, now: datetime) -> Response:
        interruptions.stop(self.state, self._find(request), now)
        return {}

    def _update(self, request: Request, now: datetime) -> Response:
        job = self._find(request)
        config = request.get("ResourceConfig")
        if config is not None:
            warm_pools.change_keep_alive(self.state, job, config["KeepAlivePeriodInSeconds"], now)
        return {"TrainingJobArn": job.arn}

    def _delete(self, request: Request, _now: datetime) -> Response:
        job = self._find(request)
        if not job.terminal or job.warm_pool is WarmPool.AVAILABLE:
            raise invalid(f"The request was rejected because the training job is in status {job.status}.")
        del self.state.jobs[job.name]
        return {}

    def _add_tags(self, request: Request, now: datetime) -> Response:
        job = self._find_arn(request)
        rules.check_tags(job.tags, request["Tags"])
        job.tags |= {tag["Key"]: tag["Value"] for tag in request["Tags"]}
        return self._list_tags(request, now)

    def _list_tags(self, request: Request, _now: datetime) -> Response:
        job = self._find_arn(request)
        return {"Tags": [{"Key": key, "Value": value} for key, value in job.tags.items()]}

    def _delete_tags(self, request: Request, _now: datetime) -> Response:
        job = self._find_arn(request)
        for key in request["TagKeys"]:
            job.tags.pop(key, None)
        return {}

    def _find(self, request: Request) -> TrainingJob:
        job = self.state.jobs.get(request["TrainingJobName"])
        if job is None:
            raise not_found(self.account.not_found_code)
        return job

    def _find_arn(self, request: Request) -> TrainingJob:
        name = request["ResourceArn"].rpartition("/")[2]
        job = self.state.jobs.get(name)
        if job is None or job.arn != request["ResourceArn"]:
            raise not_found(self.account.not_found_code)
        return job
