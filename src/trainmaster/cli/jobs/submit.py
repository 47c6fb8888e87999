"""`trainmaster submit`: submits a request to the queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainmaster.cli.common.context import cli_context
from trainmaster.cli.common.elastic_options import elastic_options
from trainmaster.cli.common.exit_codes import ExitCode
from trainmaster.cli.common.options import Base, File, Instances, Json, Options, Priority, Resources
from trainmaster.cli.common.request import (
    conversion_members,
    conversion_warnings,
    option_tags,
    read_job,
    upload_command,
    with_tags,
)
from trainmaster.cli.common.waiting import (
    INTERVAL_SECONDS,
    Interval,
    Timeout,
    WaitOptions,
    absence,
    entered,
    print_outcomes,
    wait_for_jobs,
)
from trainmaster.cli.kinds import kind_of_request, with_help
from trainmaster.cli.output.render import as_json, print_warnings
from trainmaster.cli.output.times import job_sentence
from trainmaster.client.api.errors import Conflict
from trainmaster.client.sdk.elastic import ElasticOptions
from trainmaster.domain.jobs.names import MAX_NAME
from trainmaster.domain.text import sanitize

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from trainmaster.cli.common.context import CliContext
    from trainmaster.cli.kinds import CliKind
    from trainmaster.client.api.client import ApiClient
    from trainmaster.client.views.types import SubmissionView

_MAX_NUMBER = 100
"""The last number that `--resubmit` tries."""


@elastic_options
@with_help(lambda kind: kind.SUBMIT_HELP)
def submit(  # noqa: PLR0913 - one parameter per option
    context: typer.Context,
    file: File,
    *,
    base: Base = None,
    priority: Priority = None,
    option: Options = None,
    resources: Resources = None,
    instances: Instances = None,
    elastic: ElasticOptions,
    resubmit: Annotated[
        bool,
        typer.Option("--resubmit", help="If a job of this name exists, submit under a new one: NAME-2, NAME-3, ..."),
    ] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until the job has ended; the exit code is its outcome.")
    ] = False,
    interval: Interval = INTERVAL_SECONDS,
    timeout: Timeout = None,
    json: Json = False,
) -> None:
    """Submit a job to the queue.

    If a job of this name exists, nothing is submitted, and the exit code is 7; with --wait, the command waits for the
    job if the request is the same. Command-line tags replace tags of the request. For a Kubernetes manifest, the
    command lists the fields that are not honored, and uploads a command that is too long for a request.
    """
    options = option_tags(option or (), resources, instances, elastic)
    job = read_job(file, base, options)
    cli = cli_context(context)
    kind = kind_of_request(job.request)
    if kind is not None:
        request = kind.with_options(job.request, priority, options)
        if resubmit:
            raise typer.BadParameter(f"jobs of kind {kind.NAME} have no other names", param_hint="'--resubmit'")
        _submit_kind(cli, kind, request, WaitOptions(interval, timeout) if wait else None, json=json)
        return
    request = with_tags(job.request, priority, options)
    print_warnings(conversion_warnings(job))
    upload_command(cli, job)
    with cli.api() as api:
        submission = _resubmitted(api, request) if resubmit else api.submit(request)
        if not json:
            typer.echo(_submission_line(sanitize(submission), cli.now()))
        print_warnings(submission["warnings"])
        wait_options = WaitOptions(interval, timeout) if wait else None
        exists = submission["submittedBefore"]
        _finish(cli, api, submission, wait_options, conversion_members(job), exists=exists, json=json)


def _resubmitted(api: ApiClient, request: dict[str, Any]) -> SubmissionView:
    """Submit the request under the first name that no job has: its own, or that with a number. Raises ApiError."""
    own = str(request["TrainingJobName"])
    for number in range(1, _MAX_NUMBER + 1):
        suffix = "" if number == 1 else f"-{number}"
        name = own[: MAX_NAME - len(suffix)].rstrip("-") + suffix
        try:
            submission = api.submit({**request, "TrainingJobName": name})
        except Conflict as error:
            if error.type != "NameTaken":
                raise
        else:
            if not submission["submittedBefore"]:
                return submission
    raise Conflict(f"Jobs {own} to {own}-{_MAX_NUMBER} exist already.", type="NameTaken")


def _submit_kind(
    cli: CliContext, kind: CliKind, request: dict[str, Any], wait_options: WaitOptions | None, *, json: bool
) -> None:
    """Send a request of another kind, and wait for the end of its job if there are wait options."""
    with cli.api() as api:
        before = "" if wait_options is None else absence(api, kind.name_in(request))
        received = kind.submit(api, request)
        if not json:
            typer.echo(kind.received_sentence(sanitize(received)))
        print_warnings(received["warnings"])
        if wait_options is not None:
            entered(cli, api, received["jobName"], wait_options, before=before, hint=kind.ENTRY_HINT)
        exists = received["state"] != "received"
        _finish(cli, api, received, wait_options, {}, exists=exists, json=json)


def _finish(  # noqa: PLR0913 - all are needed for the output
    cli: CliContext,
    api: ApiClient,
    answer: Mapping[str, Any],
    wait_options: WaitOptions | None,
    extra: Mapping[str, object],
    *,
    exists: bool,
    json: bool,
) -> None:
    """Wait for the job's end if there are wait options, and print the result; JSON includes `extra`.

    Raises typer.Exit with the exit code of the job's outcome, or of a job that `exists` already.
    """
    if wait_options is None:
        if json:
            typer.echo(as_json({**answer, **extra}))
        raise typer.Exit(ExitCode.EXISTS if exists else ExitCode.OK)
    jobs, code = wait_for_jobs(cli, api, [answer["jobName"]], wait_options)
    if json:
        typer.echo(as_json({**jobs[0], **extra}))
    else:
        print_outcomes(jobs, cli.now(), api.region)
    raise typer.Exit(code)


def _submission_line(submission: SubmissionView, now: datetime) -> str:
    name, state = submission["jobName"], job_sentence(submission, now)
    if submission["submittedBefore"]:
        return f"{name} exists already: the same request was submitted before, and nothing was submitted now. {state}"
    return f"Submitted {name}: {state}"
