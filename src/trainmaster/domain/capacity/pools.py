"""Configured pools: default names and validation."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from trainmaster.domain.capacity.units import MAX_CAP, Kind, PlanWindow, Pool, is_service_pool
from trainmaster.domain.requests.fields import Problem, shown

MAX_ACCELERATORS = 1_024
MAX_VCPUS = 100_000
MAX_GIB = 1_000_000
"""Maximum memory; more than any instance has, to detect a wrong unit."""
HIGHEST_PRICE = 1_000_000
MAX_NAME_LENGTH = 63

# Names of pools occur in tags, in keys of the table and in URLs.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
_TYPE = re.compile(r"ml\.[a-z0-9-]{1,30}\.[a-z0-9-]{1,30}", re.ASCII)
# The makers of accelerators, as in `resources.InstanceType`.
_MAKER = re.compile(r"[a-z][a-z0-9-]{0,31}", re.ASCII)
# The service model's pattern of a training plan's ARN, narrowed to the characters of a name.
_PLAN = re.compile(
    r"arn:aws[a-z-]*:sagemaker:[a-z0-9-]+:[0-9]{12}:training-plan/[a-zA-Z0-9](-*[a-zA-Z0-9]){0,63}", re.ASCII
)


def default_name(instance_type: str, kind: Kind) -> str:
    """Return the default name of a pool: its type, with its kind unless it is on demand."""
    return instance_type if kind is Kind.ON_DEMAND else f"{instance_type}.{kind}"


def with_window(pool: Pool, windows: Mapping[str | None, PlanWindow]) -> Pool:
    """Return the pool with the known window of its training plan, by ARN."""
    window = windows.get(pool.plan_arn) if pool.kind is Kind.TRAINING_PLAN else None
    if window is None:
        return pool
    return replace(pool, plan_status=window.status, starts_at=window.starts_at, ends_at=window.ends_at)


def with_windows(pools: Iterable[Pool], before: Mapping[str, Pool]) -> list[Pool]:
    """Return newly set pools with the known windows of their training plans."""
    known = {
        pool.plan_arn: PlanWindow(pool.plan_status, pool.starts_at, pool.ends_at)
        for pool in before.values()
        if pool.plan_status is not None
    }
    return [with_window(pool, known) for pool in pools]


def with_raises(pools: Iterable[Pool], before: Mapping[str, Pool], now: datetime) -> list[Pool]:
    """Return newly set pools with the time at which they last let in more jobs."""
    return [replace(pool, raised_at=_raised_at(pool, before.get(pool.name), now)) for pool in pools]


def _raised_at(pool: Pool, before: Pool | None, now: datetime) -> datetime | None:
    if before is None:
        return None
    opened = before.draining and not pool.draining
    uncounted = before.count_external and not pool.count_external
    return now if pool.cap > before.cap or opened or uncounted else before.raised_at


def as_made(pools: Iterable[Pool], before: Mapping[str, Pool]) -> list[Pool]:
    """Return newly set pools that remain the manager's own if they are unchanged.

    Draining a pool, or ending that, leaves it the manager's; any other change makes it a configured pool.
    """
    return [_as_made(pool, before.get(pool.name)) for pool in pools]


def _as_made(pool: Pool, before: Pool | None) -> Pool:
    theirs = replace(pool, made_for="", made_at=None)
    if before is None or not before.made_for:
        return theirs
    kept = replace(pool, made_for=before.made_for, made_at=before.made_at)
    return kept if replace(kept, draining=before.draining) == before else theirs


def pool_problems(pools: Sequence[Pool]) -> Iterator[Problem]:
    """Yield the problems of a list of pools; fields are those of PUT /pools."""
    names: set[str] = set()
    for index, pool in enumerate(pools):
        path = f"pools[{index}]"
        yield from _own_problems(pool, f"{path}.")
        if pool.name in names:
            yield _twice(pool, path)
        yield from _plan_taken(pool, pools[:index], f"{path}.")
        names.add(pool.name)


def problems_of_one(pool: Pool, others: Iterable[Pool]) -> Iterator[Problem]:
    """Yield the problems of a pool beside these others; fields are those of PUT /pools/{name}."""
    yield from _own_problems(pool, "")
    yield from _plan_taken(pool, others, "")


def _plan_taken(pool: Pool, others: Iterable[Pool], path: str) -> Iterator[Problem]:
    if pool.plan_arn is not None and any(pool.plan_arn == other.plan_arn for other in others):
        wrong = "The training plan already has a pool."
        yield Problem(f"{path}trainingPlanArn", wrong, "Use one pool for each training plan.")


def service_problem(pool: Pool, path: str = "") -> Problem | None:
    """Return what is wrong with setting a service's pool; None for any other pool."""
    named = is_service_pool(pool.name)
    if not named and pool.kind is not Kind.SERVICE:
        return None
    wrong = "A pool of kind service counts the concurrent requests of a service: it cannot be set, drained or removed."
    hint = "Change the service, its tags, or the jobs that use it."
    return Problem(f"{path}{'name' if named else 'kind'}", wrong, hint)


