"""Sizes of an elastic job, as its request gives them, and problems with them.

The rules are those of HyperPod elastic training (`elasticPolicy`, `runPolicy`), and some that it lacks.
`elastic/rules.py` has the restrictions on the rest of such a request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trainmaster.domain.elastic.sizes import Elastic, Hook, RestartBudget
from trainmaster.domain.requests.fields import Problem, part, whole
from trainmaster.domain.requests.options import Options
from trainmaster.domain.requests.resources import CONFIG, first_count
from trainmaster.domain.requests.tag_names import OPTION_PREFIX
from trainmaster.domain.requests.tags import gives, option_field

Object = Mapping[str, object]

MAX_FULL_RESTARTS = 1
"""Full restarts within the period where `restarts-before-full` is given alone: without one it would mean nothing."""
MAX_FULL = 1_000
"""Full restarts within a period that the queue remembers, at most."""
MAX_COUNTED = 49
"""Maximum bound on restarts in a period: nodes keep the newest 50 (`MAX_RECORDS` in `worker/rendezvous/state.py`)."""
MAX_SIZES = 1_000
"""Every pass looks at the sizes of every elastic job."""
MAX_LIST_LENGTH = 512
"""Maximum length of an environment variable (CreateTrainingJob, `Environment`), which lists the sizes for the nodes.

