"""Whether settings make sense: everything wrong with a policy, each by the path of its field in the settings' document.

It must not change settings, nor know where they come from.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import TypeGuard

from trainmaster.domain.capacity.catalogue import AS_SHIPPED, Catalogue
from trainmaster.domain.capacity.pools import LARGEST_CAP
from trainmaster.domain.capacity.units import Pool, Units, total
from trainmaster.domain.policy.roles import is_caller_pattern
from trainmaster.domain.policy.settings import Budget, Expansion, Lending, Limits, Policy, Preemption, Retry, Share
from trainmaster.domain.requests.fields import Problem, did_you_mean, shown
from trainmaster.domain.requests.values import LARGEST_COUNT, MAX_LABEL_LENGTH, label
from trainmaster.images.domain.endpoint import is_endpoint_pool, is_url, pool_parts

LONGEST = timedelta(days=3_653)
"""Ten years: no duration of the settings is longer."""
MAX_HOLD = timedelta(days=7)
MAX_RESERVATIONS = 100
MAX_ACTIONS = 500
"""Starts and preemptions of one pass; each takes calls of SageMaker, and a Lambda function ends after 15 minutes."""
MAX_SHARES = 200
"""All settings are one row of the table, which has at most 400 KB."""
MAX_ROLES = 100
MAX_PATTERNS = 100
LARGEST_NUMBER = 1e12
MAX_ENDPOINT_LENGTH = 700
"""Bytes of the name of an endpoint's pool: no job waits for a longer one."""
_ZERO = timedelta(0)


def policy_problems(policy: Policy, pools: Mapping[str, Pool], catalogue: Catalogue = AS_SHIPPED) -> Iterator[Problem]:
    """Everything wrong with the settings of a queue that has these pools; none where all is well.

    Args:
        policy: the settings.
        pools: the queue's.
        catalogue: what is known of instance types.
    """
    yield from _whole("reservations", policy.reservations, MAX_RESERVATIONS)
    yield from _period("patienceSeconds", policy.patience)
    yield from _preemption_problems(policy.preemption, policy.limits)
    yield from _limit_problems(policy.limits)
    yield from _period("usageHalfLifeSeconds", policy.usage_half_life)
    for failure, retry in policy.retries.items():
        yield from _retry_problems(f"retries.{failure}", retry)
    yield from _period("holdForSeconds", policy.hold_for, MAX_HOLD)
    yield from _part("cpuWeight", policy.cpu_weight)
    yield from _expansion_problems(policy.expansion, catalogue)
    if not _is_number(policy.resizes.payback):
        wrong = f"resizes.payback is {shown(policy.resizes.payback)}."
        yield Problem("resizes.payback", wrong, "Give a number from 0 on; 2 is usual.")
    yield from _whole("mostActions", policy.most_actions, MAX_ACTIONS, least=1)
    if len(policy.shares) > MAX_SHARES:
        wrong = f"There are {len(policy.shares)} shares; a queue has at most {MAX_SHARES}."
        yield Problem("shares", wrong, "Put teams together.")
    for name, share in policy.shares.items():
        yield from _share_problems(f"shares.{name}", share, pools)
    yield from _overdrawn(policy, pools)


def _preemption_problems(rules: Preemption, limits: Limits) -> Iterator[Problem]:
    within = (
        ("minRuntime", rules.min_runtime, limits.longest_min_runtime),
        ("cooldown", rules.cooldown, limits.longest_cooldown),
    )
    for name, span, longest in within:
        field, limit = f"preemption.{name}Seconds", f"limits.longest{name[0].upper()}{name[1:]}Seconds"
        wrong = [*_span(field, span)]
        yield from wrong
        if not wrong and span > longest:
            beyond = f"{field} is {_number(span)}, more than {limit}, which is {_number(longest)}."
            yield Problem(field, beyond, "Lower it, or raise the limit.")
    yield from _span("preemption.delaySeconds", rules.delay)
    if rules.most is not None:
        yield from _whole("preemption.most", rules.most, LARGEST_COUNT)


