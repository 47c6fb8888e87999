"""Checks whether a deployed queue can work for the caller; each finding says what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from trainmaster.client.api.credentials import credentials_error, error_code
from trainmaster.client.api.errors import ApiError, Forbidden
from trainmaster.domain.release import VERSION, service_problem

if TYPE_CHECKING:
    from trainmaster.client.api.client import ApiClient
    from trainmaster.client.api.core_session import CoreSession

Level = Literal["ok", "warning", "error", "unknown"]
MAX_SKEW: Final = timedelta(seconds=60)
"""AWS refuses signatures that are five minutes off (IAM user guide, "Troubleshoot Signature Version 4")."""
SERVICES: Final = ("apigateway", "cloudwatch", "dynamodb", "events", "lambda", "sagemaker", "scheduler", "sqs")
"""Services without which the template cannot work in a Region."""
_ENDED_WELL: Final = frozenset({"CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "IMPORT_COMPLETE"})
_QUOTAS: Final[Mapping[str, str]] = {
    "on-demand": "{} for training job usage",
    "spot": "{} for spot training job usage",
}
"""Names of SageMaker's quotas of instances in Service Quotas, by the kind of a pool."""
_DENIED: Final = ("AccessDenied", "UnauthorizedOperation", "AuthorizationError")
_MAX_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of a check.

    Attributes:
        check: name of the check.
        level: "error" if the queue cannot work as it is, "unknown" if it could not be checked.
        message: what was found.
        action: what to do about it; None if nothing is to be done.
    """

    check: str
    level: Level
    message: str
    action: str | None = None


@dataclass(frozen=True, slots=True)
class Subject:
    """The queue to examine, with the identity that examines it.

    Attributes:
        api: client of the queue's API.
        session: of the caller's AWS identity.
        stack: name of the queue's CloudFormation stack.
        now: the time of day, with a zone.
    """

    api: ApiClient
    session: CoreSession
    stack: str
    now: Callable[[], datetime]

    @property
    def region(self) -> str:
        """The Region of the queue. Raises NotConfigured."""
        return self.api.region

    def client(self, service: str) -> Any:
        """Return a client for a service in the queue's Region."""
        return self.session.client(service, region_name=self.region)


def examine(subject: Subject) -> Iterator[Finding]:
    """Yield the findings of all checks; those that need a failed one are reported as not checked."""
    failed: set[str] = set()
    for name, (check, needs) in CHECKS.items():
        if missing := [each for each in needs if each in failed]:
            failed.add(name)
            yield Finding(name, "unknown", "Not checked.", f"Correct first: {', '.join(missing)}.")
            continue
        for finding in _findings(name, check, subject):
            if finding.level == "error":
                failed.add(name)
            yield finding