With a step of 1 the bounds are enough.
"""
_BOUNDS = ("max-instances", "instance-values")
"""Options that make a job elastic."""
_TIMES = ("scaling-timeout", "graceful-shutdown-timeout", "faulty-scale-down-timeout", "scale-up-snooze")
_COUNTED = ("max-restarts", "restarts-before-full")
_BUDGET = (*_COUNTED, "eval-period", "max-total-restarts", "max-full-restarts")
_OTHERS = ("min-instances", "instance-step", "resize-by", "resize-target", *_TIMES, *_BUDGET)
_MAX_SHOWN = 8


def is_elastic(request: Object) -> bool:
    """Return whether the request is for an elastic job."""
    return any(gives(request, name) for name in _BOUNDS)


def elastic_of(request: Object, options: Options) -> Elastic | None:
    """Return the sizes and hooks of a request without `elastic_problems`; None if the job is not elastic."""
    if not is_elastic(request):
        return None
    smallest, largest = _bounds(request, options)
    values, step = options.instance_values, options.instance_step
    shape: dict[str, Any] = {"values": values} if values else {"step": step or 1}
    times = {name: getattr(options, name.replace("-", "_")) for name in _TIMES}
    return Elastic(
        min_instances=smallest,
        max_instances=largest,
        hook=options.resize_by,
        target=options.resize_target or "",
        budget=_budget(options),
        **shape,
        **{name.replace("-", "_"): value for name, value in times.items() if value is not None},
    )


def elastic_problems(request: Object, options: Options) -> Iterator[Problem]:
    """Yield everything wrong with the options that make a job elastic or that only elastic jobs may have."""
    if not is_elastic(request):
        yield from _needs(request, _OTHERS, _BOUNDS, "Also specify '{0}' (or '{1}'), or omit it.")
        return
    bad = [*(_values(request, options) if options.instance_values else _steps(request, options))]
    yield from bad or _count(request, options)
    yield from _budget_problems(request, options)
    yield from _target(request, options)


def sizes_shown(elastic: Elastic) -> str:
    """Return the sizes in words: `2, 4 or 8`, `1 to 16`, `2 to 16 in steps of 2`."""
    sizes = elastic.sizes
    if elastic.values or len(sizes) <= 2:
        cut = [*map(str, sizes[:_MAX_SHOWN]), *(["..."] if sizes[_MAX_SHOWN:] else [])]
        return " or ".join(filter(None, (", ".join(cut[:-1]), cut[-1])))
    steps = "" if elastic.step == 1 else f" in steps of {elastic.step}"
    return f"{elastic.min_instances} to {elastic.max_instances}{steps}"


def sizes_problem(smallest: int, largest: int, step: int) -> str | None:
    """Return the problem with the number of sizes between these bounds; None without one."""
    sizes = (largest - smallest) // step + 1
    if sizes > MAX_SIZES:
        return f"The job has {sizes} sizes; at most {MAX_SIZES} are allowed."
    if step > 1 and len(",".join(map(str, range(smallest, largest + 1, step)))) > MAX_LIST_LENGTH:
        return f"The job has {sizes} sizes, too many to pass to its nodes."
    return None


def _bounds(request: Object, options: Options) -> tuple[int, int]:
    """Return the bounds: as given, else the ends of the values, else the number of instances in the request."""
    values = options.instance_values
    smallest = options.min_instances or (values[0] if values else first_count(request)) or 1
    return smallest, options.max_instances or (values[-1] if values else smallest)


def _budget(options: Options) -> RestartBudget:
    full = options.max_full_restarts
    if full is None:
        full = MAX_FULL_RESTARTS if options.restarts_before_full else 0
    given = {} if options.eval_period is None else {"period": options.eval_period}
    return RestartBudget(
        max_restarts=options.max_restarts,
        max_total_restarts=options.max_total_restarts,
        restarts_before_full=options.restarts_before_full,
        max_full_restarts=full,
        **given,
    )


def _steps(request: Object, options: Options) -> Iterator[Problem]:
    """Yield problems of sizes that are the minimum and a number of steps, up to the maximum."""
    smallest, largest = _bounds(request, options)
    step = options.instance_step or 1
    if largest < smallest:
        source = "min-instances" if options.min_instances else "the request's number of instances"
        wrong = f"The maximum number of instances, {largest}, is less than {source}, {smallest}."
        yield _problem(request, "max-instances", wrong, f"Specify at least {smallest}, or a smaller 'min-instances'.")
    elif (largest - smallest) % step:
        reached = largest - (largest - smallest) % step
        wrong = f"The range from {smallest} to {largest} is not a multiple of the step, {step}."
        hint = f"Specify a step that divides {largest - smallest}, or {reached} or {reached + step} as 'max-instances'."
        yield _problem(request, "instance-step", wrong, hint)
    elif (many := sizes_problem(smallest, largest, step)) is not None:
        more = ", a step of 1," if step > 1 else ""
        yield _problem(request, "max-instances", many, f"Specify a smaller maximum{more} or a larger 'instance-step'.")


def _values(request: Object, options: Options) -> Iterator[Problem]:
    """Yield problems of sizes that are all given; the bounds must be the first and the last of them."""
    values, smallest, largest = options.instance_values, options.min_instances, options.max_instances
    if options.instance_step is not None:
        wrong = f"'{OPTION_PREFIX}instance-step' and '{OPTION_PREFIX}instance-values' cannot be specified together."
        yield _problem(request, "instance-step", wrong, "Omit one of them: 'instance-values' already lists all sizes.")
    if smallest is not None and largest is not None and largest < smallest:
        wrong = f"The maximum number of instances, {largest}, is less than min-instances, {smallest}."
        yield _problem(request, "max-instances", wrong, f"Specify at least {smallest}, or a smaller 'min-instances'.")
    elif smallest is not None and values[0] < smallest:
        wrong = f"The size {values[0]} is less than min-instances, {smallest}."
        yield _problem(request, "instance-values", wrong, f"Omit it, or specify {values[0]} as 'min-instances'.")
    elif largest is not None and values[-1] > largest:
        wrong = f"The size {values[-1]} is more than max-instances, {largest}."
        yield _problem(request, "instance-values", wrong, f"Omit it, or specify {values[-1]} as 'max-instances'.")
    for name, bound, size in (("min-instances", smallest, values[0]), ("max-instances", largest, values[-1])):
        if bound is not None and bound not in values:
            wrong = f"{bound} is not one of the sizes, {'+'.join(map(str, values[:_MAX_SHOWN]))}."
            yield _problem(request, name, wrong, f"Specify {size}, omit it, or add {bound} to 'instance-values'.")


def _count(request: Object, options: Options) -> Iterator[Problem]:
    """Yield a problem if the request's number of instances is not one of its sizes."""
    elastic, count = elastic_of(request, options), first_count(request)
    if elastic is None or count is None or count in elastic.sizes:
        return
    by_tag = gives(request, "instances")
    name = f"'{OPTION_PREFIX}instances'" if by_tag else "InstanceCount"
    wrong = f"{name} is {count}, which is not a size of this job: {sizes_shown(elastic)}."
    field = option_field(request, "instances") if by_tag else _count_field(request)
    yield Problem(field, wrong, f"Specify {elastic.min_instances} or another of its sizes.")