def _expansion_problems(rules: Expansion, catalogue: Catalogue) -> Iterator[Problem]:
    if len(rules.types) > MAX_PATTERNS:
        yield Problem("expansion.types", f"There are {len(rules.types)} patterns.", f"Give at most {MAX_PATTERNS}.")
    for index, pattern in enumerate(rules.types):
        alone = Expansion(types=(pattern,))
        if not any(alone.allows(kind.name) for kind in catalogue.types):
            wrong = f"No instance type that is known matches {shown(pattern)}."
            yield Problem(f"expansion.types[{index}]", wrong, "Give names such as ml.g5.2xlarge or ml.g5.*.")
    wrong_sizes = [
        *_whole("expansion.mostPerType", rules.most_per_type, LARGEST_CAP),
        *_whole("expansion.most", rules.most, LARGEST_CAP),
    ]
    yield from wrong_sizes
    if not wrong_sizes and rules.most_per_type > rules.most:
        wrong = f"expansion.mostPerType is {rules.most_per_type}, more than expansion.most, which is {rules.most}."
        yield Problem("expansion.mostPerType", wrong, "Lower it, or raise expansion.most.")
    if rules.dollars_per_hour is not None and not _is_number(rules.dollars_per_hour):
        wrong = f"expansion.dollarsPerHour is {shown(rules.dollars_per_hour)}."
        yield Problem("expansion.dollarsPerHour", wrong, "Give dollars from 0 on, or null for no bound.")
    if not _is_number(rules.utilisation) or not 0 < rules.utilisation <= 1:
        wrong = f"expansion.utilisation is {shown(rules.utilisation)}."
        yield Problem("expansion.utilisation", wrong, "Give a number more than 0, at most 1; 0.8 is usual.")
    yield from _period("expansion.retireAfterSeconds", rules.retire_after)


def _limit_problems(limits: Limits) -> Iterator[Problem]:
    yield from _span("limits.longestMinRuntimeSeconds", limits.longest_min_runtime)
    yield from _span("limits.longestCooldownSeconds", limits.longest_cooldown)
    yield from _whole("limits.fewestPreemptions", limits.fewest_preemptions, LARGEST_COUNT)


def _retry_problems(path: str, retry: Retry) -> Iterator[Problem]:
    if retry.most is not None:
        yield from _whole(f"{path}.most", retry.most, LARGEST_COUNT)
    yield from _period(f"{path}.firstSeconds", retry.first)
    wrong = [*_period(f"{path}.longestSeconds", retry.longest)]
    yield from wrong
    if not wrong and retry.longest < retry.first:
        beyond = f"{path}.longestSeconds is {_number(retry.longest)}, less than the first wait, {_number(retry.first)}."
        yield Problem(f"{path}.longestSeconds", beyond, "Raise it, or lower firstSeconds.")


def _share_problems(path: str, share: Share, pools: Mapping[str, Pool]) -> Iterator[Problem]:
    if label(share.name) is None:
        wrong = f"{shown(share.name)} is no name of a share."
        hint = f"Use letters, digits, '-', '_' and '.', at most {MAX_LABEL_LENGTH}, the first a letter or digit."
        yield Problem(path, wrong, hint)
    units = {
        "nominal": share.nominal,
        "lends": share.lends,
        "borrows": share.borrows,
        "most": share.most,
        "mostPerUser": share.most_per_user,
    }
    for member, by_pool in units.items():
        yield from _unit_problems(f"{path}.{member}", by_pool, pools)
    yield from _lending_problems(path, share)
    if not _is_number(share.weight):
        wrong = f"The weight of share {share.name} is {shown(share.weight)}."
        yield Problem(f"{path}.weight", wrong, "Give a number from 0 on; 1 is usual.")
    if share.budget is not None:
        yield from _budget_problems(f"{path}.budget", share.budget)
    yield from _role_problems(f"{path}.roles", share.roles)
    for index, name in enumerate(share.prefers):
        yield from _unknown_pool(f"{path}.prefers[{index}]", name, pools)


def _unit_problems(path: str, by_pool: Units, pools: Mapping[str, Pool]) -> Iterator[Problem]:
    for name, count in by_pool.items():
        if is_endpoint_pool(name):
            yield from _endpoint_problems(f"{path}.{name}", name)
        else:
            yield from _unknown_pool(f"{path}.{name}", name, pools)
        yield from _whole(f"{path}.{name}", count, LARGEST_CAP)