def _own_problems(pool: Pool, path: str) -> Iterator[Problem]:
    if (problem := service_problem(pool, path)) is not None:
        yield problem
        return
    yield from _name_problems(pool, path)
    yield from _plan_problems(pool, path)
    if not _TYPE.fullmatch(pool.instance_type):
        wrong = f"{shown(pool.instance_type)} is not an ML instance type."
        yield Problem(f"{path}instanceType", wrong, "Specify one such as ml.p5.48xlarge.")
    if not 0 <= pool.cap <= MAX_CAP:
        yield Problem(f"{path}cap", f"The cap {shown(pool.cap)} is out of range.", f"Use 0 to {MAX_CAP}.")
    if not (math.isfinite(pool.price) and 0 <= pool.price <= HIGHEST_PRICE):
        wrong = f"The price {shown(pool.price)} is out of range."
        yield Problem(f"{path}price", wrong, "Specify dollars per hour of one instance, or 0 for no price.")
    if not 0 <= pool.accelerators_per_unit <= MAX_ACCELERATORS:
        wrong = f"{shown(pool.accelerators_per_unit)} accelerators are out of range."
        yield Problem(
            f"{path}accelerators", wrong, f"Use 1 to {MAX_ACCELERATORS}, or 0 to use the value of the instance type."
        )
    yield from _resource_problems(pool, path)


def _resource_problems(pool: Pool, path: str) -> Iterator[Problem]:
    if not 0 <= pool.vcpus <= MAX_VCPUS:
        wrong = f"{shown(pool.vcpus)} vCPUs are out of range."
        yield Problem(f"{path}vcpus", wrong, f"Use 1 to {MAX_VCPUS}, or 0 to use the value of the instance type.")
    sizes = (("memoryGib", pool.memory_gib), ("acceleratorMemoryGib", pool.accelerator_memory_gib))
    for member, size in sizes:
        if not (math.isfinite(size) and 0 <= size <= MAX_GIB):
            wrong = f"{shown(size)} GiB are out of range."
            yield Problem(f"{path}{member}", wrong, f"Specify GiB of one instance, at most {MAX_GIB}, or 0.")
    if pool.accelerator and not _MAKER.fullmatch(pool.accelerator):
        wrong = f"{shown(pool.accelerator)} is not a manufacturer of accelerators."
        yield Problem(f"{path}accelerator", wrong, "Specify one in lower case: nvidia, aws, amd or habana.")


def _name_problems(pool: Pool, path: str) -> Iterator[Problem]:
    if len(pool.name) > MAX_NAME_LENGTH or not _NAME.fullmatch(pool.name):
        yield Problem(
            f"{path}name",
            f"The name is {shown(pool.name)}.",
            f"Use letters, digits, '-', '_' and '.', at most {MAX_NAME_LENGTH}, the first a letter or digit.",
        )
    elif _TYPE.fullmatch(pool.name) and (pool.name != pool.instance_type or pool.kind is not Kind.ON_DEMAND):
        yield Problem(
            f"{path}name",
            f"{pool.name} is the name of an instance type, and only the on-demand pool of that type may have it.",
            "Specify another name.",
        )


def _plan_problems(pool: Pool, path: str) -> Iterator[Problem]:
    field = f"{path}trainingPlanArn"
    if pool.kind is not Kind.TRAINING_PLAN:
        if pool.plan_arn is not None:
            yield Problem(field, f"A pool of kind {pool.kind} has no training plan.", "Set kind to training-plan.")
    elif pool.plan_arn is None:
        yield Problem(
            field, "A pool of kind training-plan requires a training plan.", "Specify the ARN of the training plan."
        )
    elif not _PLAN.fullmatch(pool.plan_arn):
        hint = "It looks like arn:aws:sagemaker:us-east-1:111122223333:training-plan/my-plan."
        yield Problem(field, f"{shown(pool.plan_arn)} is not the ARN of a training plan.", hint)


def _twice(pool: Pool, path: str) -> Problem:
    same = pool.name == default_name(pool.instance_type, pool.kind)
    hint = f"Give pools of the same type and kind different names: the default name is {pool.name}."
    return Problem(
        f"{path}.name", f"The pool {pool.name} is specified twice.", hint if same else "Name each pool once."
    )