def _findings(name: str, check: Callable[[Subject], Iterator[Finding]], subject: Subject) -> list[Finding]:
    """Return the findings of a check; an error of AWS or the API is one."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        return list(check(subject))
    except ApiError as error:
        return [Finding(name, "error", error.message, error.hint)]
    except (BotoCoreError, ClientError) as error:
        return [_aws_finding(name, error, subject)]


def _aws_finding(name: str, error: Exception, subject: Subject) -> Finding:
    """Return the finding for a refused or failed call to AWS."""
    if (known := credentials_error(error, subject.session)) is not None:
        return Finding(name, "error", known.message, known.hint)
    operation = getattr(error, "operation_name", "the call")
    if error_code(error).startswith(_DENIED):
        message = f"Not checked: your identity may not call {operation}."
        return Finding(name, "unknown", message, f"Allow {PERMISSIONS[name]}, or ask someone who has it to run this.")
    return Finding(name, "unknown", f"Not checked: {str(error).rstrip('.')}.", "Check your network and the Region.")


def _credentials(subject: Subject) -> Iterator[Finding]:
    identity = subject.client("sts").get_caller_identity()
    yield Finding("credentials", "ok", f"You are {identity['Arn']}.")


def _clock(subject: Subject) -> Iterator[Finding]:
    answer = subject.client("sts").get_caller_identity()
    date = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
    if date is None:
        yield Finding("clock", "unknown", "Not checked: AWS's answer has no date.")
        return
    skew = subject.now() - parsedate_to_datetime(date)
    seconds = abs(round(skew.total_seconds()))
    if abs(skew) <= MAX_SKEW:
        yield Finding("clock", "ok", "The clock of this machine agrees with AWS's.")
        return
    side = "ahead of" if skew > timedelta() else "behind"
    message = f"The clock of this machine is {seconds} seconds {side} AWS's, which refuses requests from 300 on."
    yield Finding("clock", "warning" if seconds < 240 else "error", message, "Synchronise it, for example with NTP.")


def _region(subject: Subject) -> Iterator[Finding]:
    region = subject.region
    missing = [name for name in SERVICES if not _is_in(subject, name, region)]
    if not missing:
        yield Finding("region", "ok", f"{region} has all services that the queue needs.")
        return
    message = f"This release of botocore knows no endpoint in {region} of: {', '.join(missing)}."
    yield Finding("region", "warning", message, "Update boto3; if it stays so, deploy to another Region.")


def _is_in(subject: Subject, service: str, region: str) -> bool:
    return region in subject.session.regions(service, region)


def _address(subject: Subject) -> Iterator[Finding]:
    yield Finding("address", "ok", f"The API is {subject.api.address.url}.")


def _permissions(subject: Subject) -> Iterator[Finding]:
    subject.api.pools()
    try:
        subject.api.audit(limit=1)
    except Forbidden:
        yield Finding("permissions", "ok", "You may read the queue; you are not one of its admins.")
        return
    yield Finding("permissions", "ok", "You may read the queue, and you are one of its admins.")


def _version(subject: Subject) -> Iterator[Finding]:
    service = subject.api.service_version
    if service is None:
        yield Finding("version", "unknown", "The service does not report its version.", "Run `trainmaster upgrade`.")
        return
    if problem := service_problem(service, VERSION):
        yield Finding("version", "warning", problem, "Run `pip install --upgrade trainmaster`, then compare.")
    elif service != VERSION:
        message = f"The service has version {service}, this client {VERSION}; they work together."
        yield Finding("version", "ok", message)
    else:
        yield Finding("version", "ok", f"Client and service have version {service}.")


def _schema(subject: Subject) -> Iterator[Finding]:
    """Read the manager's state: the service answers `UnsupportedSchema` if a newer release has written the table."""
    subject.api.manager()
    yield Finding("schema", "ok", "The service reads the schema of the table.")


def _manager(subject: Subject) -> Iterator[Finding]:
    pause = subject.api.manager()["pause"]
    if pause is None:
        yield Finding("manager", "ok", "The manager is not paused.")
        return
    message = f"The manager is paused ({pause['reason']}): no job starts."
    yield Finding("manager", "warning", message, "Run `trainmaster resume` when the work is done.")


def _pools(subject: Subject) -> Iterator[Finding]:
    pools = subject.api.pools()["pools"]
    usable = [pool["name"] for pool in pools if pool["cap"] and pool["state"] == "in use"]
    if usable:
        yield Finding("pools", "ok", f"Pools in use: {_listed(usable)}.")
    else:
        yield Finding("pools", "error", "No pool can run a job.", "Set a cap: `trainmaster pools set TYPE=N`.")


def _quotas(subject: Subject) -> Iterator[Finding]:
    caps = _caps(subject)
    pages = subject.client("service-quotas").get_paginator("list_service_quotas").paginate(ServiceCode="sagemaker")
    quotas = {quota["QuotaName"]: int(quota["Value"]) for page in pages for quota in page["Quotas"]}
    low = {name: cap for name, cap in caps.items() if name in quotas and quotas[name] < cap}
    for name, cap in low.items():
        message = f"The quota {name!r} is {quotas[name]}, and the caps of its pools add up to {cap}."
        action = "Request an increase in the console of Service Quotas, or lower the cap (`trainmaster pools set`)."
        yield Finding("quotas", "error" if not quotas[name] else "warning", message, action)
    unknown = [name for name in caps if name not in quotas]
    if unknown:
        message = f"Service Quotas does not list: {_listed(unknown)}."
        yield Finding("quotas", "unknown", message, "Compare the caps with the quotas of the account yourself.")
    if not low and not unknown:
        yield Finding("quotas", "ok", "The quotas of the account cover the caps of all pools.")


