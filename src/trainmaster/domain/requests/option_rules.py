"""Contradictions between options, and limits of the queue on them. `options` checks each option alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta

from trainmaster.domain.policy.settings import Policy
from trainmaster.domain.requests.elastic.bounds import elastic_problems
from trainmaster.domain.requests.fields import Problem, text
from trainmaster.domain.requests.options import Options
from trainmaster.domain.requests.tag_names import OPTION_PREFIX
from trainmaster.domain.requests.tags import gives, option_field
from trainmaster.domain.times import clock

Object = Mapping[str, object]


def option_problems(request: Object, options: Options) -> Iterator[Problem]:
    """Yield options that contradict each other or have no effect."""
    if text(request, "TrainingJobName") in options.after:
        yield _problem(request, "after", "The job would wait for itself.", "Name other jobs.")
    if not options.after:
        yield from _needs(request, "after-failure", "after")
    if options.resources is None:
        yield from _needs(request, "instances", "resources")
    if options.group is None:
        yield from _needs(request, "max-concurrent", "group")
    if options.not_before and options.deadline and options.deadline <= options.not_before:
        wrong = f"The deadline is {clock(options.deadline)}, not after not-before, {clock(options.not_before)}."
        yield _problem(request, "deadline", wrong, "Specify a later deadline or an earlier not-before.")
    yield from elastic_problems(request, options)


def limit_problems(request: Object, options: Options, policy: Policy) -> Iterator[Problem]:
    """Yield options beyond the limits of the queue (`Policy.limits`)."""
    limits = policy.limits
    yield from _too_long(request, "min-runtime", options.min_runtime, limits.max_min_runtime)
    yield from _too_long(request, "cooldown", options.cooldown, limits.max_cooldown)
    # While it takes its time to shrink, it keeps capacity from others, as one does that may not be preempted yet.
    yield from _too_long(
        request, "graceful-shutdown-timeout", options.graceful_shutdown_timeout, limits.max_min_runtime
    )
    min_delay = policy.preemption.delay
    if options.preemption_delay is not None and options.preemption_delay < min_delay:
        wrong = f"A job of this queue cannot preempt other jobs before it has waited {_words(min_delay)}."
        yield _problem(request, "preemption-delay", wrong, f"Specify at least {_words(min_delay)}, or omit the tag.")
    fewest = limits.min_max_preemptions
    if options.max_preemptions is not None and options.max_preemptions < fewest:
        wrong = f"In this queue, 'max-preemptions' must be at least {fewest}."
        yield _problem(request, "max-preemptions", wrong, f"Specify at least {fewest}, or tag it preemptible=false.")


def _too_long(request: Object, name: str, asked: timedelta | None, longest: timedelta) -> Iterator[Problem]:
    if asked is not None and asked > longest:
        wrong = f"The option '{OPTION_PREFIX}{name}' is {_words(asked)}; this queue allows at most {_words(longest)}."
        yield _problem(request, name, wrong, f"Specify at most {_words(longest)}.")


def _needs(request: Object, name: str, other: str) -> Iterator[Problem]:
    if gives(request, name):
        wrong = f"The option '{OPTION_PREFIX}{name}' has no effect without '{OPTION_PREFIX}{other}'."
        yield _problem(request, name, wrong, f"Also specify '{OPTION_PREFIX}{other}', or omit both.")


def _problem(request: Object, name: str, wrong: str, hint: str) -> Problem:
    return Problem(option_field(request, name), wrong, hint)


def _words(span: timedelta) -> str:
    """Return a duration as tags write it."""
    minutes, seconds = divmod(int(span.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "m"), (seconds, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number) or "0s"
