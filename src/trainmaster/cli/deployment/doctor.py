"""`trainmaster doctor`: examines the queue, and with `--try` runs a tiny training job through it."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Final

import typer

from trainmaster.cli.common.context import cli_context
from trainmaster.cli.common.exit_codes import ExitCode
from trainmaster.cli.common.options import Json
from trainmaster.cli.output.render import as_json
from trainmaster.client.api.config import DEFAULT_STACK, STACK_VARIABLE
from trainmaster.client.api.errors import Refused
from trainmaster.domain.text import one_line

if TYPE_CHECKING:
    from trainmaster.cli.common.context import CliContext
    from trainmaster.deployment.doctor import Finding, Subject
    from trainmaster.deployment.trial import Trial

_COLORS: Final = {"ok": "green", "warning": "yellow", "error": "red", "unknown": "yellow"}


def doctor(  # noqa: PLR0913 - one parameter per option
    context: typer.Context,
    *,
    try_job: Annotated[
        bool, typer.Option("--try", help="Then run a tiny training job through the queue, which costs some cents.")
    ] = False,
    role: Annotated[str | None, typer.Option(metavar="ARN", help="With --try: the job's execution role.")] = None,
    image: Annotated[
        str | None, typer.Option(metavar="URI", help="With --try: an image with /bin/sh, instead of AWS's for PyTorch.")
    ] = None,
    output_path: Annotated[
        str | None,
        typer.Option(metavar="S3URI", help="With --try: the job's output, by default in the SDK's default bucket."),
    ] = None,
    instance_type: Annotated[
        str | None, typer.Option(metavar="TYPE", help="With --try: the instance type, by default the cheapest.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="With --try: submit the job without asking.")] = False,
    json: Json = False,
) -> None:
    """Examine the queue: address, credentials, permissions, quotas, alarms, versions.

    Each finding says what to do. The exit code is 1 if a check has found an error, and 0 if not; what could not be
    checked is no error. With --try, a training job of your own account proves that jobs start and end.
    """
    cli = cli_context(context)
    if try_job and role is None:
        raise Refused("--try needs the execution role of the job.", hint="Name it with --role ARN.")
    with cli.api() as api:
        from trainmaster.deployment.doctor import Subject

        stack = cli.target.stack or cli.environ.get(STACK_VARIABLE) or DEFAULT_STACK
        subject = Subject(api, cli.session(cli.target), stack, cli.now)
        findings = _examined(cli, subject, json=json)
        sound = not any(finding.level == "error" for finding in findings)
        if sound and try_job and role is not None:
            trial = _trial(subject, role, image, output_path, instance_type)
            sound = _tried(cli, subject, trial, yes=yes)
    if not sound:
        raise typer.Exit(ExitCode.JOB_FAILED)


def _examined(cli: CliContext, subject: Subject, *, json: bool) -> list[Finding]:
    """Print the findings as they come, or all as JSON, and return them."""
    from trainmaster.deployment.doctor import examine

    findings = []
    for finding in examine(subject):
        findings.append(finding)
        if not json:
            typer.echo(_line(finding, colors=cli.has_colors(sys.stdout)))
    if json:
        typer.echo(as_json([asdict(finding) for finding in findings]))
    return findings


def _line(finding: Finding, *, colors: bool) -> str:
    level = f"{finding.level:<8}"
    shown = typer.style(level, fg=_COLORS[finding.level]) if colors else level
    action = f"\n{'':22}{one_line(finding.action)}" if finding.action else ""
    return f"{shown} {finding.check:<12} {one_line(finding.message)}{action}"


def _trial(subject: Subject, role: str, image: str | None, output_path: str | None, instance_type: str | None) -> Trial:
    from trainmaster.deployment.trial import default_image, make_trial

    account = subject.client("sts").get_caller_identity()["Account"]
    return make_trial(
        subject.api.pools()["pools"],
        role=role,
        image=image or default_image(subject.region),
        output=output_path or f"s3://sagemaker-{subject.region}-{account}/trainmaster-doctor",
        instance_type=instance_type,
        now=subject.now(),
    )


def _tried(cli: CliContext, subject: Subject, trial: Trial, *, yes: bool) -> bool:
    """Submit the job after a confirmation and follow it; return whether it completed."""
    from trainmaster.cli.common.waiting import WaitOptions, wait_for_jobs

    name = trial.request["TrainingJobName"]
    typer.echo(f"The job {name} will be submitted. {trial.price_sentence}", err=True)
    if not yes:
        if not cli.has_keyboard():
            raise Refused("Nothing was submitted: there is no terminal to confirm it on.", hint="Add --yes.")
        typer.confirm("Submit it?", abort=True, err=True)
    subject.api.submit(trial.request)
    jobs, code = wait_for_jobs(cli, subject.api, [name], WaitOptions())
    if code == ExitCode.OK:
        typer.echo(f"{name} completed: jobs start and end.", err=True)
        return True
    reason = jobs[0].get("failureReason") if jobs else None
    typer.echo(
        f"{name} did not complete{f': {one_line(reason)}' if reason else ''}. See: trainmaster show {name}", err=True
    )
    return False
