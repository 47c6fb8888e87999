"""Requests that SageMaker or the queue would refuse although every field is well formed.

Each rule cites its source, and none rejects a request that SageMaker accepts. A problem found here is a 400 at once;
SageMaker would report it only after the job has waited in the queue. `resources` checks instances, `tags` checks tags.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from trainmaster.domain.jobs.names import STAMP
from trainmaster.domain.requests.fields import Problem, entries, part, repeated, shown, text, whole
from trainmaster.domain.requests.resources import CONFIG, GROUPS, PREFERENCES, resource_problems

Object = Mapping[str, object]

DEFAULT_RUNTIME = 86_400
"""Seconds: `MaxRuntimeInSeconds` where a request has none (StoppingCondition, API reference)."""
MAX_RUNTIME = 28 * 86_400
"""Seconds: the most that SageMaker takes (StoppingCondition, API reference)."""
_CHANNELS = "InputDataConfig"
_KEEP_ALIVE = f"{CONFIG}.KeepAlivePeriodInSeconds"
_MAX_WAIT = "StoppingCondition.MaxWaitTimeInSeconds"


def meaning_problems(request: Object) -> list[Problem]:
    """Return everything that SageMaker or the queue would refuse beside form and tags, resources first.

    A serverless job has that one problem only: the other rules are about jobs with instances.
    """
    found = resource_problems(request)
    if request.get("ServerlessJobConfig") is not None:
        return found
    rules = (_name, _algorithm, _runtime, _spot, _not_spot, _heterogeneous, _channel_names, _channel_groups)
    return [*found, *(problem for rule in rules for problem in rule(request))]


def _name(request: Object) -> Iterator[Problem]:
    if STAMP in (text(request, "TrainingJobName") or ""):
        yield Problem(
            "TrainingJobName",
            f"The name contains '{STAMP}', which the queue uses in the names of later attempts.",
            "Choose a name without it.",
        )


def _algorithm(request: Object) -> Iterator[Problem]:
    """Require one of image and algorithm (AlgorithmSpecification, API reference), except for serverless jobs."""
    field = "AlgorithmSpecification"
    specification = part(request, field)
    given = [name for name in ("TrainingImage", "AlgorithmName") if specification.get(name) is not None]
    hint = f"Specify either {field}.TrainingImage or {field}.AlgorithmName."
    if not given:
        yield Problem(field, "The request names neither a training image nor an algorithm.", hint)
    elif len(given) > 1:
        wrong = "TrainingImage and AlgorithmName cannot be specified together."
        yield Problem(f"{field}.AlgorithmName", wrong, hint)


def _runtime(request: Object) -> Iterator[Problem]:
    runtime = whole(part(request, "StoppingCondition"), "MaxRuntimeInSeconds")
    if runtime is not None and runtime > MAX_RUNTIME:
        yield Problem(
            "StoppingCondition.MaxRuntimeInSeconds",
            f"MaxRuntimeInSeconds is {shown(runtime)}, longer than 28 days.",
            f"Specify at most {MAX_RUNTIME}.",
        )


def _spot(request: Object) -> Iterator[Problem]:
    """Check spot jobs (developer guide: managed spot training, warm pools, instance preference lists)."""
    if request.get("EnableManagedSpotTraining") is not True:
        return
    config = part(request, CONFIG)
    if whole(config, "KeepAlivePeriodInSeconds"):
        yield Problem(
            _KEEP_ALIVE,
            "A warm pool cannot be kept after a spot job.",
            "Omit KeepAlivePeriodInSeconds, or set EnableManagedSpotTraining to false.",
        )
    if entries(config, PREFERENCES):
        yield Problem(
            f"{CONFIG}.{PREFERENCES}",
            f"{PREFERENCES} cannot be combined with managed spot training.",
            f"Set EnableManagedSpotTraining to false, or give one InstanceType instead of {PREFERENCES}.",
        )
    yield from _spot_wait(part(request, "StoppingCondition"))


def _spot_wait(condition: Object) -> Iterator[Problem]:
    runtime = whole(condition, "MaxRuntimeInSeconds")
    wait = whole(condition, "MaxWaitTimeInSeconds")
    needed = DEFAULT_RUNTIME if runtime is None else runtime
    source = "MaxRuntimeInSeconds" if runtime is not None else "SageMaker's default for MaxRuntimeInSeconds"
    if wait is None:
        wrong = "A spot job needs MaxWaitTimeInSeconds."
    elif wait < needed:
        wrong = f"MaxWaitTimeInSeconds is {shown(wait)}, less than {source}, {shown(needed)}."
    else:
        return
    yield Problem(_MAX_WAIT, wrong, f"Specify at least {shown(needed)}: it counts waiting and running together.")


def _not_spot(request: Object) -> Iterator[Problem]:
    """Refuse a waiting time without spot, as SageMaker does (aws/amazon-sagemaker-examples, issue 869)."""
    wait = part(request, "StoppingCondition").get("MaxWaitTimeInSeconds")
    if wait is not None and request.get("EnableManagedSpotTraining") is not True:
        yield Problem(
            _MAX_WAIT,
            "MaxWaitTimeInSeconds is for spot jobs only.",
            "Omit it, or set EnableManagedSpotTraining to true.",
        )


def _heterogeneous(request: Object) -> Iterator[Problem]:
    """Refuse a warm pool after instance groups (developer guide: warm pools, considerations)."""
    config = part(request, CONFIG)
    if entries(config, GROUPS) and whole(config, "KeepAlivePeriodInSeconds"):
        yield Problem(
            _KEEP_ALIVE,
            f"A warm pool cannot be kept after a job with {GROUPS}.",
            "Omit KeepAlivePeriodInSeconds.",
        )


def _channel_names(request: Object) -> Iterator[Problem]:
    channels = entries(request, _CHANNELS)
    for index in repeated(text(channel, "ChannelName") for channel in channels):
        yield Problem(
            f"{_CHANNELS}[{index}].ChannelName",
            f"The channel {shown(channels[index].get('ChannelName'))} appears twice.",
            "Give each channel a unique name.",
        )


def _channel_groups(request: Object) -> Iterator[Problem]:
    """Require that channels name existing groups, and all or none do (aws/sagemaker-python-sdk, issue 6089)."""
    known = {text(group, "InstanceGroupName") for group in entries(part(request, CONFIG), GROUPS)}
    assigned = [_groups_of(channel) for channel in entries(request, _CHANNELS)]
    for index, names in enumerate(assigned):
        field = f"{_CHANNELS}[{index}].DataSource.S3DataSource.InstanceGroupNames"
        for name in names:
            if not isinstance(name, str) or name not in known:
                yield Problem(field, f"There is no instance group {shown(name)}.", f"Name groups of {CONFIG}.{GROUPS}.")
        if not names and any(assigned):
            yield Problem(
                field,
                "This channel is assigned to no instance group, while another one is.",
                "Assign every channel to instance groups, or none.",
            )


def _groups_of(channel: Object) -> Sequence[object]:
    names = part(channel, "DataSource", "S3DataSource").get("InstanceGroupNames")
    return names if isinstance(names, list | tuple) else ()
