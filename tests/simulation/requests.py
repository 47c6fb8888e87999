"""The requests of submitted jobs, and the pools of a configuration."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from elastic_world import elastic_request
from simulation.acts import PLAN, SPOT, Submit
from simulation.story import Configuration, Pools
from trainmaster.domain.capacity.units import Kind, Pool
from world import a_request

PLAN_ARN = f"arn:aws:sagemaker:us-east-1:111122223333:training-plan/{PLAN}"


def request_of(submit: Submit, epoch: datetime) -> dict[str, Any]:
    """Return the CreateTrainingJob request that the act submits."""
    variables: dict[str, Any] = {"training_seconds": submit.seconds}
    if submit.outcome != "completed":
        variables["outcome"] = submit.outcome
    if submit.internal_errors:
        variables["internal_errors"] = submit.internal_errors
    named: dict[str, Any] = {"priority": submit.priority, "kind": submit.instance_type, **variables}
    if submit.hook:
        request = elastic_request(
            submit.name, submit.hook, min_instances=submit.least, max_instances=submit.most, **named
        )
    else:
        request = a_request(submit.name, count=submit.count, **named)
    _with_resources(request, submit)
    if not submit.checkpoints:
        del request["CheckpointConfig"]
    if submit.spot:
        request["EnableManagedSpotTraining"] = True
        request["StoppingCondition"]["MaxWaitTimeInSeconds"] = 172_800
    if submit.max_pending:
        request["StoppingCondition"]["MaxPendingTimeInSeconds"] = submit.max_pending
    options = dict(submit.options)
    if submit.not_before:
        options["not-before"] = (epoch + timedelta(seconds=submit.not_before)).strftime("%Y-%m-%dT%H:%M:%SZ")
    request["Tags"] += [{"Key": f"trainmaster:{key}", "Value": value} for key, value in options.items()]
    return request


def _with_resources(request: dict[str, Any], submit: Submit) -> None:
    config = request["ResourceConfig"]
    if submit.keep_alive:
        config["KeepAlivePeriodInSeconds"] = submit.keep_alive
    if submit.plan:
        config["TrainingPlanArn"] = PLAN_ARN
    if submit.groups:
        sizes = ((config.pop("InstanceType"), config.pop("InstanceCount")), *submit.groups)
        config["InstanceGroups"] = [
            {"InstanceGroupName": f"group{index}", "InstanceType": kind, "InstanceCount": count}
            for index, (kind, count) in enumerate(sizes)
        ]
    if submit.preferences:
        types = (config.pop("InstanceType"), *submit.preferences)
        config["InstancePreferences"] = [{"InstanceType": kind} for kind in types]


def pool_of(pool: Pools, configuration: Configuration) -> Pool:
    """Return the queue's pool."""
    if pool.name == PLAN:
        type_ = configuration.pools[0].name
        return Pool(PLAN, pool.cap, type_=type_, kind=Kind.TRAINING_PLAN, plan_arn=PLAN_ARN)
    if pool.name.endswith(SPOT):
        return Pool(pool.name, pool.cap, type_=pool.name.removesuffix(SPOT), kind=Kind.SPOT)
    return Pool(pool.name, pool.cap, count_external=pool.count_external)
