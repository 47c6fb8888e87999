"""`trainmaster submit`: submits a request to the queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainmaster.cli.common.context import cli_context
from trainmaster.cli.common.elastic_options import elastic_options
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
from trainmaster.client.sdk.elastic import ElasticOptions
from trainmaster.domain.text import sanitize

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from trainmaster.cli.common.context import CliContext
    from trainmaster.cli.kinds import CliKind
    from trainmaster.client.api.client import ApiClient
    from trainmaster.client.views.types import SubmissionView


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
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until the job has ended; the exit code is its outcome.")
    ] = False,
    interval: Interval = INTERVAL_SECONDS,
    timeout: Timeout = None,
    json: Json = False,
) -> None:
    """Submit a job to the queue.

    Submitting the same request again returns the same answer; a different request under the same name is refused.
    Command-line tags replace tags of the request. For a Kubernetes manifest, the command lists the fields that
    are not honoured, and uploads a command that is too long for a request.
    """
    job = read_job(file, base)
    options = option_tags(option or (), resources, instances, elastic)
    cli = cli_context(context)
    kind = kind_of_request(job.request)
    if kind is not None:
        request = kind.with_options(job.request, priority, options)
        _submit_kind(cli, kind, request, WaitOptions(interval, timeout) if wait else None, json=json)
        return
    request = with_tags(job.request, priority, options)
    print_warnings(conversion_warnings(job))
    upload_command(cli, job)
    with cli.api() as api:
        submission = api.submit(request)
        if not json:
            typer.echo(_submission_line(sanitize(submission), cli.now()))
        print_warnings(submission["warnings"])
        _finish(
            cli, api, submission, WaitOptions(interval, timeout) if wait else None, conversion_members(job), json=json
        )


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
        _finish(cli, api, received, wait_options, {}, json=json)


def _finish(  # noqa: PLR0913 - all are needed for the output
    cli: CliContext,
    api: ApiClient,
    answer: Mapping[str, Any],
    wait_options: WaitOptions | None,
    extra: Mapping[str, object],
    *,
    json: bool,
) -> None:
    """Wait for the job's end if there are wait options, and print the result; JSON includes `extra`.

    Raises typer.Exit with the exit code of the job's outcome.
    """
    if wait_options is None:
        if json:
            typer.echo(as_json({**answer, **extra}))
        return
    jobs, code = wait_for_jobs(cli, api, [answer["jobName"]], wait_options)
    if json:
        typer.echo(as_json({**jobs[0], **extra}))
    else:
        print_outcomes(jobs, cli.now())
    raise typer.Exit(code)


def _submission_line(submission: SubmissionView, now: datetime) -> str:
    return f"Submitted {submission['jobName']}: {job_sentence(submission, now)}"
