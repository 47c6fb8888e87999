"""The steps that `deploy` and `upgrade` share: parameters, bundles, upload, change set, execution."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from trainmaster.cli.common.exit_codes import ExitCode
from trainmaster.cli.output.render import as_json, print_error, print_warnings, table
from trainmaster.client.api.config import DEFAULT_STACK, REGION_HINT, STACK_VARIABLE
from trainmaster.client.api.errors import NotConfigured, Refused
from trainmaster.deployment import bucket as buckets
from trainmaster.deployment.bundle import (
    Archive,
    Sources,
    build,
    functions_of,
    packaged,
    template_archive,
    with_defaults,
    with_table_name,
)
from trainmaster.deployment.parameters import as_members, check, missing, own_runtime
from trainmaster.deployment.stack import VERSION_TAG, Change, ChangeSet, Event, Stack, kept_parameters, outputs
from trainmaster.domain.release import VERSION
from trainmaster.domain.text import one_line

if TYPE_CHECKING:
    from trainmaster.cli.common.context import CliContext
    from trainmaster.client.api.core_session import CoreSession

_QUESTIONS: Mapping[str, str] = {
    "Pools": "Instance types and their caps, such as ml.p5.48xlarge=2,ml.g5.2xlarge=8",
    "AllowedRoles": "Execution roles that jobs may name, such as arn:aws:iam::111122223333:role/sagemaker-training-*",
    "Admins": "Admins of the queue, as ARNs of roles or users (empty: all who may update the stack)",
    "VpcEndpointIds": "VPC endpoints of execute-api that reach the API (empty: a public address, authorized by IAM)",
}
_REPLACEMENTS = {"True": "replaced", "Conditional": "may be replaced"}
_PLATFORM = ("Runtime", "Architecture")
_PUBLIC = {"EndpointType": "REGIONAL"}


@dataclass(frozen=True, slots=True)
class Account:
    """The AWS account and Region of a deployment, with the caller's session."""

    session: CoreSession
    region: str
    id: str
    partition: str

    def client(self, service: str) -> Any:
        """Return a client for a service in the Region."""
        return self.session.client(service, region_name=self.region)


@dataclass(frozen=True, slots=True)
class Order:
    """Wishes of a user for a deployment.

    Attributes:
        parameters: those given.
        bucket: the bucket to upload to; None for the default one.
        yes: execute without asking.
        dry_run: show the changes only.
        json: print JSON instead of text.
        template_out: file for the template, instead of a deployment.
    """

    parameters: Mapping[str, str]
    bucket: str | None = None
    yes: bool = False
    dry_run: bool = False
    json: bool = False
    template_out: str | None = None


def stack_name(cli: CliContext) -> str:
    """Return the name of the stack that options or environment select."""
    return cli.target.stack or cli.environ.get(STACK_VARIABLE) or DEFAULT_STACK


def account_of(cli: CliContext) -> Account:
    """Return the account of the caller's credentials. Raises NotConfigured without a Region."""
    session = cli.session(cli.target)
    region = session.region_name
    if not region:
        raise NotConfigured("No AWS Region is configured to deploy to.", hint=REGION_HINT)
    identity = session.client("sts", region_name=region).get_caller_identity()
    return Account(session, region, identity["Account"], identity["Arn"].split(":")[1])


def open_stack(cli: CliContext, account: Account) -> Stack:
    """Return the stack."""
    return Stack(stack_name(cli), account.client("cloudformation"), cli.sleep)


def deploy_stack(cli: CliContext, order: Order, account: Account, stack: Stack) -> None:
    """Create or update the stack as ordered, and print what changes. Raises ApiError."""
    found = stack.describe()
    creates = stack.check_idle(found)
    sources = Sources.here()
    document = sources.document()
    declared = document["Parameters"]
    kept = kept_parameters(None if creates else found, declared)
    given = _completed(cli, order, declared, kept)
    values = {name: str(one.get("Default", "")) for name, one in declared.items()} | kept | given
    if order.template_out is not None:
        # Other tools need not repeat for which platform the code was built.
        document = with_defaults(document, given | {name: values[name] for name in _PLATFORM})
        _hand_over(order, _uploaded(order, account, sources, document, values), document)
        return
    adopts = creates and _has_table(account, values["QueueName"])
    if adopts:
        document = with_table_name(document, values["QueueName"])
    location = _uploaded(order, account, sources, document, values)
    change_set = stack.plan(
        location.url,
        as_members(declared, given, kept),
        _tags(found) | {VERSION_TAG: VERSION},
        creates=creates,
        label=f"trainmaster-{cli.now():%Y%m%d-%H%M%S}",
        adopts=adopts,
    )
    _show(change_set, order)
    executed = bool(change_set.name) and _is_wanted(cli, order, stack, change_set)
    if executed:
        follow(cli, stack.execute(change_set), quiet=order.json)
    _report(stack, change_set, order, executed=executed)


