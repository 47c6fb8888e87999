"""Checks of a queue's settings: everything wrong with a policy, each by the path of its field in the document."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from datetime import timedelta
from typing import Any

from trainmaster.domain.access.patterns import pattern_problem
from trainmaster.domain.capacity.catalogue import AS_SHIPPED, Catalogue
from trainmaster.domain.capacity.units import Pool, Units, is_service_pool, total
from trainmaster.domain.jobs.work import Work
from trainmaster.domain.policy.declaration import Member, Setting, members_of, number_type
from trainmaster.domain.policy.settings import Budget, Expansion, Lending, Limits, Policy, Preemption, Retry, Share
from trainmaster.domain.requests.fields import Problem, did_you_mean, shown
from trainmaster.domain.requests.values import MAX_LABEL_LENGTH, label


def policy_problems(policy: Policy, pools: Mapping[str, Pool], catalogue: Catalogue = AS_SHIPPED) -> Iterator[Problem]:
    """Yield everything wrong with the settings of a queue.

    Args:
        policy: The settings.
        pools: Pools of the queue.
        catalogue: Known instance types.
    """
    yield from bound_problems(policy)
    yield from _limit_problems(policy.preemption, policy.limits)
    for failure, retry in policy.retries.items():
        yield from _retry_problems(f"retries.{failure}", retry)
    yield from _expansion_problems(policy.expansion, catalogue)
    for name, share in policy.shares.items():
        yield from _share_problems(f"shares.{name}", share, pools)
    yield from _overdrawn(policy, pools)


def bound_problems(value: Any, path: str = "") -> Iterator[Problem]:
    """Yield every number of a group of settings beyond its declared bounds, and every list or mapping too long."""
    for member in members_of(value.__class__):
        yield from _value_problems(f"{path}{member.name}", getattr(value, member.field.name), member)


def _value_problems(path: str, value: Any, member: Member) -> Iterator[Problem]:
    if is_dataclass(value):
        yield from bound_problems(value, f"{path}.")
    elif isinstance(value, Mapping | tuple):
        yield from _too_many(path, len(value), member.setting)
        for key, inner in value.items() if isinstance(value, Mapping) else ():
            yield from _value_problems(f"{path}.{key}", inner, member)
    elif not (value is None and member.optional) and not _within(value, number_type(member.type), member.setting):
        yield Problem(path, f"{path} is {_text(value)}.", f"Specify {member.wanted()}.")


def _too_many(path: str, count: int, setting: Setting) -> Iterator[Problem]:
    if setting.max_items is not None and count > setting.max_items:
        yield Problem(path, f"{path} has {count} items.", f"Specify at most {setting.max_items}.")


def _within(value: object, kind: type, setting: Setting) -> bool:
    """Return whether a value has its type and is within its bounds."""
    if isinstance(value, str | bool):
        # A bool is an int to Python, but no number here.
        return issubclass(kind, str | bool)
    if isinstance(value, timedelta):
        return setting.allows(value.total_seconds())
    if not isinstance(value, int | float) or (kind is int and not isinstance(value, int)):
        return False
    return math.isfinite(value) and setting.allows(value)


def _limit_problems(rules: Preemption, limits: Limits) -> Iterator[Problem]:
    within = (
        ("minRuntimeSeconds", rules.min_runtime, "maxMinRuntimeSeconds", limits.max_min_runtime),
        ("cooldownSeconds", rules.cooldown, "maxCooldownSeconds", limits.max_cooldown),
    )
    for name, span, limit, longest in within:
        if span > longest:
            beyond = f"preemption.{name} is {_text(span)}, more than limits.{limit}, which is {_text(longest)}."
            yield Problem(f"preemption.{name}", beyond, "Lower it, or raise the limit.")


def _expansion_problems(rules: Expansion, catalogue: Catalogue) -> Iterator[Problem]:
    for index, pattern in enumerate(rules.types):
        alone = Expansion(types=(pattern,))
        if not any(alone.allows(kind.name) for kind in catalogue.types):
            wrong = f"No known instance type matches {shown(pattern)}."
            yield Problem(f"expansion.types[{index}]", wrong, "Specify names such as ml.g5.2xlarge or ml.g5.*.")
    if rules.max_per_type > rules.max_instances:
        limit = f"more than expansion.maxInstances, which is {rules.max_instances}"
        wrong = f"expansion.maxPerType is {rules.max_per_type}, {limit}."
        yield Problem("expansion.maxPerType", wrong, "Lower it, or raise expansion.maxInstances.")


def _retry_problems(path: str, retry: Retry) -> Iterator[Problem]:
    if retry.max_delay < retry.first_delay:
        first = f"less than the first delay, {_text(retry.first_delay)}"
        wrong = f"{path}.maxDelaySeconds is {_text(retry.max_delay)}, {first}."
        yield Problem(f"{path}.maxDelaySeconds", wrong, "Raise it, or lower firstDelaySeconds.")


def _share_problems(path: str, share: Share, pools: Mapping[str, Pool]) -> Iterator[Problem]:
    if label(share.name) is None:
        wrong = f"{shown(share.name)} is not a valid name of a share."
        hint = f"Use letters, digits, '-', '_' and '.', at most {MAX_LABEL_LENGTH}, the first a letter or digit."
        yield Problem(path, wrong, hint)
    units = {
        "nominal": share.nominal,
        "lends": share.lends,
        "borrows": share.borrows,
        "max": share.max,
        "maxPerUser": share.max_per_user,
    }
    for member, by_pool in units.items():
        yield from _pool_problems(f"{path}.{member}", by_pool, pools)
    yield from _lending_problems(path, share)
    if share.budget is not None:
        yield from _budget_problems(f"{path}.budget", share.budget)
    for member, callers in {"admins": share.admins, "submitters": share.submitters, "resizers": share.resizers}.items():
        yield from _caller_problems(f"{path}.{member}", callers)
    for index, name in enumerate(share.prefers):
        yield from _unknown_pool(f"{path}.prefers[{index}]", name, pools)


def _pool_problems(path: str, by_pool: Units, pools: Mapping[str, Pool]) -> Iterator[Problem]:
    for name in by_pool:
        if is_service_pool(name):
            yield from _service_problems(f"{path}.{name}", name)
        else:
            yield from _unknown_pool(f"{path}.{name}", name, pools)


def _service_problems(path: str, name: str) -> Iterator[Problem]:
    """Check only the form of the name, as the kind of job defines it: services have pools only while jobs need them."""
    for kind in Work.kinds().values():
        if name.startswith(kind.pool_prefix):
            if (problem := kind.pool_problem(name)) is not None:
                yield Problem(path, *problem)
            return
    yield Problem(path, f"There is no pool {shown(name)}.", "No kind of job in this deployment uses such pools.")


def _unknown_pool(path: str, name: str, pools: Mapping[str, Pool]) -> Iterator[Problem]:
    if name not in pools:
        meant = did_you_mean(name, pools)
        guess = f"Did you mean '{meant}'? " if meant else ""
        known = ", ".join(sorted(pools)) or "none"
        yield Problem(path, f"There is no pool {shown(name)}.", f"{guess}The pools are: {known}.")


def _lending_problems(path: str, share: Share) -> Iterator[Problem]:
    for name, count in share.lends.items():
        own = share.nominal.get(name, 0)
        if share.lending is Lending.RESERVE:
            wrong = f"Share {share.name} reserves its quota, so it lends nothing."
            yield Problem(f"{path}.lends.{name}", wrong, "Omit lends, or set lending to lend.")
        elif count > own:
            wrong = f"Share {share.name} lends {count} x {name}, more than its quota, which is {own}."
            yield Problem(f"{path}.lends.{name}", wrong, f"Specify at most {own}, or raise nominal.")
    if share.lending is not Lending.LEND_AND_BORROW:
        for name in share.borrows:
            wrong = f"Share {share.name} does not borrow: its lending is {share.lending}."
            yield Problem(f"{path}.borrows.{name}", wrong, "Omit borrows, or set lending to lend-and-borrow.")


def _budget_problems(path: str, budget: Budget) -> Iterator[Problem]:
    if budget.gpu_hours is None and budget.dollars is None:
        yield Problem(path, "The budget has no limit.", "Specify gpuHours, dollars or both, or omit the budget.")


def _caller_problems(path: str, patterns: tuple[str, ...]) -> Iterator[Problem]:
    for index, pattern in enumerate(patterns):
        if (problem := pattern_problem(pattern)) is not None:
            yield Problem(f"{path}[{index}]", f"{shown(pattern)} {problem[0]}.", problem[1])


def _overdrawn(policy: Policy, pools: Mapping[str, Pool]) -> Iterator[Problem]:
    """Yield the pools whose cap is below the sum of the quotas, as problems of the last share with a quota."""
    owned = total(share.nominal for share in policy.shares.values())
    for name in sorted(owned.keys() & pools.keys()):
        if owned[name] > pools[name].cap:
            last = [share.name for share in policy.shares.values() if share.nominal.get(name)][-1:]
            wrong = f"The shares own {owned[name]} x {name} together; the pool's cap is {pools[name].cap}."
            yield Problem(f"shares.{''.join(last)}.nominal.{name}", wrong, "Lower the quotas, or raise the cap.")


def _text(value: object) -> str:
    """Return a value as the document has it; a duration in seconds."""
    return f"{value.total_seconds():.15g}" if isinstance(value, timedelta) else shown(value)
