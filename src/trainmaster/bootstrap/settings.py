"""A deployment's settings, read from the environment into one frozen value; unknown and wrong variables are errors."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from trainmaster.domain.access.ceilings import NO_CEILINGS, Ceilings
from trainmaster.domain.access.patterns import EVERYONE, pattern_problem
from trainmaster.domain.access.request_policy import RequestPolicy
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.errors import InvalidRequest
from trainmaster.domain.events.types import EventType, event_types
from trainmaster.domain.policy.declaration import members_of
from trainmaster.domain.policy.settings import Policy
from trainmaster.service.auditing.audit import DEFAULT_RETENTION
from trainmaster.service.auditing.retention import DEFAULT_JOB_RETENTION

PREFIX = "TRAINMASTER_"
_TIMEOUT = next(member for member in members_of(Policy) if member.field.name == "reservation_timeout")

_MAX_DAYS = 3_650
"""As the parameter of the template."""


@dataclass(frozen=True, slots=True)
class Settings:
    """A deployment's settings; each is the environment variable of the same name in capitals, after `TRAINMASTER_`.

    Attributes:
        queue: the queue's name, which tags every attempt.
        table: the DynamoDB table.
        rendezvous_table: the DynamoDB table in which the nodes of elastic jobs meet.
        wake_queue_url: the SQS FIFO queue that feeds the manager.
        dead_letter_queue_url: where messages go that cannot be handled.
        senders: unique IDs of the IAM roles whose wakes and ticks the manager obeys, separated by commas; empty if
            the deployment does not tell senders, as a simulator does not.
        pools: the deployment's pools, as `ml.p5.48xlarge=2,ml.g5.2xlarge=8`.
        allowed_roles: role ARN patterns that the queue may pass, separated by commas.
        role_mapping: JSON object, caller ARN pattern to list of role ARN patterns.
        check_pass_role: whether IAM is asked if the caller may pass the role.
        check_create_training_job: whether IAM is asked if the caller may create the training job.
        training_jobs: ARN of the queue's training jobs up to their name, for this question.
        request_policy: JSON object, rules for every request (`domain/access/request_policy.py`).
        admins: patterns of the queue admins; empty for the callers that IAM allows to update the stack.
        viewers: patterns of the callers that may read the queue.
        ceilings: what the API cannot exceed, as `priority=100,instances=64,dollarsPerHour=500`.
        stack: ARN of the deployment's CloudFormation stack; "" if there is none.
        allow_non_preemptible: whether `trainmaster:preemptible=false` is honored.
        reservation_timeout_seconds: the setting `reservationTimeoutSeconds` until PUT /settings changes it.
        learn_instance_types: whether the manager asks EC2, Service Quotas and the price list once a day.
        job_retention_days: days for which ended jobs are kept.
        audit_retention_days: days for which audit entries are kept.
        events: types of the events that go to the event bus, as `ended,preempted`, `all` or `none`.
        event_bus: name or ARN of the event bus; "" for the account's default bus.
        notification_topic: ARN of the SNS topic for what jobs ask to be notified of; "" for none.
        step_functions: whether tasks of Step Functions wait for jobs.
        pipelines: whether callback steps of SageMaker Pipelines wait for jobs.
        pool_metrics: whether the manager emits series of metrics for each pool and each share.
        job_kinds: JSON object, name of each other kind of jobs that the deployment has to an object of its settings;
            empty for training jobs alone.
    """

    queue: str
    table: str
    rendezvous_table: str = ""
    wake_queue_url: str = ""
    dead_letter_queue_url: str = ""
    senders: tuple[str, ...] = ()
    pools: str = ""
    allowed_roles: tuple[str, ...] = ()
    role_mapping: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    check_pass_role: bool = False
    check_create_training_job: bool = False
    training_jobs: str = ""
    request_policy: RequestPolicy = field(default_factory=RequestPolicy)
    admins: tuple[str, ...] = ()
    viewers: tuple[str, ...] = (EVERYONE,)
    stack: str = ""
    ceilings: Ceilings = NO_CEILINGS
    allow_non_preemptible: bool = True
    reservation_timeout_seconds: int = 3600
    learn_instance_types: bool = False
    job_retention_days: int = DEFAULT_JOB_RETENTION.days
    audit_retention_days: int = DEFAULT_RETENTION.days
    events: frozenset[EventType] = frozenset()
    event_bus: str = ""
    notification_topic: str = ""
    step_functions: bool = False
    pipelines: bool = False
    pool_metrics: bool = False
    job_kinds: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Settings:
        """Return the settings in an environment. Raises `InvalidRequest` naming an unknown or wrong variable."""
        given = {name.removeprefix(PREFIX): text for name, text in environ.items() if name.startswith(PREFIX)}
        unknown = sorted(given.keys() - _READERS.keys())
        if unknown:
            field_ = PREFIX + unknown[0]
            known = ", ".join(PREFIX + name for name in _READERS)
            raise InvalidRequest(f"unknown setting {field_}", field=field_, hint=f"known: {known}")
        for name, output in (("QUEUE", "QueueName"), ("TABLE", "TableName")):
            if not given.get(name):
                raise _missing(PREFIX + name, output)
        read = {name.lower(): _read(name, text) for name, text in given.items()}
        return cls(**read)

    def with_kinds(self, job_kinds: Mapping[str, Mapping[str, str]]) -> Settings:
        """Return the settings with these kinds of jobs."""
        return replace(self, job_kinds=job_kinds)


def _missing(variable: str, output: str) -> InvalidRequest:
    """Return the error for a missing variable; its message contains the remedy, since logs show no hints."""
    told = f"template.yaml sets it for the functions; elsewhere set it to the output {output} of the stack"
    return InvalidRequest(f"{variable} is not set: {told}", field=variable)


def _read(name: str, text: str) -> Any:
    try:
        return _READERS[name](text)
    except ValueError as error:
        raise InvalidRequest(f"{PREFIX}{name} is wrong: {error}", field=PREFIX + name) from error


def _switch(text: str) -> bool:
    answer = {"true": True, "false": False}.get(text)
    if answer is None:
        raise ValueError(f"{text!r} is neither 'true' nor 'false'")
    return answer


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _mapping(text: str) -> dict[str, tuple[str, ...]]:
    parsed = json.loads(text or "{}")
    if not isinstance(parsed, dict) or not all(
        isinstance(roles, list) and all(isinstance(role, str) for role in roles) for roles in parsed.values()
    ):
        raise ValueError("it must be a JSON object from caller ARN patterns to lists of role ARN patterns")
    for caller in parsed:
        _check_caller(caller)
    return {caller: tuple(roles) for caller, roles in parsed.items()}


def _training_jobs(text: str) -> str:
    if not re.fullmatch(r"arn:aws[a-z-]*:sagemaker:[a-z0-9-]+:[0-9]{12}:training-job/", text, re.ASCII):
        raise ValueError(f"{text!r} is not the beginning of a training job's ARN")
    return text


def _callers(text: str) -> tuple[str, ...]:
    """Return patterns of callers. Raises ValueError for one that can match no caller."""
    patterns = _listed(text)
    for pattern in patterns:
        _check_caller(pattern)
    return patterns


def _check_caller(pattern: str) -> None:
    if (problem := pattern_problem(pattern)) is not None:
        raise ValueError(f"{pattern!r} {problem[0]}. {problem[1]}")


def _kinds(text: str) -> dict[str, dict[str, str]]:
    parsed = json.loads(text or "{}")
    if not isinstance(parsed, dict) or not all(
        isinstance(values, dict) and all(isinstance(value, str) for value in values.values())
        for values in parsed.values()
    ):
        raise ValueError("it must be a JSON object from names of kinds of jobs to objects of texts")
    return parsed


def _seconds(text: str) -> int:
    seconds = int(text)
    if not _TIMEOUT.setting.allows(seconds):
        raise ValueError(f"{seconds} is out of range: specify {_TIMEOUT.wanted()}")
    return seconds


def _days(text: str) -> int:
    days = int(text)
    if not 1 <= days <= _MAX_DAYS:
        raise ValueError(f"{days} is out of range: specify 1 to {_MAX_DAYS} days")
    return days


def parse_pools(text: str) -> dict[str, Pool]:
    """Pools from `ml.p5.48xlarge=2,ml.g5.2xlarge=8`. Raises ValueError saying which part is wrong."""
    pools: dict[str, Pool] = {}
    for part in _listed(text):
        name, equals, cap = part.partition("=")
        if not equals or not cap.strip().isdecimal() or not name.strip().startswith("ml."):
            raise ValueError(f"{part!r} is not of the form ml.TYPE=CAP")
        if name.strip() in pools:
            raise ValueError(f"{name.strip()} is specified twice")
        pools[name.strip()] = Pool(name.strip(), int(cap))
    return pools


def _pools(text: str) -> str:
    parse_pools(text)
    return text


_READERS: Mapping[str, Callable[[str], Any]] = {
    "QUEUE": str,
    "TABLE": str,
    "RENDEZVOUS_TABLE": str,
    "WAKE_QUEUE_URL": str,
    "DEAD_LETTER_QUEUE_URL": str,
    "SENDERS": _listed,
    "POOLS": _pools,
    "ALLOWED_ROLES": _listed,
    "ROLE_MAPPING": _mapping,
    "CHECK_PASS_ROLE": _switch,
    "CHECK_CREATE_TRAINING_JOB": _switch,
    "TRAINING_JOBS": _training_jobs,
    "REQUEST_POLICY": lambda text: RequestPolicy.parse(json.loads(text or "{}")),
    "ADMINS": _callers,
    "VIEWERS": _callers,
    "STACK": str,
    "CEILINGS": Ceilings.parse,
    "ALLOW_NON_PREEMPTIBLE": _switch,
    "RESERVATION_TIMEOUT_SECONDS": _seconds,
    "LEARN_INSTANCE_TYPES": _switch,
    "JOB_RETENTION_DAYS": _days,
    "AUDIT_RETENTION_DAYS": _days,
    "EVENTS": event_types,
    "EVENT_BUS": str,
    "NOTIFICATION_TOPIC": str,
    "STEP_FUNCTIONS": _switch,
    "PIPELINES": _switch,
    "POOL_METRICS": _switch,
    "JOB_KINDS": _kinds,
}