def follow(cli: CliContext, events: Iterable[Event], *, quiet: bool) -> None:
    """Print the events of a stack until its operation has ended; a failure ends the command. Raises typer.Exit."""
    try:
        for event in events:
            if not quiet or event.failed:
                typer.echo(_event_line(cli, event), err=True)
    except Refused as error:
        print_error(error.message)
        raise typer.Exit(ExitCode.JOB_FAILED) from error
    except KeyboardInterrupt:
        typer.echo("Stopped following; CloudFormation goes on.", err=True)
        raise typer.Exit(ExitCode.INTERRUPTED) from None


def _event_line(cli: CliContext, event: Event) -> str:
    time = event.at.astimezone(cli.now().tzinfo)
    reason = f": {one_line(event.reason)}" if event.failed else ""
    return f"{time:%H:%M:%S}  {event.status:<28} {event.name} ({event.type}){reason}"


def _completed(cli: CliContext, order: Order, declared: Mapping[str, Any], kept: Mapping[str, str]) -> dict[str, str]:
    """Return the given parameters with the answers of a person. Raises Refused if some are missing."""
    given = dict(order.parameters)
    check(declared, given)
    asks = cli.has_keyboard() and not order.yes
    if not kept:
        given.setdefault("Runtime", own_runtime(declared))
    if order.template_out is not None:
        return given
    if not kept and asks and "Admins" not in given and missing(declared, given, kept):
        given["Admins"] = _answer("Admins", declared)
    for name in missing(declared, given, kept):
        if not asks:
            left = missing(declared, given, kept)
            hint = f"Give each as --parameter {name}=VALUE; EndpointType=REGIONAL instead of VpcEndpointIds."
            raise Refused(f"These parameters need a value: {', '.join(left)}.", type="MissingParameters", hint=hint)
        answer = _answer(name, declared)
        given |= _PUBLIC if name == "VpcEndpointIds" and not answer else {name: answer}
    return given


def _answer(name: str, declared: Mapping[str, Any]) -> str:
    """Ask until the answer is accepted."""
    while True:
        answer: str = typer.prompt(f"{name}: {_QUESTIONS.get(name, '')}", default="", show_default=False, err=True)
        try:
            check(declared, {name: answer.strip()})
        except Refused as error:
            typer.echo(error.message, err=True)
            continue
        return answer.strip()


@dataclass(frozen=True, slots=True)
class _Location:
    url: str
    bucket: str
    body: bytes


def _uploaded(
    order: Order, account: Account, sources: Sources, document: Mapping[str, Any], values: Mapping[str, str]
) -> _Location:
    """Build the bundles, upload them with the template, and return where it is."""
    bundles = _built(sources, document, values)
    s3 = account.client("s3")
    name = order.bucket or buckets.default_name(account.id, account.region)
    if buckets.ensure(s3, name, account=account.id, region=account.region, partition=account.partition):
        typer.echo(f"Created the bucket {name}: private, encrypted, for bundles and templates.", err=True)
    keys = buckets.upload(s3, name, bundles.values(), account=account.id)
    places = {function: f"s3://{name}/{key}" for function, key in zip(bundles, keys, strict=True)}
    template = template_archive(packaged(document, places))
    (key,) = buckets.upload(s3, name, [template], account=account.id)
    return _Location(buckets.url_of(name, key, account.region, account.partition), name, template.body)