def _count_field(request: Object) -> str:
    own = whole(part(request, CONFIG), "InstanceCount") is not None
    return f"{CONFIG}.InstanceCount" if own else f"{CONFIG}.InstancePreferences"


def _budget_problems(request: Object, options: Options) -> Iterator[Problem]:
    yield from _needs(request, ("eval-period",), _COUNTED, "Also specify '{0}' or '{1}', or omit it.")
    full = ("restarts-before-full",)
    yield from _needs(request, ("max-full-restarts",), full, "Also specify '{0}', or omit it.")
    before = options.restarts_before_full
    for name, bound in zip(_COUNTED, (options.max_restarts, before), strict=True):
        if bound is not None and bound > MAX_COUNTED:
            wrong = f"At most {MAX_COUNTED} restarts within a period are counted; the limit here is {bound}."
            yield _problem(request, name, wrong, f"Specify at most {MAX_COUNTED}, or omit it.")
    if options.max_full_restarts is not None and options.max_full_restarts > MAX_FULL:
        wrong = f"At most {MAX_FULL} full restarts within a period are counted."
        yield _problem(request, "max-full-restarts", wrong, f"Specify at most {MAX_FULL}.")
    for name, limit in (("max-restarts", options.max_restarts), ("max-total-restarts", options.max_total_restarts)):
        if before is not None and limit is not None and before > limit:
            wrong = f"The job fails after {limit} restarts ('{OPTION_PREFIX}{name}'), before {before} are counted."
            yield _problem(request, full[0], wrong, f"Specify at most {limit}, or more as '{name}'.")


def _target(request: Object, options: Options) -> Iterator[Problem]:
    custom = options.resize_by is Hook.CUSTOM
    if custom and options.resize_target is None:
        wrong = f"The option '{OPTION_PREFIX}resize-by' is 'custom', which requires '{OPTION_PREFIX}resize-target'."
        hint = f"Specify the ARN of a Lambda function, or 'event', as '{OPTION_PREFIX}resize-target'."
        yield _problem(request, "resize-by", wrong, hint)
    elif not custom and options.resize_target is not None:
        wrong = (
            f"The option '{OPTION_PREFIX}resize-target' has no effect unless '{OPTION_PREFIX}resize-by' is 'custom'."
        )
        yield _problem(request, "resize-target", wrong, f"Specify 'custom' as '{OPTION_PREFIX}resize-by', or omit it.")


def _needs(request: Object, names: tuple[str, ...], others: tuple[str, ...], hint: str) -> Iterator[Problem]:
    """Yield a problem for each of these options unless one of the others is given."""
    if any(gives(request, other) for other in others):
        return
    full = [OPTION_PREFIX + other for other in others]
    for name in names:
        if gives(request, name):
            wrong = f"The option '{OPTION_PREFIX}{name}' has no effect without '{full[0]}'."
            yield _problem(request, name, wrong, hint.format(*full))


def _problem(request: Object, name: str, wrong: str, hint: str) -> Problem:
    return Problem(option_field(request, name), wrong, hint)
