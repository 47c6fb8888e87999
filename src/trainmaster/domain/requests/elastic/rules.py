"""Restrictions on the request of an elastic job beside its options, and warnings about it.

They depend on the hook that resizes it: see `elastic.sizes.Hook`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta

from trainmaster.domain.capacity.units import Demand, Kind, Pool
from trainmaster.domain.elastic.sizes import Elastic, Hook, RestartBudget
from trainmaster.domain.requests.elastic.bounds import sizes_shown
from trainmaster.domain.requests.fields import Problem, entries, part, shown, text, whole
from trainmaster.domain.requests.resources import CONFIG, GROUPS, PREFERENCES
from trainmaster.domain.requests.tag_names import OPTION_PREFIX
from trainmaster.domain.requests.tags import gives, option_field

Object = Mapping[str, object]

STOP_SECONDS = 120
"""From SIGTERM to SIGKILL when a training job is stopped (developer guide, StopTrainingJob)."""
MAX_ENVIRONMENT = 100
"""Environment variables that SageMaker takes (CreateTrainingJob, `Environment`)."""
OWN_ENVIRONMENT = 16
"""As many the queue keeps for itself in an elastic job's containers."""
_PLACEMENT = "InstancePlacementConfig"
_BY_MEMBERS = f"A job with '{OPTION_PREFIX}resize-by' = 'members'"
_OTHER_WAY = f"or resize it by '{Hook.RESTART}'"
_ONE_GROUP = "allows all inbound traffic from itself (a rule whose source is the same group)"


def form_problems(request: Object, elastic: Elastic) -> Iterator[Problem]:
    """Yield everything that the request of an elastic job must not contain."""
    yield from _instances(request)
    environment = part(request, "Environment")
    if len(environment) > (limit := MAX_ENVIRONMENT - OWN_ENVIRONMENT):
        wrong = f"There are {len(environment)} environment variables; an elastic job may have {limit}."
        hint = f"Remove some: SageMaker allows {MAX_ENVIRONMENT}, and the queue adds its own."
        yield Problem("Environment", wrong, hint)
    if elastic.hook is Hook.MEMBERS:
        yield from _members(request)


def check_pools(request: Object, elastic: Elastic, demand: Demand, pools: Mapping[str, Pool]) -> None:
    """Refuse pools that an elastic job cannot be resized in. Raises `InvalidRequest`."""
    spot = [name for name in demand.pools if name in pools and pools[name].kind is Kind.SPOT]
    if elastic.hook is Hook.MEMBERS and spot:
        raise _spot(option_field(request, "pools"), f"The pool {spot[0]} is a spot pool.").refusal()


def elastic_warnings(request: Object, elastic: Elastic, demand: Demand, pools: Mapping[str, Pool]) -> list[str]:
    """Return warnings for the submitter, the most serious first."""
    own = {Hook.RESTART: _restart_advice, Hook.MEMBERS: _members_advice}.get(elastic.hook)
    return [*(own(request, elastic) if own else ()), *_budget_advice(elastic), *_size_advice(elastic, demand, pools)]


def _instances(request: Object) -> Iterator[Problem]:
    """Yield problems if the instances are not all alike and of one pool."""
    config = part(request, CONFIG)
    hint = "Specify one InstanceType and InstanceCount, or remove the options that make the job elastic."
    if entries(config, GROUPS):
        yield Problem(f"{CONFIG}.{GROUPS}", f"A job with {GROUPS} cannot be resized.", hint)
    if entries(config, PREFERENCES) and not gives(request, "resources"):
        wrong = f"SageMaker chooses among {PREFERENCES}, so the queue cannot add instances of the same type."
        other = f"Specify one InstanceType, several pools in '{OPTION_PREFIX}pools', or '{OPTION_PREFIX}resources'."
        yield Problem(f"{CONFIG}.{PREFERENCES}", wrong, other)
    if part(config, _PLACEMENT):
        wrong = f"{_PLACEMENT} places a fixed number of instances, so the job cannot be resized."
        yield Problem(
            f"{CONFIG}.{_PLACEMENT}", wrong, f"Omit {_PLACEMENT}, or remove the options that make the job elastic."
        )


