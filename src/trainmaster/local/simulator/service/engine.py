"""The simulated service as a state machine: each operation, and the passing of time, changes the world.

Time is an argument everywhere and nothing here speaks to anybody: what the outside must learn is in
`world.outbox`. It must not lock: `simulator` lets one caller in at a time.
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
from trainmaster.local.simulator.service.state import World
from trainmaster.local.simulator.service.training_plans import Block, TrainingPlan, add_plan, check_plan, describe_plan
from trainmaster.local.simulator.wire.errors import in_use, invalid, not_found
from trainmaster.local.simulator.wire.listing import list_jobs
from trainmaster.local.simulator.wire.views import describe

Answer = dict[str, Any]
Request = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Account:
    """Whose training jobs these are, and what SageMaker answers for one that does not exist."""

    number: str = "111122223333"
    region: str = "us-east-1"
    missing: str = "ValidationException"

    def arn(self, name: str, kind: str = "training-job") -> str:
        """The ARN of a training job, or of something of another kind."""
        return f"arn:aws:sagemaker:{self.region}:{self.number}:{kind}/{name}"


class Engine:
    """SageMaker's training operations.

    Args:
        world: the state; shared with nobody else.
        account: whose it is.
        profile_for: the script that a request's job follows; may raise `ApiError`.
    """

    def __init__(self, world: World, account: Account, profile_for: Callable[[Request], Profile]) -> None:
        self.world = world
        self.account = account
        self._profile_for = profile_for
        self.operations: dict[str, Callable[[Request, datetime], Answer]] = {
            "CreateTrainingJob": self._create,
            "DescribeTrainingPlan": lambda request, now: describe_plan(self.world, request["TrainingPlanName"], now),
            "DescribeTrainingJob": lambda request, now: describe(self._find(request), now),
            "ListTrainingJobs": lambda request, now: list_jobs(self.world.jobs.values(), request, now),
            "StopTrainingJob": self._stop,
            "UpdateTrainingJob": self._update,
            "DeleteTrainingJob": self._delete,
            "AddTags": self._add_tags,
            "ListTags": self._list_tags,
            "DeleteTags": self._delete_tags,
        }

    def call(self, operation: str, request: Request, now: datetime) -> Answer:
        """Carry out one operation. Raises `ApiError`; then nothing has changed."""
        answer = self.operations[operation](request, now)
        self._settle(now)
        return answer

    def next_time(self) -> datetime | None:
        """When something is due; None where nothing is."""
        return self.world.agenda.next_time()

    def step(self, now: datetime) -> bool:
        """Do the first thing that is due by now; False where nothing is."""
        due = self.world.agenda.take_due(now)
        if due is None:
            return False
        time, action = due
        action(time)
        self._settle(time)
        return True

    def exited(self, name: str, run: int, failure: str | None, now: datetime) -> None:
        """A real command has ended. One that nobody waits for any longer changes nothing."""
        job = self.world.jobs.get(name)
        if job is None or job.run != run:
            return
        if job.stage is Stage.TERMINATING:
            ending.script_stopped(self.world, job, now)
        elif job.stage is Stage.TRAINING:
            ending.exited(self.world, job, failure, now)
        self._settle(now)

    def add_plan(self, name: str, instance_type: str, count: int, blocks: tuple[Block, ...], now: datetime) -> str:
        """Somebody buys a training plan; returns its ARN."""
        plan = TrainingPlan(name, self.account.arn(name, "training-plan"), instance_type, count, tuple(sorted(blocks)))
        add_plan(self.world, plan, now)
        return plan.arn

    def interrupt(self, name: str, now: datetime) -> None:
        """EC2 takes a spot job's instances back. Raises `ValueError` where it has none at work."""
        interruptions.interrupt(self.world, self.world.jobs[name], now)
        self._settle(now)

    def repace(self, name: str, pause_seconds: float, now: datetime) -> None:
        """A job's pace may have changed: it pauses, then goes on at the new one."""
        lifecycle.repace(self.world, self.world.jobs[name], pause_seconds, now)

    def capacity_changed(self, now: datetime) -> None:
        """EC2 may have something for those that wait."""
        lifecycle.retry_waiting(self.world, now)

    def _settle(self, now: datetime) -> None:
        if self.world.freed:
            lifecycle.retry_waiting(self.world, now)

    def _create(self, request: Request, now: datetime) -> Answer:
        name = request["TrainingJobName"]
        rules.check(request)
        check_plan(self.world, request, now)
        profile = self._profile_for(request)
        if name in self.world.jobs:
            raise in_use(self.account.arn(name))
        tags = {tag["Key"]: tag["Value"] for tag in request.get("Tags", [])}
        job = TrainingJob(name, self.account.arn(name), request, now, profile, tags, last_modified=now)
        self._charge(job, now)
        self.world.jobs[name] = job
        lifecycle.begin(self.world, job, now)
        return {"TrainingJobArn": job.arn}

    def _charge(self, job: TrainingJob, now: datetime) -> None:
        """Count the job against the quotas, all or nothing; a warm pool that it matches counts already."""
        keep_alive = job.request.get("ResourceConfig", {}).get("KeepAlivePeriodInSeconds", 0)
        units = worst_case(alternatives(job.request))
        pool = warm_pools.find_pool(self.world, job.request)
        if pool is None:
            self.world.quotas.check(units, market(job.request))
            if keep_alive:
                self.world.quotas.check_warm(units)
            self.world.quotas.take(units, market(job.request))
            job.charge = units
        else:
            warm_pools.reuse(self.world, pool, job, now)
        if keep_alive:
            warm_pools.change_keep_alive(self.world, job, keep_alive, now)

    def _stop(self, request: Request, now: datetime) -> Answer:
        interruptions.stop(self.world, self._find(request), now)
        return {}

    def _update(self, request: Request, now: datetime) -> Answer:
        job = self._find(request)
        config = request.get("ResourceConfig")
        if config is not None:
            warm_pools.change_keep_alive(self.world, job, config["KeepAlivePeriodInSeconds"], now)
        return {"TrainingJobArn": job.arn}

    def _delete(self, request: Request, _now: datetime) -> Answer:
        job = self._find(request)
        if not job.terminal or job.warm_pool is WarmPool.AVAILABLE:
            raise invalid(f"The request was rejected because the training job is in status {job.status}.")
        del self.world.jobs[job.name]
        return {}

    def _add_tags(self, request: Request, now: datetime) -> Answer:
        job = self._find_arn(request)
        rules.check_tags(job.tags, request["Tags"])
        job.tags |= {tag["Key"]: tag["Value"] for tag in request["Tags"]}
        return self._list_tags(request, now)

    def _list_tags(self, request: Request, _now: datetime) -> Answer:
        job = self._find_arn(request)
        return {"Tags": [{"Key": key, "Value": value} for key, value in job.tags.items()]}

    def _delete_tags(self, request: Request, _now: datetime) -> Answer:
        job = self._find_arn(request)
        for key in request["TagKeys"]:
            job.tags.pop(key, None)
        return {}

    def _find(self, request: Request) -> TrainingJob:
        job = self.world.jobs.get(request["TrainingJobName"])
        if job is None:
            raise not_found(self.account.missing)
        return job

    def _find_arn(self, request: Request) -> TrainingJob:
        name = request["ResourceArn"].rpartition("/")[2]
        job = self.world.jobs.get(name)
        if job is None or job.arn != request["ResourceArn"]:
            raise not_found(self.account.missing)
        return job
