"""`trainmaster upgrade`: deploys this release to a stack that exists, with the parameters that it has."""

from __future__ import annotations

from typing import Annotated

import typer

from trainmaster.cli.common.context import cli_context
from trainmaster.cli.deployment.deploy import AsJson, Bucket, Config, DryRun, Parameters, Yes


def upgrade(  # noqa: PLR0913 - one parameter per option
    context: typer.Context,
    *,
    parameter: Parameters = None,
    config: Config = None,
    bucket: Bucket = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also deploy an earlier release than the present one.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Deploy the installed release to the stack, with its present parameters.

    Jobs run and wait on meanwhile. It refuses to deploy an earlier release than the one that is there.
    """
    from trainmaster.cli.deployment.steps import Order, account_of, deploy_stack, open_stack
    from trainmaster.client.api.errors import Conflict
    from trainmaster.deployment.parameters import read_config, read_options
    from trainmaster.deployment.stack import deployed_version
    from trainmaster.domain.release import VERSION, is_older

    cli = cli_context(context)
    account = account_of(cli)
    stack = open_stack(cli, account)
    present = deployed_version(stack.existing())
    if present is not None and is_older(VERSION, present) and not force:
        message = f"The stack has release {present}, and {VERSION} is installed here."
        raise Conflict(message, hint="Run `pip install --upgrade trainmaster`; --force deploys the earlier release.")
    typer.echo(f"From release {present or 'unknown'} to {VERSION}", err=True)
    given = (read_config(config) if config else {}) | read_options(parameter or [])
    deploy_stack(cli, Order(given, bucket, yes, dry_run, json), account, stack)