def _built(sources: Sources, document: Mapping[str, Any], values: Mapping[str, str]) -> dict[str, Archive]:
    """Return the bundles by function; pip mostly waits, so they are built side by side."""
    functions, platform = functions_of(document), (values["Runtime"], values["Architecture"])
    typer.echo(f"Building {', '.join(functions)} for {platform[0]} on {platform[1]}", err=True)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as pool:
        into = Path(folder)
        made = pool.map(lambda name: build(sources, name, *platform, into), functions)
        found = dict(zip(functions, made, strict=True))
    for _, told in found.values():
        if told:
            typer.echo(told, err=True)
    return {name: bundle for name, (bundle, _) in found.items()}


def _hand_over(order: Order, location: _Location, document: Mapping[str, Any]) -> None:
    """Write the template for another tool, and print where it is."""
    Path(order.template_out or "").write_bytes(location.body)
    needed = [name for name, one in document["Parameters"].items() if "Default" not in one]
    found = {"templateUrl": location.url, "template": order.template_out, "parametersWithoutDefault": needed}
    typer.echo(as_json(found) if order.json else f"{order.template_out}\n{location.url}")


def _has_table(account: Account, name: str) -> bool:
    """Return whether an earlier deployment has left its table."""
    from botocore.exceptions import ClientError

    try:
        account.client("dynamodb").describe_table(TableName=name)
    except ClientError:
        return False
    print_warnings([f"The table {name} exists: the stack adopts it with its jobs and settings."])
    return True


def _tags(description: Mapping[str, Any] | None) -> dict[str, str]:
    found = {} if description is None else description
    return {each["Key"]: each["Value"] for each in found.get("Tags", [])}


def _show(change_set: ChangeSet, order: Order) -> None:
    """Print the changes in words."""
    if order.json:
        return
    if not change_set.name:
        typer.echo("Nothing changes.")
        return
    changes = change_set.changes
    typer.echo(_created_table(changes) if change_set.creates else _changed_table(changes))
    typer.echo(_summary(changes))
    lost = [one for one in changes if "::Table" in one.type and (one.action == "Remove" or one.replacement == "True")]
    print_warnings(
        f"{one.name} will be a new, empty table; the present one is kept, outside the stack." for one in lost
    )


def _created_table(changes: Sequence[Change]) -> str:
    counts = Counter((one.type, one.action) for one in changes)
    return table(
        [(action, count, kind) for (kind, action), count in sorted(counts.items())], ("Action", "Count", "Type")
    )


def _changed_table(changes: Sequence[Change]) -> str:
    rows = [
        (one.action, one.name, one.type, _REPLACEMENTS.get(one.replacement, ""), ", ".join(one.causes))
        for one in sorted(changes, key=lambda one: (one.action, one.name))
    ]  # fmt: skip
    return table(rows, ("Action", "Resource", "Type", "Replacement", "Because of"))


def _summary(changes: Sequence[Change]) -> str:
    counts = Counter(one.action for one in changes)
    words = {
        "Add": "to create",
        "Modify": "to change",
        "Remove": "to remove",
        "Import": "to adopt",
        "Dynamic": "to decide",
    }
    return ", ".join(f"{counts[action]} {word}" for action, word in words.items() if counts[action]) + "."


def _is_wanted(cli: CliContext, order: Order, stack: Stack, change_set: ChangeSet) -> bool:
    """Return whether to execute; otherwise discard the change set. Raises Refused without a terminal to ask on."""
    if order.dry_run:
        stack.discard(change_set)
        return False
    if order.yes:
        return True
    if not cli.has_keyboard():
        stack.discard(change_set)
        raise Refused("Nothing was deployed: there is no terminal to confirm it on.", hint="Add --yes.")
    if typer.confirm(f"Deploy this to the stack {stack.name}?", err=True):
        return True
    stack.discard(change_set)
    raise typer.Exit(ExitCode.JOB_FAILED)


def _report(stack: Stack, change_set: ChangeSet, order: Order, *, executed: bool) -> None:
    found = stack.describe() if executed or not change_set.creates else None
    known = {} if found is None else outputs(found)
    if order.json:
        action = "none" if not change_set.name else "create" if change_set.creates else "update"
        changes = [asdict(one) for one in change_set.changes]
        typer.echo(as_json({"stack": stack.name, "version": VERSION, "action": action, "executed": executed,
                            "changes": changes, "outputs": known}))  # fmt: skip
    elif executed:
        typer.echo(f"Deployed release {VERSION}. The API: {known.get('ApiUrl', 'see the outputs of the stack')}")
        typer.echo("Next: trainmaster doctor", err=True)
