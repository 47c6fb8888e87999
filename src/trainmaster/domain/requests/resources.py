"""Instances that a request asks for, in the three forms that SageMaker has, or by their resources.

A request with the tag `trainmaster:resources` needs no such form: types that it lists are preferences. The rules of
`InstancePreferences` are those of the developer guide, "Instance preference lists for training jobs".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from trainmaster.domain.capacity.units import total
from trainmaster.domain.policy.declaration import MAX_COUNT
from trainmaster.domain.requests.fields import Problem, entries, part, repeated, shown, text, whole
from trainmaster.domain.requests.tag_names import OPTION_PREFIX, RESOURCES_TAG
from trainmaster.domain.requests.tags import gives, option_in

CONFIG = "ResourceConfig"
GROUPS = "InstanceGroups"
PREFERENCES = "InstancePreferences"
_TYPE = "InstanceType"
_COUNT = "InstanceCount"
_PLAN = "TrainingPlanArn"
_INSTANCES = f"{OPTION_PREFIX}instances"
_READ_ONLY = ("SelectedInstanceType", "SelectedInstanceCount")

Object = Mapping[str, object]


def demand_of(request: Object) -> tuple[dict[str, int], ...]:
    """Return the instances by type that the job needs: any one alternative, and all of that one.

    A plain request and one with `InstanceGroups` give one alternative (groups of one type add up),
    `InstancePreferences` one for each entry, in the request's order; a request by resources gives the types that it
    lists, perhaps none. Raises `InvalidRequest` if there is no demand, as for a serverless job, which uses no pool.
    """
    for problem in resource_problems(request):
        raise problem.refusal()
    config = part(request, CONFIG)
    if gives(request, "resources"):
        return tuple({name: instances_of(request)} for name, _ in listed_types(request))
    if groups := entries(config, GROUPS):
        return (total(_units(group, config) for group in groups),)
    if preferences := entries(config, PREFERENCES):
        return tuple(_units(preference, config) for preference in preferences)
    return (_units(config, config),)


def instances_of(request: Object) -> int:
    """Return the number of instances of a request by resources: from its option, else from a count, else one."""
    counted = first_count(request)
    return 1 if counted is None else counted


def first_count(request: Object) -> int | None:
    """Return the number of instances from the option, or else the first in `ResourceConfig`; None if there is none."""
    asked = option_in(request, "instances")
    counts = [count for _, count in _counts(part(request, CONFIG)) if isinstance(count, int)]
    return asked if isinstance(asked, int) else next(iter(counts), None)


def listed_types(request: Object) -> list[tuple[str, str]]:
    """Return the types that a request by resources lists, best first, each with the path of its field."""
    config = part(request, CONFIG)
    path = f"{CONFIG}.{PREFERENCES}"
    found = [(text(entry, _TYPE), f"{path}[{i}].{_TYPE}") for i, entry in enumerate(entries(config, PREFERENCES))]
    return [(name, field) for name, field in [(text(config, _TYPE), f"{CONFIG}.{_TYPE}"), *found] if name]


def named_types(request: Object) -> dict[str, str]:
    """Return all types that a request names in any form, by the paths of their fields."""
    config = part(request, CONFIG)
    places = [(CONFIG, config)]
    for kind in (GROUPS, PREFERENCES):
        places += [(f"{CONFIG}.{kind}[{i}]", entry) for i, entry in enumerate(entries(config, kind))]
    return {f"{path}.{_TYPE}": name for path, entry in places if (name := text(entry, _TYPE))}


def _counts(config: Object) -> Iterator[tuple[str, object]]:
    """Return all counts of a request, each with the path of its field."""
    entries_ = enumerate(entries(config, PREFERENCES))
    places = [(CONFIG, config), *((f"{CONFIG}.{PREFERENCES}[{i}]", entry) for i, entry in entries_)]
    return ((f"{path}.{_COUNT}", entry[_COUNT]) for path, entry in places if entry.get(_COUNT) is not None)


def _units(entry: Object, config: Object) -> dict[str, int]:
    return {text(entry, _TYPE) or "": whole(entry, _COUNT) or whole(config, _COUNT) or 0}


def resource_problems(request: Object) -> list[Problem]:
    """Yield everything that makes the demand unreadable, or that SageMaker refuses about the instances."""
    if request.get("ServerlessJobConfig") is not None:
        return [_SERVERLESS]
    config = part(request, CONFIG)
    asks = gives(request, "resources")
    return [*_read_only(config), *(_by_resources(request, config) if asks else _instances(config))]


_SERVERLESS = Problem(
    "ServerlessJobConfig",
    "The queue does not accept serverless jobs, which use no instances of a pool.",
    "Send it to SageMaker directly with CreateTrainingJob.",
)


def _read_only(config: Object) -> Iterator[Problem]:
    for name in _READ_ONLY:
        if name in config:
            yield Problem(f"{CONFIG}.{name}", f"{name} is set by SageMaker.", "Omit it.")


def _instances(config: Object) -> Iterator[Problem]:
    groups, preferences = entries(config, GROUPS), entries(config, PREFERENCES)
    if groups:
        yield from _exclusive(config, GROUPS, (_TYPE, _COUNT, PREFERENCES))
        yield from _group_problems(groups)
    elif preferences:
        yield from _exclusive(config, PREFERENCES, (_TYPE, "InstancePlacementConfig"))
        yield from _preference_problems(preferences, config)
    else:
        yield from _typed(config, CONFIG)
        yield from _counted(config, CONFIG)


def _by_resources(request: Object, config: Object) -> Iterator[Problem]:
    """Yield what a request by resources must not contain, since the queue chooses the type."""
    if entries(config, GROUPS):
        wrong = f"{GROUPS} cannot be combined with the option '{RESOURCES_TAG}'."
        yield Problem(f"{CONFIG}.{GROUPS}", wrong, f"Omit {GROUPS}, or the tag.")
    if preferences := entries(config, PREFERENCES):
        yield from _exclusive(config, PREFERENCES, (_TYPE, "InstancePlacementConfig"))
        yield from _listed_problems(preferences, config)
    if not gives(request, "pools"):
        yield from _other_kinds(request, config)
    yield from _agreeing(request, config)


def _other_kinds(request: Object, config: Object) -> Iterator[Problem]:
    """Yield problems of other kinds of capacity: the queue finds on-demand instances for a request by resources."""
    if request.get("EnableManagedSpotTraining") is True:
        yield Problem(
            "EnableManagedSpotTraining",
            f"A job with the option '{RESOURCES_TAG}' runs on demand, unless it names other pools.",
            f"Omit it, or name spot pools in '{OPTION_PREFIX}pools'.",
        )
    if config.get(_PLAN) is not None and not text(config, _TYPE):
        yield Problem(
            f"{CONFIG}.{_PLAN}",
            "A training plan has one instance type, but the request names none.",
            f"Specify {_TYPE}, or name the plan's pool in '{OPTION_PREFIX}pools'.",
        )


def _agreeing(request: Object, config: Object) -> Iterator[Problem]:
    """Yield a problem if the numbers of instances in the request differ."""
    needed = instances_of(request)
    if not 1 <= needed <= MAX_COUNT:
        hint = f"Specify a whole number from 1 to {MAX_COUNT}."
        yield Problem(next(path for path, _ in _counts(config)), f"{_COUNT} is {shown(needed)}.", hint)
        return
    source = f"'{_INSTANCES}'" if gives(request, "instances") else "the first count"
    for path, count in _counts(config):
        if count != needed or isinstance(count, bool):
            wrong = f"{_COUNT} is {shown(count)}, but {source} is {needed}."
            yield Problem(path, wrong, f"Specify one number of instances, preferably as '{_INSTANCES}'.")


def _exclusive(config: Object, kind: str, others: Sequence[str]) -> Iterator[Problem]:
    for other in others:
        if config.get(other) is not None:
            yield Problem(
                f"{CONFIG}.{other}",
                f"{other} and {kind} cannot be specified together.",
                f"Omit {other}, or omit {kind}.",
            )


def _typed(entry: Object, path: str) -> Iterator[Problem]:
    if not text(entry, _TYPE):
        yield Problem(
            f"{path}.{_TYPE}",
            "The request names no instance type.",
            f"Specify {_TYPE} and {_COUNT}, or {GROUPS}, or {PREFERENCES}, in {CONFIG}; or specify the required "
            f"resources with the tag '{RESOURCES_TAG}'.",
        )


def _counted(entry: Object, path: str) -> Iterator[Problem]:
    count = whole(entry, _COUNT)
    if count is None or count < 1:
        wrong = f"is {shown(entry[_COUNT])}" if _COUNT in entry else "is missing"
        yield Problem(f"{path}.{_COUNT}", f"{_COUNT} {wrong}.", "Specify a whole number of at least 1.")


def _group_problems(groups: Sequence[Object]) -> Iterator[Problem]:
    for index, group in enumerate(groups):
        yield from _typed(group, f"{CONFIG}.{GROUPS}[{index}]")
        yield from _counted(group, f"{CONFIG}.{GROUPS}[{index}]")
    name = "InstanceGroupName"
    for index in repeated(text(group, name) for group in groups):
        yield Problem(
            f"{CONFIG}.{GROUPS}[{index}].{name}",
            f"The instance group {shown(groups[index].get(name))} appears twice.",
            "Give each group a unique name.",
        )


def _preference_problems(preferences: Sequence[Object], config: Object) -> Iterator[Problem]:
    path = f"{CONFIG}.{PREFERENCES}"
    yield from _listed_problems(preferences, config)
    yield from _preference_counts(preferences, config, path)


def _listed_problems(preferences: Sequence[Object], config: Object) -> Iterator[Problem]:
    path = f"{CONFIG}.{PREFERENCES}"
    for index, preference in enumerate(preferences):
        yield from _typed(preference, f"{path}[{index}]")
    for index in repeated(text(preference, _TYPE) for preference in preferences):
        yield Problem(
            f"{path}[{index}].{_TYPE}",
            f"The instance type {shown(preferences[index].get(_TYPE))} appears twice.",
            "Name each instance type once.",
        )
    yield from _preference_plans(preferences, config, path)


def _preference_counts(preferences: Sequence[Object], config: Object, path: str) -> Iterator[Problem]:
    """Yield problems unless there is one count for all types, or one with every type."""
    own = [index for index, preference in enumerate(preferences) if preference.get(_COUNT) is not None]
    if config.get(_COUNT) is None:
        for index, preference in enumerate(preferences):
            yield from _counted(preference, f"{path}[{index}]")
    elif own:
        yield Problem(
            f"{path}[{own[0]}].{_COUNT}",
            f"{_COUNT} is specified both here and in {CONFIG}.",
            f"Specify one {_COUNT} in {CONFIG}, or one in every entry of {PREFERENCES}.",
        )
    else:
        yield from _counted(config, CONFIG)


def _preference_plans(preferences: Sequence[Object], config: Object, path: str) -> Iterator[Problem]:
    own = [index for index, preference in enumerate(preferences) if preference.get("TrainingPlanArns")]
    if own and config.get(_PLAN) is not None:
        yield Problem(
            f"{path}[{own[0]}].TrainingPlanArns",
            f"Training plans are specified both here and in {CONFIG}.TrainingPlanArn.",
            "Specify the plan in one of the two places.",
        )