def _endpoint_problems(path: str, name: str) -> Iterator[Problem]:
    """Endpoints are pools only as long as image jobs need them, so what is said of one waits until then."""
    key, variant = pool_parts(name)
    if not key or not (variant or is_url(key)) or not name.isprintable() or len(name.encode()) > MAX_ENDPOINT_LENGTH:
        hint = "Name it endpoint/<name>/<variant>, or endpoint/<url> for a model behind a URL: see GET /pools."
        yield Problem(path, f"{shown(name)} is no endpoint's pool.", hint)


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
            wrong = f"Share {share.name} reserves what is its own, so it lends nothing."
            yield Problem(f"{path}.lends.{name}", wrong, "Leave lends out, or set lending to lend.")
        elif count > own:
            wrong = f"Share {share.name} lends {count} x {name}, more than its own, which are {own}."
            yield Problem(f"{path}.lends.{name}", wrong, f"Give at most {own}, or raise nominal.")
    if share.lending is not Lending.LEND_AND_BORROW:
        for name in share.borrows:
            wrong = f"Share {share.name} does not borrow: its lending is {share.lending}."
            yield Problem(f"{path}.borrows.{name}", wrong, "Leave borrows out, or set lending to lend-and-borrow.")


def _budget_problems(path: str, budget: Budget) -> Iterator[Problem]:
    if budget.gpu_hours is None and budget.dollars is None:
        yield Problem(path, "The budget bounds nothing.", "Give gpuHours, dollars or both, or no budget.")
    for member, amount in (("gpuHours", budget.gpu_hours), ("dollars", budget.dollars)):
        if amount is not None and not _is_number(amount):
            yield Problem(f"{path}.{member}", f"{member} is {shown(amount)}.", "Give a number from 0 on.")
    yield from _period(f"{path}.periodSeconds", budget.period)


def _role_problems(path: str, roles: tuple[str, ...]) -> Iterator[Problem]:
    if len(roles) > MAX_ROLES:
        yield Problem(path, f"There are {len(roles)} patterns.", f"Give at most {MAX_ROLES}; '*' stands for any name.")
    for index, pattern in enumerate(roles):
        if not is_caller_pattern(pattern):
            wrong = f"{shown(pattern)} matches no caller."
            hint = "Give a caller's ARN, such as arn:aws:sts::111122223333:assumed-role/vision-*."
            yield Problem(f"{path}[{index}]", wrong, hint)


def _overdrawn(policy: Policy, pools: Mapping[str, Pool]) -> Iterator[Problem]:
    """Shares that own more of a pool together than there is; the last of them is to blame."""
    owned = total(share.nominal for share in policy.shares.values())
    for name in sorted(owned.keys() & pools.keys()):
        if owned[name] > pools[name].cap:
            last = [share.name for share in policy.shares.values() if share.nominal.get(name)][-1:]
            wrong = f"The shares own {owned[name]} x {name} together; the pool's cap is {pools[name].cap}."
            yield Problem(f"shares.{''.join(last)}.nominal.{name}", wrong, "Lower what they own, or raise the cap.")


def _period(field: str, span: timedelta, longest: timedelta = LONGEST) -> Iterator[Problem]:
    """A duration that cannot be nothing."""
    if not _ZERO < span <= longest:
        yield _out_of_range(field, span, f"Give seconds: more than 0, at most {_number(longest)}.")


def _span(field: str, span: timedelta) -> Iterator[Problem]:
    if not _ZERO <= span <= LONGEST:
        yield _out_of_range(field, span, f"Give seconds: from 0 to {_number(LONGEST)}.")


def _out_of_range(field: str, span: timedelta, hint: str) -> Problem:
    return Problem(field, f"{field} is {_number(span)}.", hint)


def _whole(field: str, number: object, most: int, least: int = 0) -> Iterator[Problem]:
    # A bool is an int to Python.
    if type(number) is not int or not least <= number <= most:
        yield Problem(field, f"{field} is {shown(number)}.", f"Give a whole number from {least} to {most}.")


def _part(field: str, number: object) -> Iterator[Problem]:
    """A part of a whole."""
    if not _is_number(number) or not 0 <= number <= 1:
        yield Problem(field, f"{field} is {shown(number)}.", "Give a number from 0 to 1.")


def _is_number(number: object) -> TypeGuard[float]:
    """Whether it is one from 0 on that everybody can read and write: neither a bool nor infinite nor none at all."""
    if isinstance(number, bool) or not isinstance(number, int | float):
        return False
    return math.isfinite(number) and 0 <= number <= LARGEST_NUMBER


def _number(span: timedelta) -> str:
    """Seconds, as the settings say them."""
    return f"{span.total_seconds():.15g}"