def _caps(subject: Subject) -> dict[str, int]:
    """Return the sum of the caps by the name of their quota; other kinds of pools have none."""
    caps: dict[str, int] = {}
    for pool in subject.api.pools()["pools"]:
        if pool["cap"] and pool["kind"] in _QUOTAS:
            name = _QUOTAS[pool["kind"]].format(pool["instanceType"])
            caps[name] = caps.get(name, 0) + pool["cap"]
    return caps


def _stack(subject: Subject) -> Iterator[Finding]:
    from botocore.exceptions import ClientError

    try:
        described = subject.client("cloudformation").describe_stacks(StackName=subject.stack)
    except ClientError as error:
        if "does not exist" not in str(error):
            raise
        message = f"There is no stack {subject.stack} in {subject.region}."
        yield Finding("stack", "unknown", message, "Name the queue's stack with --stack.")
        return
    status = described["Stacks"][0]["StackStatus"]
    if status in _ENDED_WELL:
        yield Finding("stack", "ok", f"The stack {subject.stack} is in the state {status}.")
    elif status.endswith("_IN_PROGRESS"):
        yield Finding("stack", "warning", f"The stack {subject.stack} is in the state {status}.", "Wait for its end.")
    else:
        action = "See its events in the console of CloudFormation; `trainmaster deploy` continues it where it can."
        yield Finding("stack", "error", f"The stack {subject.stack} is in the state {status}.", action)


def _alarms(subject: Subject) -> Iterator[Finding]:
    pages = subject.client("cloudwatch").get_paginator("describe_alarms").paginate(AlarmNamePrefix=f"{subject.stack}-")
    alarms = [alarm for page in pages for alarm in page["MetricAlarms"]]
    if not alarms:
        message = f"No alarm has a name that begins with {subject.stack}-."
        yield Finding("alarms", "unknown", message, "Name the queue's stack with --stack.")
        return
    ringing = [alarm for alarm in alarms if alarm["StateValue"] == "ALARM"]
    for alarm in ringing:
        text = alarm.get("AlarmDescription") or alarm["AlarmName"]
        yield Finding("alarms", "error", f"Alarm: {text}", "See its section in docs/how-to/operate.md.")
    if not any(alarm.get("AlarmActions") for alarm in alarms):
        message = f"None of the {len(alarms)} alarms notifies anyone."
        yield Finding("alarms", "warning", message, "Deploy with --parameter AlarmTopicArn=ARN of an SNS topic.")
    elif not ringing:
        yield Finding("alarms", "ok", f"None of the {len(alarms)} alarms is raised.")


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _MAX_SHOWN} more" if len(names) > _MAX_SHOWN else ""
    return ", ".join(sorted(names)[:_MAX_SHOWN]) + more


_Check = tuple[Callable[[Subject], Iterator[Finding]], tuple[str, ...]]
CHECKS: Final[Mapping[str, _Check]] = {
    "address": (_address, ()),
    "credentials": (_credentials, ("address",)),
    "clock": (_clock, ("credentials",)),
    "region": (_region, ("address",)),
    "permissions": (_permissions, ("address", "credentials")),
    "schema": (_schema, ("permissions",)),
    "version": (_version, ("permissions",)),
    "manager": (_manager, ("permissions", "schema")),
    "pools": (_pools, ("permissions",)),
    "quotas": (_quotas, ("permissions", "pools")),
    "stack": (_stack, ("credentials",)),
    "alarms": (_alarms, ("credentials",)),
}
"""The checks in their order, each with those that it needs."""
PERMISSIONS: Final[Mapping[str, str]] = {
    "credentials": "sts:GetCallerIdentity",
    "clock": "sts:GetCallerIdentity",
    "quotas": "servicequotas:ListServiceQuotas",
    "stack": "cloudformation:DescribeStacks",
    "alarms": "cloudwatch:DescribeAlarms",
    "address": "cloudformation:DescribeStacks",
}
"""Permissions of IAM that checks of AWS need."""
