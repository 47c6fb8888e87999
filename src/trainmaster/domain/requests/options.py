"""Options of a job in `trainmaster:` tags: their names, their values and their meaning.

A new option is one entry of `OPTIONS` and one member of `Options`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from trainmaster.domain.capacity.resources import Resources
from trainmaster.domain.elastic.sizes import Hook
from trainmaster.domain.jobs.job import ParentRule
from trainmaster.domain.policy.declaration import MAX_COUNT
from trainmaster.domain.policy.settings import DEFAULT_SHARE, FailureClass, PreemptionOverrides
from trainmaster.domain.requests.elastic.sizes import sizes_in, wrong_with_sizes
from trainmaster.domain.requests.notify import notified_words, wrong_with_words
from trainmaster.domain.requests.resource_text import resources_in, wrong_with
from trainmaster.domain.requests.values import (
    EVENT,
    MAX_LABEL_LENGTH,
    MAX_NAMES,
    MAX_POOLS,
    count,
    duration,
    job_names,
    label,
    moment,
    pool_names,
    positive,
    resize_target,
    switch,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of a request; None where the rule of the queue applies.

    Attributes:
        priority: Higher runs first; from the tag `priority` (article, "table for training job requests").
        preemptible: Whether the queue may preempt the job for one of higher priority and resume it later.
        share: Share whose quota the job uses.
        pools: Pools where it may run, best first; empty if the request itself names its capacity.
        resources: Resources that each of its instances must have; with these the request needs no instance type.
        instances: Number of such instances.
        min_runtime: Minimum time that it works before it can be preempted.
        cooldown: The same after it has been resumed.
        preemption_delay: Minimum wait before it can preempt others.
        max_preemptions: Preemptions after which it is protected.
        not_before: Earliest time at which the queue considers it.
        deadline: Time by which it has to end.
        after: Jobs that have to end first.
        after_failure: Treatment of the job if one of those does not complete.
        group: Group of the job.
        max_concurrent: Maximum jobs of the group that run at the same time.
        retries: Number of retries by failure class.
        min_instances, max_instances: Bounds of the size of an elastic job.
        instance_step: Difference between its sizes.
        instance_values: All its sizes, instead of a step.
        resize_by: Hook that changes its size.
        resize_target: Function or event that changes its size, for a custom hook.
        scaling_timeout, graceful_shutdown_timeout, faulty_scale_down_timeout, scale_up_snooze: See `Elastic`.
        max_restarts, eval_period, max_total_restarts, restarts_before_full, max_full_restarts: See `RestartBudget`.
        notify: Changes that the deployment's topic is notified of.
    """

    priority: int = 0
    preemptible: bool = True
    share: str = DEFAULT_SHARE
    pools: tuple[str, ...] = ()
    resources: Resources | None = None
    instances: int | None = None
    min_runtime: timedelta | None = None
    cooldown: timedelta | None = None
    preemption_delay: timedelta | None = None
    max_preemptions: int | None = None
    not_before: datetime | None = None
    deadline: datetime | None = None
    after: tuple[str, ...] = ()
    after_failure: ParentRule = ParentRule.CANCEL
    group: str | None = None
    max_concurrent: int | None = None
    retries: Mapping[FailureClass, int] = field(default_factory=dict)
    min_instances: int | None = None
    max_instances: int | None = None
    instance_step: int | None = None
    instance_values: tuple[int, ...] = ()
    resize_by: Hook = Hook.RESTART
    resize_target: str | None = None
    scaling_timeout: timedelta | None = None
    graceful_shutdown_timeout: timedelta | None = None
    faulty_scale_down_timeout: timedelta | None = None
    scale_up_snooze: timedelta | None = None
    max_restarts: int | None = None
    eval_period: timedelta | None = None
    max_total_restarts: int | None = None
    restarts_before_full: int | None = None
    max_full_restarts: int | None = None
    notify: tuple[str, ...] = ()

    @property
    def preemption_overrides(self) -> PreemptionOverrides:
        """Preemption rules of its own."""
        return PreemptionOverrides(
            min_runtime=self.min_runtime,
            cooldown=self.cooldown,
            delay=self.preemption_delay,
            max_preemptions=self.max_preemptions,
        )


