"""`trainmaster exec`: runs a command whose SageMaker training jobs go to the queue, in whatever language it is."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from trainmaster.cli.common.context import ARGUMENTS, cli_context
from trainmaster.cli.common.elastic_options import elastic_options
from trainmaster.cli.common.exit_codes import ExitCode, as_api_error
from trainmaster.cli.common.options import Options, Priority, Resources
from trainmaster.cli.common.request import option_tags
from trainmaster.client.sdk.elastic import ElasticOptions
from trainmaster.domain.requests.tag_names import PRIORITY_TAG
from trainmaster.domain.text import one_line

if TYPE_CHECKING:
    from trainmaster.cli.common.context import CliContext

_Command = Annotated[
    list[str], typer.Argument(metavar="-- COMMAND [ARGUMENT...]", help="The command, and its arguments, behind --.")
]
_BatchQueue = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME[=SHARE]",
        help="Name of a job queue of AWS Batch whose service jobs the queue runs, and the share that it stands for. "
        "May be repeated. Default: sagemaker-queue.",
    ),
]
_Quiet = Annotated[bool, typer.Option("--quiet", help="Print warnings only, not each job that is submitted.")]


@elastic_options
def exec_(  # noqa: PLR0913 - one parameter per option
    context: typer.Context,
    command: _Command,
    *,
    priority: Priority = None,
    option: Options = None,
    resources: Resources = None,
    elastic: ElasticOptions,
    batch_queue: _BatchQueue = None,
    quiet: _Quiet = False,
) -> None:
    """Run a command whose training jobs go to the queue.

    AWS clients in the command, in any language, call an endpoint on this machine (AWS_ENDPOINT_URL_SAGEMAKER and
    AWS_ENDPOINT_URL_BATCH). It gives training jobs to the queue, and passes all other calls on to AWS with your own
    credentials. The options are defaults: a job's own tags take precedence. The exit code is the command's.
    """
    cli = cli_context(context)
    if "--" not in context.meta[ARGUMENTS]:
        raise typer.BadParameter("put -- before the command: trainmaster exec -- COMMAND", param_hint="'COMMAND'")
    if cli.find_program(command[0], cli.environ.get("PATH")) is None:
        raise _not_run(command[0], "command not found", ExitCode.COMMAND_NOT_FOUND)
    tags = option_tags(option or ()) | ({} if priority is None else {PRIORITY_TAG: str(priority)})
    jobs = _Jobs(tags, resources, elastic if elastic.tags else None, _batch_queues(batch_queue or ()))
    environ = cli.start_beside(lambda: _serve(cli, jobs), logging.WARNING if quiet else logging.INFO)
    try:
        cli.exec_program(command, environ)
    except OSError as error:
        raise _not_run(command[0], error.strerror or str(error), ExitCode.COMMAND_NOT_RUN) from error


@dataclass(frozen=True, slots=True)
class _Jobs:
    """Options for the jobs of the command; `proxy.app.Defaults`, which this process does not import."""

    tags: Mapping[str, str]
    resources: str | None
    elastic: ElasticOptions | None
    batch_queues: Mapping[str, str | None]


def _batch_queues(texts: Sequence[str]) -> dict[str, str | None]:
    """Return the names of job queues with their shares. Raises typer.BadParameter."""
    pairs = [text.partition("=") for text in texts]
    if not all(name and (share or not equals) for name, equals, share in pairs):
        raise typer.BadParameter("use NAME or NAME=SHARE", param_hint="'--batch-queue'")
    return {name: share or None for name, _, share in pairs}


def _serve(cli: CliContext, jobs: _Jobs) -> Mapping[str, str]:
    """Begin to serve; return the environment of the command. Raises ApiError."""
    try:
        return _serving(cli, jobs)
    except Exception as error:
        api_error = as_api_error(error, cli.target.profile)
        if api_error is None:
            raise
        raise api_error from error


def _serving(cli: CliContext, jobs: _Jobs) -> Mapping[str, str]:
    from trainmaster.proxy.app import Defaults, Proxy, Session
    from trainmaster.proxy.environment import command_environment

    profile, region = cli.target.profile, cli.target.region
    session = Session(profile_name=profile, region_name=region)
    api = cli.api()
    api.queue(limit=1)  # a wrong address, or missing credentials, are reported here rather than to the command
    queues = jobs.batch_queues or Defaults().batch_queues
    proxy = Proxy(session, api, Defaults(jobs.tags, jobs.resources, jobs.elastic, queues))
    settings = session.settings
    environ = command_environment(cli.environ, proxy.urls, settings, profile=profile, region=region)
    proxy.start()
    return environ


def _not_run(command: str, reason: str, code: ExitCode) -> Exception:
    """Print why the command cannot run; return the exit."""
    typer.echo(f"trainmaster exec: {one_line(command)}: {reason}", err=True)
    return typer.Exit(code)
