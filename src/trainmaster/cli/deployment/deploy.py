"""`trainmaster deploy`: deploys the queue to an AWS account from the installed package."""

from __future__ import annotations

from typing import Annotated

import typer

from trainmaster.cli.common.context import cli_context

Parameters = Annotated[
    list[str] | None,
    typer.Option(
        "--parameter",
        metavar="NAME=VALUE",
        help="Parameter of the template, for example Pools=ml.g5.2xlarge=8; may be repeated.",
    ),
]
Config = Annotated[
    str | None,
    typer.Option("--config", metavar="FILE", help="JSON or YAML object of parameters; --parameter takes precedence."),
]
Bucket = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Bucket for bundles and template; by default trainmaster-bundles-ACCOUNT-REGION, made on first use.",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Execute the change set without asking.")]
DryRun = Annotated[bool, typer.Option("--dry-run", "--no-execute", help="Only upload, and show what would change.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the changes and the outputs of the stack as JSON.")]


def deploy(  # noqa: PLR0913 - one parameter per option
    context: typer.Context,
    *,
    parameter: Parameters = None,
    config: Config = None,
    bucket: Bucket = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    template_out: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Only upload the bundles, and write the template for CDK, Terraform or others."
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Deploy the queue to your AWS account, or change its parameters.

    The command builds the functions' code from this installation and the locked packages, uploads it, shows what
    CloudFormation will change, and executes that after a confirmation. A stack that exists keeps the parameters that
    you do not give. On a terminal, the command asks for missing parameters; elsewhere it never asks, and needs --yes.
    """
    from trainmaster.cli.deployment.steps import Order, account_of, deploy_stack, open_stack
    from trainmaster.deployment.parameters import read_config, read_options

    cli = cli_context(context)
    given = (read_config(config) if config else {}) | read_options(parameter or [])
    account = account_of(cli)
    order = Order(given, bucket, yes, dry_run, json, template_out)
    deploy_stack(cli, order, account, open_stack(cli, account))