def _members(request: Object) -> Iterator[Problem]:
    network = part(request, "VpcConfig")
    missing = [name for name in ("Subnets", "SecurityGroupIds") if not network.get(name)]
    if missing:
        field = "VpcConfig" if not network else f"VpcConfig.{missing[0]}"
        wrong = f"{_BY_MEMBERS} runs as several training jobs, which can reach each other only inside your VPC."
        hint = (
            f"Specify VpcConfig with Subnets (one, for EFA) and SecurityGroupIds, a group that {_ONE_GROUP}, "
            f"{_OTHER_WAY}."
        )
        yield Problem(field, wrong, hint)
    if request.get("EnableNetworkIsolation") is True:
        wrong = f"{_BY_MEMBERS} requires network access: its containers connect to DynamoDB and to each other."
        yield Problem("EnableNetworkIsolation", wrong, f"Set EnableNetworkIsolation to false, {_OTHER_WAY}.")
    if request.get("EnableManagedSpotTraining") is True:
        yield _spot("EnableManagedSpotTraining", "This is a spot job.")


def _spot(field: str, wrong: str) -> Problem:
    """Return the problem that elastic jobs resized by members cannot use spot instances.

    HyperPod elastic training has the same limitation (developer guide, "Elastic training", limitations). An interrupted
    training job keeps its place while SageMaker looks for other instances, so the queue could not tell lost capacity
    from working capacity. If the base is interrupted, all members wait and cost money.
    """
    why = "SageMaker can reclaim the instances of one of its training jobs while the others wait for it."
    hint = f"Run it on demand, {_OTHER_WAY}: then the whole job is interrupted and resumes."
    return Problem(field, f"{wrong} {_BY_MEMBERS} cannot run on spot instances: {why}", hint)


def _restart_advice(request: Object, elastic: Elastic) -> Iterator[str]:
    if not text(part(request, "CheckpointConfig"), "S3Uri"):
        yield (
            "Every resize stops and restarts this job, which has no CheckpointConfig, so it would start over each "
            "time: set CheckpointConfig.S3Uri and save checkpoints."
        )
    if elastic.graceful_shutdown_timeout > timedelta(seconds=STOP_SECONDS) and gives(
        request, "graceful-shutdown-timeout"
    ):
        yield (
            f"SageMaker ends a container {STOP_SECONDS} seconds after it was asked to stop, whatever "
            f"'{OPTION_PREFIX}graceful-shutdown-timeout' says: save a checkpoint within that time, or more often."
        )


def _members_advice(request: Object, _: Elastic) -> Iterator[str]:
    network = part(request, "VpcConfig")
    if text(part(request, "CheckpointConfig"), "S3Uri"):
        yield (
            "SageMaker syncs checkpoints only for this job's base, not for its members: let one rank write "
            "checkpoints, and let members read them from S3, a shared file system, or that rank."
        )
    for index, channel in enumerate(entries(request, "InputDataConfig")):
        if text(part(channel, "DataSource", "S3DataSource"), "S3DataDistributionType") == "ShardedByS3Key":
            yield (
                f"InputDataConfig[{index}] is ShardedByS3Key: each instance of the base receives a shard, but every "
                "member receives all data. Use FullyReplicated, and divide the data by rank."
            )
    if request.get("EnableInterContainerTrafficEncryption") is True:
        yield "EnableInterContainerTrafficEncryption encrypts traffic within one training job, not between members."
    if len(network.get("Subnets") or ()) > 1:  # type: ignore[arg-type]  # the service model has checked it
        yield (
            "This job's members may be in different subnets, which EFA does not support, and traffic between zones "
            "is slower: specify one subnet in VpcConfig.Subnets."
        )
    yield from _clocks(request)


def _clocks(request: Object) -> Iterator[str]:
    runtime = whole(part(request, "StoppingCondition"), "MaxRuntimeInSeconds")
    if runtime is not None:
        yield (
            f"MaxRuntimeInSeconds ({shown(runtime)}) applies to each member from its own start: a job that runs "
            "longer loses its base first, and ends with it."
        )


def _budget_advice(elastic: Elastic) -> Iterator[str]:
    if elastic.hook is not Hook.MEMBERS and elastic.budget != RestartBudget():
        yield (
            f"Restarts are counted in the rendezvous, so this job's limits on them have no effect unless "
            f"'{OPTION_PREFIX}resize-by' is 'members': limit new attempts with '{OPTION_PREFIX}retry-algorithm'."
        )


def _size_advice(elastic: Elastic, demand: Demand, pools: Mapping[str, Pool]) -> Iterator[str]:
    caps = [pools[name].cap for name in demand.pools if name in pools]
    if len(elastic.sizes) == 1:
        yield f"This job has one size only, {elastic.min_instances}: it is never resized."
    elif caps and max(caps) < elastic.max_instances and demand.resources is None:
        reached = elastic.at_most(max(caps))
        yield f"Only sizes up to {reached} of {sizes_shown(elastic)} fit into the pool, whose cap is {max(caps)}."