@dataclass(frozen=True, slots=True)
class Option:
    """Reader of an option.

    Attributes:
        read: Returns the value of a text; None if it is invalid.
        takes: Valid values, in words that follow "It must be".
        wrong: Returns the problem with an invalid text, and a hint, for options whose texts have parts.
    """

    read: Callable[[str], object | None]
    takes: str
    wrong: Callable[[str], tuple[str, str]] | None = None


def _parent_rule(text: str) -> ParentRule | None:
    return next((rule for rule in ParentRule if rule == text), None)


def _hook(text: str) -> Hook | None:
    return next((hook for hook in Hook if hook == text), None)


def _period(text: str) -> timedelta | None:
    return duration(text) or None


_DURATION = "a time of at most 28 days: seconds such as '1800', or units such as '30m', '2h', '1h30m' or '1d'"
_MOMENT = "a time in ISO 8601 with its time zone, such as '2026-11-22T08:00:00Z' or '2026-11-22T09:00:00+01:00'"
_LABEL = f"a name of letters, digits, '-', '_' and '.', at most {MAX_LABEL_LENGTH}, the first a letter or digit"
_FROM_0 = f"a whole number from 0 to {MAX_COUNT}"
_FROM_1 = f"a whole number from 1 to {MAX_COUNT}"
_TRIES = f"the maximum number of retries: a whole number from 0 to {MAX_COUNT}"

OPTIONS: Mapping[str, Option] = {
    "preemptible": Option(switch, "'true' or 'false'"),
    "share": Option(label, _LABEL),
    "pools": Option(pool_names, f"1 to {MAX_POOLS} names of pools, best first, with spaces or '+' between them"),
    "resources": Option(resources_in, "members such as 'accelerators=8+vcpus=96'", wrong_with),
    "instances": Option(positive, _FROM_1),
    "min-runtime": Option(duration, _DURATION),
    "cooldown": Option(duration, _DURATION),
    "preemption-delay": Option(duration, _DURATION),
    "max-preemptions": Option(count, _FROM_0),
    "not-before": Option(moment, _MOMENT),
    "deadline": Option(moment, _MOMENT),
    "after": Option(job_names, f"1 to {MAX_NAMES} names of jobs, with spaces or '+' between them"),
    "after-failure": Option(_parent_rule, "'cancel', 'fail' or 'run'"),
    "group": Option(label, _LABEL),
    "max-concurrent": Option(positive, _FROM_1),
    **{f"retry-{failure}": Option(count, _TRIES) for failure in FailureClass},
    "min-instances": Option(positive, _FROM_1),
    "max-instances": Option(positive, _FROM_1),
    "instance-step": Option(positive, _FROM_1),
    "instance-values": Option(sizes_in, "sizes such as '2+4+8'", wrong_with_sizes),
    "resize-by": Option(_hook, "'restart', 'members' or 'custom'"),
    "resize-target": Option(resize_target, f"the ARN of a Lambda function, or '{EVENT}'"),
    "scaling-timeout": Option(duration, _DURATION),
    "graceful-shutdown-timeout": Option(duration, _DURATION),
    "faulty-scale-down-timeout": Option(duration, _DURATION),
    "scale-up-snooze": Option(duration, _DURATION),
    "max-restarts": Option(count, _FROM_0),
    "eval-period": Option(_period, f"{_DURATION}, longer than 0"),
    "max-total-restarts": Option(count, _FROM_0),
    "restarts-before-full": Option(positive, _FROM_1),
    "max-full-restarts": Option(count, _FROM_0),
    "notify": Option(notified_words, "words such as 'start+preempted+end'", wrong_with_words),
}
_RETRIES = {f"retry-{failure}": failure for failure in FailureClass}


def options_from(priority: int, texts: Mapping[str, str]) -> Options:
    """Return the options of valid texts by option name."""
    read: dict[str, Any] = {name: OPTIONS[name].read(text) for name, text in texts.items()}
    retries = {failure: read.pop(name) for name, failure in _RETRIES.items() if name in read}
    return Options(priority=priority, retries=retries, **{name.replace("-", "_"): each for name, each in read.items()})
